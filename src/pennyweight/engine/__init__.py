"""Carrying a run out: attempts, retries, limits, interrupts, and what a resumed run reuses.

    execution.py     opens a suite, holds the run, makes its attempts
    engine.py        prepares each attempt and writes its record
    workforce.py     workers with retries and one way to stop: for attempts and judges
    ending.py        why a run ended, as values

Tested elsewhere:
    attempt_queues.py: tests/engine/test_engine.py
    ending.py: tests/render/test_run_end.py
    live_accuracy.py: tests/engine/test_execution.py
    tally.py: tests/api/test_run.py
    workforce.py: tests/judges/test_judge.py
"""
