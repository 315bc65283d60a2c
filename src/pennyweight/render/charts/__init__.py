"""Charts as SVG.

Tested elsewhere:
    catalogue.py: tests/web/test_charts.py
    ranges.py: tests/web/test_charts.py
    reasoning.py: tests/api/pages/test_reasoning_charts.py
    scales.py: tests/render/charts/test_spread.py
"""
