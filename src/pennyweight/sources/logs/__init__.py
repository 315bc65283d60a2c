"""Logs of other tools: one declaration a file, found by their content.

How to add a format:

1. Declare it in a file of its own: `FORMAT = LogFormat(name, title, recognise, read, home, …)`
   (`sources/log_format.py`), and list it in `registry.py`. A package of yours does the same and
   names its `LogFormat` in the entry point group `pennyweight.logs`.
2. `recognise(peek)` looks at content only: `peek.has("key", …)`, `peek.inside("eval", "task")`,
   `peek.rows`, `peek.columns` (CSV, Parquet), `peek.members` (ZIP). Files with the same
   `home(path)` are one log; what lies below a home that is a folder is never read as records.
3. `read(log)` yields one dict an attempt, with the columns of `record.py` and any others (`suite`,
   `scores`); stream it, and skip expensive columns unless `log.wants(...)`. Without `attempt`,
   attempts are numbered in order. Yield functions that return rows where parsing in threads pays.
   A row `{PROBLEM: text}` is a record that cannot be read. The tool's verdict is `passed`, a
   score in [0, 1] `impl_rate` (`sources/log_values.py`).
   A broken attempt: `status: "error"`, `error`, no `passed`. Never copy configuration wholesale.
4. `log.expect(Expectation(name, value, lambda tally: …))` compares the tool's own summary with the
   records; `log.note(text)` says what was left out; `counts_errors=True` prints both numbers.
   `log.options.scorer` and `.filter` are what the user chose, for a format that declares
   `scores=True` or `filters=True`; `log.offer(names)` and `log.check_scorer()` refuse a score that
   the log does not have. Steps: `messages` (a list of
   mappings with role, content, tool_calls), `checks` (`log_values.check`); `import` stores them.
   For large files: `JsonArray` (one array inside an object), `json_lines`, `ZipMembers`.
5. Test it in `tests/sources/logs/test_NAME.py`: a small log of your own, and the shared fixtures
   through `fixtures.fixture("NAME")`, compared with their `expected.json`.

Tested elsewhere:
    *.py: tests/sources/logs/test_registry.py
"""
