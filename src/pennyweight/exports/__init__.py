"""Records in the formats of other tools: one declaration a file.

How to add a format: declare `FORMAT = ExportFormat(name, title, write, lost)`
(`exports/export_format.py`) in a file of its own and list it in `registry.py`. `write(folder, run,
rows)` gets the records one by one, in the order of the store, and writes files into an empty
folder; it must not keep all records in memory.

Tested elsewhere:
    export_format.py: tests/exports/test_registry.py
    spans.py: tests/exports/test_otel.py
"""
