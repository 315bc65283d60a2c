"""Scoring: records in, estimates and comparisons out."""
