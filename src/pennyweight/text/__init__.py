"""Text: normal forms, answers and counts, and how numbers are written.

Tested elsewhere:
    arithmetic.py: tests/text/test_equations.py
    arithmetic_tokens.py: tests/text/test_equations.py
    pattern_example.py: tests/cli/test_audit.py
    notation.py: tests/text/test_format.py
    rational.py: tests/text/test_equations.py
    rules.py: tests/text/test_extraction.py
    safe.py: tests/render/test_scores.py
    scanning.py: tests/text/test_extraction.py
    symbolic.py: tests/text/test_matching.py
    thinking.py: tests/text/test_extraction.py
"""
