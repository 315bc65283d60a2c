"""Charts as SVG.

Tested elsewhere:
    catalogue.py: tests/web/test_charts.py
    ranges.py: tests/web/test_charts.py
    reasoning.py: tests/scoring/test_reasoning_charts.py
"""
