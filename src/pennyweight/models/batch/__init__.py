"""The providers' batches: one dialect a file, and the HTTP client and service they share.

Tested elsewhere:
    *.py: tests/models/batch/test_service.py
"""
