"""Models: one wire format a file, and the transport they share. `find` turns a name into a model.

Nothing is imported here: a command that calls no model must not load an HTTP client.

Tested elsewhere:
    reply_schema.py: tests/models/test_model.py
"""
