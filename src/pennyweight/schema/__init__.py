"""The one validator: declared mappings, kinds of values, and problems with their lines."""
