"""Text: normal forms and counts."""
