"""Runs that several machines make together."""
