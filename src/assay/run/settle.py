"""Run the checks that are code of the suite's writer, once for each attempt, and keep their say.

They run where the suite is, when its run is made. A score only reads what was kept: a store may
be shared, and nobody's code comes out of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.checks.seen import Seen
from assay.run.observe import beside, given_by, key_of, rows_of, said_of
from assay.store.verdicts import keep_verdicts, verdicts_of

if TYPE_CHECKING:
    from assay.store.store import Run, Store
    from assay.store.verdicts import Given
    from assay.suite.values import Suite

WHO = "code"
BATCH = 200


def settle(suite: Suite, run: Run, store: Store) -> int:
    """Run what was not run yet about the responses as they are; says how many checks broke."""
    tasks = {
        task.id: [b for _, b in task.scenario.all() if b.check.by == "code"]
        for task in suite.tasks
        if task.scenario
    }
    if not any(tasks.values()):
        return 0
    known = {(g.key, g.mark, g.said_of) for g in verdicts_of(store, run.id) if not g.error}
    broken = 0
    waiting: list[Given] = []
    with beside(suite.path):
        for row in rows_of(run, store):
            for one in tasks.get(row["task_id"], ()):
                if (key_of(row), one.mark, said_of(row)) not in known:
                    found = one.run(Seen(row, suite.answer))
                    broken += found.error
                    waiting.append(given_by(WHO, row, one, found))
            if len(waiting) >= BATCH:
                keep_verdicts(store, run.id, waiting)
                waiting.clear()
    keep_verdicts(store, run.id, waiting)
    return broken
