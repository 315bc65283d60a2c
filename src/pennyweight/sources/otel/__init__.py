"""OpenTelemetry GenAI spans as attempts: the wire formats, the dialects, the trees of spans.

Tested elsewhere:
    *.py: tests/sources/logs/test_otel.py
"""
