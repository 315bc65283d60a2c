"""Runs: make the attempts of a suite, safely, and keep their records."""
