"""Text: normal forms, answers and counts, and how numbers are written.

Tested elsewhere:
    notation.py: tests/text/test_format.py
"""
