"""What others decide: code of the suite's writer, a judge, a person."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

from assay.checks.declare import Found, Verdict, check
from assay.checks.parameter import FOLDER, load_function

if TYPE_CHECKING:
    from assay.checks.parameter import Command, Count, Duration, Function, Share, Text
    from assay.checks.seen import Seen

_RECORD = (
    *("input", "target", "response", "reasoning", "tool_calls", "status", "refused", "truncated"),
    *("prompt_tokens", "completion_tokens", "latency_ms", "cost_usd", "work"),
)


def _plain(seen: Seen) -> dict[str, Any]:
    """Give what a writer's own code sees of an attempt."""
    row = {name: seen.row.get(name) for name in _RECORD}
    calls = [{"name": t.name, "arguments": t.arguments} for t in seen.tools]
    return {**row, "tool_calls": calls, "work": dict(seen.work), "text": seen.text}


@check(by="code")
def python(seen: Seen, function: Function) -> Verdict:
    """A function of yours, named module:function, says whether it holds.

    It gets a dict (`text`, `input`, `target`, `tool_calls`, `work`, …) and returns true, false or
    None (it cannot say), alone or in a pair with a sentence why. Modules beside the suite are
    found. It runs once, when the attempt is made: the verdict is kept.

    >>> python({"response": "4"}, "builtins:bool").holds
    True
    """
    said = load_function(function)(_plain(seen))
    holds, why = said if isinstance(said, tuple) and len(said) == 2 else (said, "")
    if holds is not None and not isinstance(holds, bool):
        raise TypeError(f"{function} returned {holds!r:.60}; it must be true, false or None")
    return Verdict(holds, str(why) or f"{function} says {holds}.")


@check(by="code")
def command(
    seen: Seen, run: Command, *, exit_code: Count = 0, timeout: Duration = 60_000.0
) -> Verdict:
    """A command ends with an exit code, 0 unless `exit_code` says another.

    It gets what was said on standard input and the whole record as JSON in the variable
    ASSAY_RECORD, and runs beside the suite. It runs once, when the attempt is made.

    >>> command("Paris", "grep -q Paris").holds
    True
    """
    record = json.dumps(_plain(seen), default=str)[:100_000]
    done = subprocess.run(  # noqa: S603
        run,
        input=(seen.text or "").encode("utf-8", "replace"),
        env={**os.environ, "ASSAY_RECORD": record},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=timeout / 1000,
        cwd=FOLDER.get(),
        check=False,
    )
    said = done.stdout[-2000:].decode("utf-8", "replace").strip()
    evidence = (Found("output", said),) if said else ()
    return Verdict(done.returncode == exit_code, f"It ended with {done.returncode}.", evidence)


@check(by="judge")
def judge(seen: Seen, question: Text) -> Verdict:  # noqa: ARG001
    """A judge says whether a sentence is true of the attempt.

    A behaviour written as a sentence is the same. The suite names the judge under `judge`.

    >>> judge("Hello!", "It greets the customer.").why
    'The judge has not said yet.'
    """
    return Verdict(None, "The judge has not said yet.")


@check()
def judge_score(seen: Seen, min_: Share) -> Verdict:
    """The judges' weighted score, by the suite's rubric, is at least so high.

    >>> judge_score({"impl_rate": 0.8}, 0.75).holds
    True
    """
    score = seen.row.get("impl_rate")
    if score is None:
        return Verdict(None, "There is no judge's score.")
    return Verdict(score >= min_, f"The score is {score:.3g}; at least {min_:g} is needed.")


@check(by="person")
def human(seen: Seen, question: Text) -> Verdict:  # noqa: ARG001
    """A person says whether it holds, later: `assay review RUN` asks.

    Until then nothing is decided, and the attempt has not passed.

    >>> human("Hello!", "Would you be glad to get this reply?").why
    'No person has said yet.'
    """
    return Verdict(None, "No person has said yet.")
