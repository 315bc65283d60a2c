"""The one validator: declared mappings, kinds of values, and problems with their lines.

Tested elsewhere:
    audit.py: tests/api/test_stored_suites.py
"""
