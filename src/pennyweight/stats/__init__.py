"""Statistics over arrays, independent of records, measures and metrics.

Tested elsewhere:
    resample.py: tests/test_catalogue.py
"""
