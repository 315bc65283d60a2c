"""The use cases: one verb per file. Command line, page and pytest plugin call these functions.

Tested elsewhere:
    run_verdicts.py: tests/web/test_gates.py
    store.py: tests/store/test_store.py
    suites.py: tests/web/test_rest.py
    uploads.py: tests/web/test_rest.py
"""
