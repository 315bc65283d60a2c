"""What people see, kept as text: commands, pages, reports and exports over the same records.

A change of an output shows in the diff of `data/`. `tools/kept_outputs.py` rewrites the files.
"""
