"""Commands for runs that are carried out elsewhere: in providers' batches."""
