"""Charts as SVG.

Tested elsewhere:
    catalogue.py: tests/web/test_charts.py
    ranges.py: tests/web/test_charts.py
"""
