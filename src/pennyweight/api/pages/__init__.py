"""What the page shows: digests, lists and pages of records, and runs side by side.

Tested elsewhere:
    attempt_matrix.py: tests/web/test_task_view.py
    board_verdicts.py: tests/web/test_gates.py
    boards.py: tests/render/page/test_leaderboard.py
    measured_records.py: tests/api/pages/test_digest.py
    record_table.py: tests/web/test_review.py
    record_view.py: tests/web/test_pages.py
    run_sides.py: tests/web/test_comparison.py
    side_by_side.py: tests/web/test_comparison.py
    task_attempts.py: tests/web/test_task_view.py
    task_page.py: tests/web/test_task_view.py
"""
