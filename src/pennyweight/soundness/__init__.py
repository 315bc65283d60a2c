"""Is an exam sound? What passes that must not, and what fails that must pass, before any candidate.

Replies that are known to be right or wrong are scored as those of a run would be.

Tested elsewhere:
    *.py: tests/cli/test_audit.py
"""
