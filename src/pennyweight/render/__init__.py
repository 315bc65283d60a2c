"""Output for people and programs: functions of plain data.

`format.py` writes every value, `terminal.py` holds what all tables of the terminal share.

Tested elsewhere:
    attempts.py: tests/cli/test_show.py
    audit.py: tests/cli/test_audit.py
    compared_tasks.py: tests/cli/test_compare.py
    comparison.py: tests/cli/test_compare.py
    files.py: tests/render/test_report.py
    plan.py: tests/cli/test_run.py
    runs.py: tests/cli/test_run.py
    sample_plan.py: tests/cli/test_plan.py
    scores_table.py: tests/render/test_scores.py
    task_results.py: tests/cli/test_show.py
    static_site.py: tests/api/static_site/test_site.py
    view.py: tests/render/test_report.py
"""
