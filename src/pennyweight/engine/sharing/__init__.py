"""Runs that several workers make together: what each of them takes, may spend and may send."""
