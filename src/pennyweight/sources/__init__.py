"""Sources: where records come from. Files, streams and logs in, checked frames of records out.

Tested elsewhere:
    source.py: tests/api/test_sources.py
    log_source.py: tests/sources/test_discovery.py
"""
