"""Commands for runs that several machines make together.

Tested elsewhere:
    elsewhere.py: tests/cli/sharing/test_work.py
"""
