"""What is carried out elsewhere: batches at providers.

Tested elsewhere:
    batches.py: tests/engine/batches/test_lane.py
"""
