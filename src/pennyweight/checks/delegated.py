"""Decided by others: code of the user, a judge, a person."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from pennyweight.checks.attempt import COLUMNS, AttemptView
from pennyweight.checks.declaration import CheckResult, Excerpt, check
from pennyweight.checks.parameters import Command, Count, Duration, Function, Share, Text
from pennyweight.schema.user_code import current_folder, load_function

_RECORD = [name for name in COLUMNS if name not in {"messages", "finish", "passed"}]
"""The columns of a record that code of the user sees."""
_MAX_VARIABLE_LENGTH = 100_000
"""Characters of an environment variable; operating systems accept little more."""
_MAX_OUTPUT_LENGTH = 2000


def _plain(attempt: AttemptView) -> dict[str, Any]:
    """Return what code of the user sees of an attempt."""
    row = {name: attempt.row.get(name) for name in _RECORD}
    calls = [{"name": t.name, "arguments": t.arguments} for t in attempt.tools]
    return {**row, "tool_calls": calls, "work": dict(attempt.work), "text": attempt.text}


@check(by="code")
def python(attempt: AttemptView, function: Function) -> CheckResult:
    """Your own function, named module:function, decides.

    It receives a dict (`text`, `input`, `target`, `tool_calls`, `work`, …) and returns true, false
    or None (undecided), alone or in a pair with a reason. Modules next to the suite are found. It
    runs once, when the attempt is made, and its result is stored.

    >>> python({"response": "4"}, "builtins:bool").holds
    True
    """
    returned = load_function(function)(_plain(attempt))
    holds, why = returned if isinstance(returned, tuple) and len(returned) == 2 else (returned, "")
    if holds is not None and not isinstance(holds, bool):
        raise TypeError(f"{function} returned {holds!r:.60}; it must return true, false or None")
    return CheckResult(holds, str(why) or f"{function} says {holds}.")


@check(by="code")
def command(
    attempt: AttemptView, run: Command, *, exit_code: Count = 0, timeout: Duration = 60_000.0
) -> CheckResult:
    """A command ends with an exit code: 0, or the one in `exit_code`.

    It receives the reply on standard input and the record as JSON in the environment variable
    PENNYWEIGHT_RECORD, with long texts shortened; the file in PENNYWEIGHT_RECORD_FILE is complete.
    It runs once, in the folder of the suite, when the attempt is made. After `timeout` it is
    stopped, together with all processes that it started.

    >>> command("Paris", "grep -q Paris").holds
    True
    """
    plain = _plain(attempt)
    with tempfile.TemporaryDirectory(prefix="pennyweight-") as place:
        whole, out = Path(place, "record.json"), Path(place, "output")
        whole.write_text(json.dumps(plain, default=str), encoding="utf-8")
        Path(place, "input").write_bytes((attempt.text or "").encode("utf-8", "replace"))
        passed = {"PENNYWEIGHT_RECORD": short_json(plain), "PENNYWEIGHT_RECORD_FILE": str(whole)}
        with Path(place, "input").open("rb") as stdin, out.open("wb") as stdout:
            code = _exit_code(run, timeout / 1000, {**os.environ, **passed}, stdin, stdout)
        text = _end_of(out)
    if code is None:
        raise TimeoutError(f"it did not end within {timeout / 1000:g} s")
    evidence = (Excerpt("output", text),) if text else ()
    return CheckResult(code == exit_code, f"It ended with {code}.", evidence)


def _exit_code(
    words: tuple[str, ...],
    seconds: float,
    environment: dict[str, str],
    stdin: IO[bytes],
    stdout: IO[bytes],
) -> int | None:
    """Run a command in a new process group, and end the whole group; None after a timeout."""
    process = subprocess.Popen(  # noqa: S603
        words,
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.STDOUT,
        env=environment,
        cwd=current_folder(),
        start_new_session=True,
    )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _end_of(path: Path) -> str:
    """Return the end of what a command printed."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _MAX_OUTPUT_LENGTH))
        return file.read().decode("utf-8", "replace").strip()


def short_json(value: Any, most: int = _MAX_VARIABLE_LENGTH) -> str:
    """Write JSON of at most `most` characters; shorten long texts, then long lists.

    >>> json.loads(short_json({"a": "x" * 50, "b": 1}, 40))
    {'a': 'xxxxxxxxxx…', 'b': 1}
    """
    text = json.dumps(value, default=str)
    longest = most
    while len(text) > most and longest > 1:
        longest //= 2
        text = json.dumps(_cut(value, longest), default=str)
    return text if len(text) <= most else "{}"


def _cut(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else value[:longest] + "…"
    if isinstance(value, list | tuple):
        return [_cut(one, longest) for one in value[:longest]]
    if isinstance(value, Mapping):
        return {key: _cut(one, longest) for key, one in list(value.items())[: max(longest, 20)]}
    return value


@check(by="judge")
def judge(attempt: AttemptView, question: Text) -> CheckResult:  # noqa: ARG001
    """A judge decides whether a sentence is true of the attempt.

    A behaviour written as a sentence means the same. The suite names the judge under `judge`.

    >>> judge("Hello!", "It greets the customer.").why
    'The judge has not decided yet.'
    """
    return CheckResult(None, "The judge has not decided yet.")


@check()
def judge_score(attempt: AttemptView, min_: Share) -> CheckResult:
    """The weighted score of the judges, by the rubric of the suite, is at least `min`.

    >>> judge_score({"impl_rate": 0.8}, 0.75).holds
    True
    """
    score = attempt.row.get("impl_rate")
    if score is None:
        return CheckResult(None, "There is no score of a judge.")
    return CheckResult(score >= min_, f"The score is {score:.3g}; at least {min_:g} is required.")


@check()
def undecided(attempt: AttemptView, what: Text) -> CheckResult:  # noqa: ARG001
    """Nothing decides it: another tool checked this, and a suite cannot.

    `pennyweight init --from … --partial` writes it for what it could not carry over. An attempt
    that nothing else fails has no verdict.

    >>> undecided("Hello!", "python: file://check.py").why
    'Not carried over: python: file://check.py'
    """
    return CheckResult(None, f"Not carried over: {what}")


@check(by="person")
def human(attempt: AttemptView, question: Text) -> CheckResult:  # noqa: ARG001
    """A person decides later: `pennyweight review RUN` asks.

    Until then it is undecided, and the attempt has not passed.

    >>> human("Hello!", "Would you be glad to get this reply?").why
    'No person has decided yet.'
    """
    return CheckResult(None, "No person has decided yet.")
