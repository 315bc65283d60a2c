"""A run as a process of its own: `assay run` for a suite whose text a page may have changed."""

from __future__ import annotations

import json
import sys
from typing import Any

from assay.errors import AssayError


def main() -> None:
    """Read the order from standard input, say the run's id, and make the attempts."""
    order = json.load(sys.stdin)
    try:
        sys.exit(carry_out(order))
    except AssayError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def carry_out(order: dict[str, Any]) -> int:
    """Make a new run of a suite, or go on with one; give the exit code of `assay run`."""
    from assay.run.execute import execute, new_run, open_suite  # noqa: PLC0415
    from assay.run.preflight import check  # noqa: PLC0415
    from assay.store.store import Store  # noqa: PLC0415

    store = Store(order["store"])
    if resumed := order.get("run"):
        run = store.find(resumed)
        suite = open_suite(run.path, run.text)
    else:
        suite = open_suite(order["path"], order["text"])
        run = new_run(suite)
    check(suite)
    if not resumed:
        store.add_run(run)
    print(run.id, flush=True)
    outcome = execute(suite, run, store, watch=lambda *_: None, fresh=False)
    if outcome.tally.exhausted:
        print(outcome.tally.exhausted, file=sys.stderr)
    if outcome.tally.errors:
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in sorted(outcome.tally.errors.items()))
        print(f"Attempts that could not be made: {kinds}.", file=sys.stderr)
    return 130 if outcome.interrupted else 4 if outcome.missing else 0


if __name__ == "__main__":
    main()
