"""Judges: what they are asked, how their replies are read, and how several become one score."""
