"""The use cases: one verb per file. Command line, page and pytest plugin call these functions."""
