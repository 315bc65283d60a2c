"""Scoring: records in, estimates and comparisons out.

Tested elsewhere:
    chart_data.py: tests/web/test_charts.py
    chart_types.py: tests/api/pages/test_digest.py
    digest.py: tests/api/pages/test_digest.py
    groups.py: tests/scoring/test_estimates.py
    labelled.py: tests/stored_runs/test_review_queue.py
    pairs.py: tests/scoring/test_comparison.py
    result.py: tests/render/test_notebook.py
    sample_plan.py: tests/cli/test_plan.py
    sides.py: tests/scoring/test_comparison.py
    scores.py: tests/render/test_scores.py
"""
