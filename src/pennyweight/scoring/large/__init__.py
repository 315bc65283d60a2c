"""Scoring of more records than fit into memory: columns on disk, read as metrics need them.

Tested elsewhere:
    *.py: tests/scoring/large/test_scores.py
"""
