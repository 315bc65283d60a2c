"""Sources: where records come from. Files and streams in, checked frames of records out.

Tested elsewhere:
    copy.py: tests/api/test_digest.py
    source.py: tests/api/test_sources.py
"""
