"""Sources: where records come from. Files and streams in, checked frames of records out.

Tested elsewhere:
    source.py: tests/api/test_sources.py
"""
