"""Run the checks that are code of the user, once for each attempt, and store their results.

They run in the folder of the suite, while its run is carried out. Scoring only reads the stored
results: a store may be shared, so no code is ever run because of what is in it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.behaviour import Behaviour
from pennyweight.record import AttemptKey
from pennyweight.runs.observations import CODE, given_by, rows_of, said_of
from pennyweight.schema.user_code import current_folder, module_file, suite_folder
from pennyweight.store.verdicts import BehaviourVerdict, save_verdicts, verdicts_of

if TYPE_CHECKING:
    from pennyweight.store.store import Run, Store
    from pennyweight.suite.values import Suite

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
    given = verdicts_of(store, run.id)
    broken = 0
    waiting: list[BehaviourVerdict] = []
    with suite_folder(Path(suite.path).parent):
        changed = {b.mark: written_at(b) for several in tasks.values() for b in several}
        known = {
            (g.key, g.mark, g.said_of)
            for g in given
            if not g.error and g.at > changed.get(g.mark, 0.0)
        }
        for row in rows_of(run, store):
            for one in tasks.get(row["task_id"], ()):
                if (AttemptKey.of(row), one.mark, said_of(row)) not in known:
                    found = one.run(AttemptView(row, suite.answer))
                    broken += found.error
                    waiting.append(given_by(CODE, row, one, found))
            if len(waiting) >= BATCH:
                save_verdicts(store, waiting)
                waiting.clear()
    save_verdicts(store, waiting)
    return broken


def written_at(behaviour: Behaviour) -> float:
    """Say when the code behind a check was last written; what it said before is out of date."""
    folder, value = current_folder() or Path.cwd(), behaviour.value
    if behaviour.check.name == "python":
        name = str(value.get("function") if isinstance(value, dict) else value)
        files = [module_file(name.rpartition(":")[0], one) for one in (folder, Path.cwd())]
    else:
        run = value.get("run") if isinstance(value, dict) else value
        words = run if isinstance(run, list) else re.split(r"[\s;|&<>()'\"]+", str(run))
        files = [folder / str(word) for word in words if word]
    times = [one.stat().st_mtime for one in files if one and one.is_file()]
    return max(times, default=0.0)
