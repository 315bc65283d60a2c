"""Models: one wire format per file, the transport they share, and local, recorded and own models.

Tested elsewhere:
    reply_schema.py: tests/models/test_model.py
    json_values.py: tests/models/test_openai.py
    paths.py: tests/models/test_replay.py
    remote.py: tests/models/test_transport.py
    reply_schema.py: tests/models/test_function.py
    server.py: tests/models/test_local.py
    threads.py: tests/models/test_function.py
"""
