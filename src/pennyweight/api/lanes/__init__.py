"""Use cases of runs that are carried out elsewhere: in providers' batches.

Tested elsewhere:
    collect.py: tests/engine/batches/test_lane.py
"""
