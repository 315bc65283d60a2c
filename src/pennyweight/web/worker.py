"""A run in a separate process: `pennyweight run` with the options that a page offers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, TypedDict

from pennyweight.api.run import Watcher, resume, run
from pennyweight.errors import PennyweightError, UntrustedError, mark_of
from pennyweight.render.run_end import summary_sentences

if TYPE_CHECKING:
    from pennyweight.store.store import StoredRun
    from pennyweight.suite.narrowing import NarrowingOptions


class Order(TypedDict, total=False):
    """What the page asks for: a run to continue, or a suite to run."""

    store: str
    run: str
    trust: str
    """The mark of what a person lets the stored suite do."""
    path: str
    text: str
    options: NarrowingOptions
    """What the run changes in the suite."""


def main() -> None:
    """Read the order from standard input, print the run's id, and carry the run out."""
    order: Order = json.load(sys.stdin)
    page = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123 - what the suite's own code prints
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    try:
        sys.exit(carry_out(order, page))
    except UntrustedError as error:
        told = {"problem": str(error), "uses": error.uses, "confirmed": error.confirmed}
        print(json.dumps(told), file=page, flush=True)
        sys.exit(error.exit_code)
    except PennyweightError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


class _Announcer(Watcher):
    """Tells the page the run's id as soon as it is in the store."""

    def __init__(self, page: IO[str], trusted: str) -> None:
        self._page, self._trusted = page, trusted

    def trust(self, run: StoredRun, uses: Sequence[str]) -> bool:  # noqa: ARG002
        return mark_of(uses) in self._trusted.split("-")

    def start(self, run: StoredRun, attempts: int) -> None:  # noqa: ARG002
        print(run.id, file=self._page, flush=True)


def carry_out(order: Order, page: IO[str]) -> int:
    """Make a new run of a suite, or continue one; return the exit code of `pennyweight run`.

    The page reads one line, and nothing more: the code of a suite must not print to it.
    """
    store, watch = order["store"], _Announcer(page, order.get("trust", ""))
    if resumed := order.get("run"):
        result = resume(resumed, store=store, watch=watch, as_stored=True)
    else:
        text, options = order["text"], order["options"]
        result = run(order["path"], text=text, store=store, watch=watch, **options)
    for sentence in summary_sentences(result.ended, result.errors, result.judgings):
        print(sentence, file=sys.stderr)
    return result.exit_code


if __name__ == "__main__":
    main()
