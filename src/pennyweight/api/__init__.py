"""The use cases: one verb per file. Command line, page and pytest plugin call these functions.

Tested elsewhere:
    audit.py: tests/cli/test_audit.py
    baseline.py: tests/cli/test_gate.py
    event_loop.py: tests/api/test_run.py
    garbage.py: tests/api/test_run.py
    judge.py: tests/api/test_run.py
    plan.py: tests/cli/test_plan.py
    report.py: tests/api/test_agreement.py
    resumption.py: tests/api/test_run.py
    review.py: tests/stored_runs/test_observations.py
    score.py: tests/cli/test_score.py
    show.py: tests/cli/test_show.py
    suite_rules.py: tests/api/test_stored_suites.py
    watching.py: tests/api/test_run.py
"""

from pennyweight.record import COLUMNS
from pennyweight.scoring.result import show_with

ALIASES = {column.name: column.aliases for column in COLUMNS if column.aliases}
"""The names under which columns of the record are understood in foreign files."""


def _html(result: object) -> str:
    from pennyweight.render.notebook import html  # noqa: PLC0415 - only notebooks need it

    return html(result)


show_with(_html)
