"""Runs as they are stored: records together with the verdicts of checks, judges and people.

Tested elsewhere:
    failures.py: tests/api/test_run.py
    imported.py: tests/api/test_log_import.py
    panel.py: tests/judges/test_judging.py
    plan.py: tests/engine/test_early_stop.py
    price_list.py: tests/models/test_prices.py
    replies.py: tests/suite/test_implied.py
    reviews.py: tests/stored_runs/test_observations.py
    source.py: tests/stored_runs/test_observations.py
    task_results.py: tests/cli/test_show.py
    transcript.py: tests/engine/test_conversations.py
"""
