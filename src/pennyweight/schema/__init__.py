"""Declared mappings with line numbers: the validator of suites, policies, checks and settings."""
