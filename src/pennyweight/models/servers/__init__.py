"""Models that are served at several addresses."""
