"""What is carried out elsewhere: batches at providers, and the turns of workers.

Tested elsewhere:
    batches.py: tests/engine/batches/test_lane.py
    turns.py: tests/engine/test_pace.py
"""
