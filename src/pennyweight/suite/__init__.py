"""Suites: tasks, subjects and tiers as a person writes them, checked before the first call."""
