"""What is carried out elsewhere: batches at providers, and the turns of workers.

Tested elsewhere:
    turns.py: tests/engine/test_pace.py
"""
