"""Suites: tasks, subjects and tiers as a person writes them, checked before the first call.

Tested elsewhere:
    scorers.py: tests/stored_runs/test_scores.py
    starter.py: tests/suite/test_declaration.py
    values.py: tests/suite/test_loader.py
    workspaces.py: tests/suite/test_agents.py
"""
