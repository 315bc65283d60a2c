"""The store: runs, records, judgments, remarks and the ledger, in SQLite or PostgreSQL.

Tested elsewhere:
    grants.py: tests/engine/sharing/test_grants.py
    bills.py: tests/judges/test_judging.py
    bulk_insert.py: tests/store/test_store.py
    cells.py: tests/store/test_damaged.py
    remarks.py: tests/api/test_remarks.py
    scores.py: tests/stored_runs/test_scores.py
    task_grid.py: tests/api/pages/test_task_grid.py
    task_sums.py: tests/api/pages/test_board_pairs.py
    tables.py: tests/store/test_migrations.py
    verdicts.py: tests/stored_runs/test_observations.py
    whole_records.py: tests/store/test_filters.py
"""
