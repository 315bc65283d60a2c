"""Statistics over arrays, independent of records, measures and metrics.

Tested elsewhere:
    descriptive.py: tests/scoring/test_pipeline.py
    resample.py: tests/test_catalogue.py
    special.py: tests/stats/test_quantiles.py
"""
