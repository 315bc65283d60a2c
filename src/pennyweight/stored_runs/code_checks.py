"""Run the checks that are code of the user, once for each attempt, and store their results.

They run in the folder of the suite, while its run is carried out. Scoring only reads the stored
results: a store may be shared, so no code is ever run because of what is in it.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.behaviour import Behaviour
from pennyweight.record import AttemptKey
from pennyweight.schema.user_code import current_folder, module_file, suite_folder
from pennyweight.store.store import Store, StoredRun
from pennyweight.store.verdicts import BehaviourVerdict, save_verdicts, verdicts_of
from pennyweight.stored_runs.observations import CODE, behaviour_verdict, response_hash, rows_of
from pennyweight.suite.values import LoadedSuite

BATCH = 200


def run_code_checks(suite: LoadedSuite, run: StoredRun, store: Store) -> int:
    """Run the checks that have no verdict on the current responses; return how many broke."""
    tasks = {
        task.id: [b for _, b in task.scenario.leaves() if b.check.by == "code"]
        for task in suite.tasks
        if task.scenario
    }
    if not any(tasks.values()):
        return 0
    broken = 0
    verdicts: list[BehaviourVerdict] = []
    with suite_folder(Path(suite.path).parent):
        changed = {b.mark: changed_at(b) for several in tasks.values() for b in several}
        known = {
            (one.key, one.mark, one.said_of)
            for one in verdicts_of(store, run.id)
            if not one.error and one.at > changed.get(one.mark, 0.0)
        }
        for row in rows_of(run, store):
            for behaviour in tasks.get(row["task_id"], ()):
                if (AttemptKey.of(row), behaviour.mark, response_hash(row)) not in known:
                    result = behaviour.run(AttemptView(row, suite.answer))
                    broken += result.error
                    verdicts.append(behaviour_verdict(CODE, row, behaviour, result))
            if len(verdicts) >= BATCH:
                save_verdicts(store, verdicts)
                verdicts.clear()
    save_verdicts(store, verdicts)
    return broken


def changed_at(behaviour: Behaviour) -> float:
    """Return when the code of a check last changed; its earlier verdicts are out of date."""
    folder, value = current_folder() or Path.cwd(), behaviour.value
    if behaviour.check.name == "python":
        name = str(value.get("function") if isinstance(value, dict) else value)
        files = [module_file(name.rpartition(":")[0], one) for one in (folder, Path.cwd())]
    elif behaviour.check.name != "command":  # declared with @check
        files = [Path(inspect.getsourcefile(behaviour.check.function) or "")]
    else:
        run = value.get("run") if isinstance(value, dict) else value
        words = run if isinstance(run, list) else re.split(r"[\s;|&<>()'\"]+", str(run))
        files = [folder / str(word) for word in words if word]
    times = [one.stat().st_mtime for one in files if one and one.is_file()]
    return max(times, default=0.0)
