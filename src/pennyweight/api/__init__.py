"""The use cases: one verb per file. Command line, page and pytest plugin call these functions.

Tested elsewhere:
    store.py: tests/store/test_store.py
"""
