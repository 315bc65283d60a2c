"""What the page shows: digests, lists and pages of records, and runs side by side.

Tested elsewhere:
    side_by_side.py: tests/web/test_comparison.py
"""
