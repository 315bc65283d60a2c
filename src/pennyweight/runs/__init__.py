"""Runs as they are stored: records with what checks, judges and people said of them."""
