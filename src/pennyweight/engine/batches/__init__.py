"""The batch lane: requests go out in providers' batches, and replies come back hours later.

To the engine and to judges a batch is a model that has the reply already, or does not have it yet.
What is in a batch is in the store before the batch is sent, so that any process can go on.

Tested elsewhere:
    inbox.py: tests/engine/batches/test_kill.py
    outbox.py: tests/engine/batches/test_lane.py
    pending.py: tests/engine/batches/test_lane.py
"""
