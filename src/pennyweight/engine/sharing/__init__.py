"""Runs that several workers make together: what each of them takes, may spend and may send.

Tested elsewhere:
    leased_attempts.py: tests/engine/sharing/test_worker.py
"""
