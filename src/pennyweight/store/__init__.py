"""The store: runs, their records and what was paid, in SQLite or PostgreSQL."""
