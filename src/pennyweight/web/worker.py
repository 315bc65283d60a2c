"""A run in its own process: `pennyweight run` for a suite whose text a page may have changed."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from pennyweight.errors import PennyweightError

if TYPE_CHECKING:
    from pennyweight.engine.execution import Outcome
    from pennyweight.store.store import Store
    from pennyweight.suite.values import Suite


def main() -> None:
    """Read the order from standard input, say the run's id, and make the attempts."""
    order = json.load(sys.stdin)
    try:
        sys.exit(carry_out(order))
    except PennyweightError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def carry_out(order: dict[str, Any]) -> int:
    """Make a new run of a suite, or go on with one; give the exit code of `pennyweight run`."""
    from time import monotonic  # noqa: PLC0415

    from pennyweight.engine.execution import execute, new_run, open_suite  # noqa: PLC0415
    from pennyweight.engine.preflight import check  # noqa: PLC0415
    from pennyweight.judges.judging import check_judging  # noqa: PLC0415
    from pennyweight.store.store import Store  # noqa: PLC0415

    store = Store(order["store"])
    if resumed := order.get("run"):
        run = store.find(resumed)
        suite = open_suite(run.path, run.text)
    else:
        suite = open_suite(order["path"], order["text"])
        run = new_run(suite)
    check(suite)
    if suite.judge:
        check_judging(suite.judge, suite.limits, suite.prices)
    if not resumed:
        store.add_run(run)
    print(run.id, flush=True)
    began = monotonic()
    outcome = execute(suite, run, store, watch=lambda *_: None, fresh=False, began=began)
    if outcome.tally.exhausted:
        print(outcome.tally.exhausted, file=sys.stderr)
    if outcome.tally.errors:
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in sorted(outcome.tally.errors.items()))
        print(f"Attempts that could not be made: {kinds}.", file=sys.stderr)
    judged = _judge(suite, outcome, store, began)
    return 130 if outcome.interrupted else 4 if outcome.missing else judged


def _judge(suite: Suite, outcome: Outcome, store: Store, began: float) -> int:
    """Ask the judges what `pennyweight run` would ask them; gives the exit code."""
    if not suite.judge:
        return 0
    from pennyweight.judges.phases import phases  # noqa: PLC0415

    code = 0
    for phase in phases(outcome, suite, store, began=began):
        judged = phase.carry_out(lambda *_: None)
        if judged is None:
            continue
        if judged.tally.exhausted:
            print(judged.tally.exhausted, file=sys.stderr)
        if judged.unjudged:
            print(f"Attempts without any valid judgment: {judged.unjudged:,}.", file=sys.stderr)
        if judged.interrupted:
            return 130
        failed = judged.tally.errors or judged.unjudged or judged.tally.exhausted
        code = 4 if failed else code
        if judged.tally.exhausted:
            break
    return code


if __name__ == "__main__":
    main()
