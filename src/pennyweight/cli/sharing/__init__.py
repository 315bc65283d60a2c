"""Commands for runs that several machines make together."""
