"""Models: where they are called, how, and at what price; local, recorded and Python models.

Tested elsewhere:
    json_values.py: tests/models/wires/test_openai.py
    remote.py: tests/models/test_transport.py
    reply_schema.py: tests/models/test_function.py
    server.py: tests/models/test_local.py
    threads.py: tests/models/test_function.py
"""
