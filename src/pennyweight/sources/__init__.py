"""Sources: where records come from. Files, streams and logs in, checked frames of records out.

Tested elsewhere:
    source.py: tests/api/test_sources.py
    log_source.py: tests/sources/test_discovery.py
    log_format.py: tests/sources/logs/test_registry.py
    log_tally.py: tests/sources/logs/test_inspect_ai.py
    log_values.py: tests/sources/logs/test_promptfoo.py
    json_lines.py: tests/sources/test_json_array.py
    zip_members.py: tests/sources/logs/test_inspect_ai.py
"""
