"""The run that is resumed, and its suite: with the same options, and changes only if intended."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pennyweight.api.stored_suites import open_stored
from pennyweight.api.suites import is_own_file
from pennyweight.engine.resume import resume_plan
from pennyweight.errors import UsageError
from pennyweight.store.lanes.batches import out_batches
from pennyweight.store.store import Store, StoredRun
from pennyweight.suite.definition import GivenSuite
from pennyweight.suite.narrowing import Narrowing, option_words
from pennyweight.suite.values import LoadedSuite

if TYPE_CHECKING:
    from pennyweight.api.run import Watcher


def resumed(
    name: str | Path,
    store: Store,
    by: Sequence[str],
    watch: Watcher,
    asked: Narrowing,
    command: str = "run --resume",
    *,
    file: GivenSuite | None = None,
    as_stored: bool = False,
    keyless: bool = False,
    record: Path | None = None,
) -> tuple[StoredRun, LoadedSuite]:
    """Find the run to continue and the suite as it is now; ask whether changes are intended.

    `command` is what the person typed, for the advice of an error.
    """
    path = Path(name)
    if path.is_file():
        same = (r for r in store.runs() if Path(r.path).resolve() == path.resolve())
        run, file = next(same, None) or store.find(str(path)), file or path
    else:
        run = store.find(str(name))
    if not file and not as_stored and not is_own_file(run.path):
        why = "can be changed by another user" if Path(run.path).is_file() else "does not exist"
        watch.note(f"{run.path} {why}; the suite is taken from run {run.id}.")
    _check_same(run, asked)
    suite = open_stored(
        run, by, trust=watch.trust, file=file, as_stored=as_stored, asked=asked, keyless=keyless,
        command=command,
    )  # fmt: skip
    if not keyless and out_batches(store, [run.id]):
        from pennyweight.engine.batches.lane import check_out  # noqa: PLC0415 - most runs need none

        for note in check_out(suite, run, store, record):
            watch.note(note)
    if not watch.approve(run, resume_plan(run, suite, store)):
        raise UsageError(
            f"Run {run.id} was not resumed, because its suite or tasks changed. To resume it with "
            "the changes, add --yes."
        )
    return run, suite


def _check_same(run: StoredRun, asked: Narrowing) -> None:
    """Refuse to resume a run with other options than its own, except for limits.

    The records of other tasks or models would be set aside, or would be mixed with new ones.
    """
    stored = Narrowing.stored(run.settings).options
    if asked and not stored.is_repeated_by(asked) and not asked.only_limits:
        options = shlex.join(option_words(stored))
        began = f"was started with {options}" if options else "was started without such options"
        raise UsageError(
            f"Run {run.id} {began}, and --resume continues it so; only limits can be changed. "
            f"Without --resume, {shlex.join(option_words(asked))} makes a new run."
        )
