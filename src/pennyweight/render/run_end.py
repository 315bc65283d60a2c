"""Sentences about how a run begins and ends, for the terminal, the page and pytest."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pennyweight.engine.ending import (
    AccountClosed,
    BatchesOut,
    CallTooLarge,
    ClosedBecause,
    Deleted,
    EndKind,
    GivenUp,
    Limit,
    LimitReached,
    RunEnd,
    StopReason,
    TakenOver,
)
from pennyweight.engine.resume import ResumePlan
from pennyweight.judges.phases import Phase, PhaseKind
from pennyweight.render.plain import cost_text, one_line
from pennyweight.store.connection import again
from pennyweight.store.lanes.batches import OutBatches
from pennyweight.store.store import RunSettings, Spending
from pennyweight.stored_runs.failures import Failure
from pennyweight.suite.narrowing import Narrowing, change_words, option_words, part_words
from pennyweight.text.format import count, duration, money, plural
from pennyweight.text.safe import clean

if TYPE_CHECKING:
    from pennyweight.judges.judging import JudgingResult

_MESSAGE_WIDTH = 300
_LOST: Mapping[type, str] = {
    TakenOver: "Another process continued this run.",
    GivenUp: "This worker was silent for too long, so others have its attempts; start it again.",
    Deleted: "The run was deleted, so nothing more was written.",
}


def narrowed_suffix(settings: RunSettings) -> str:
    """Write how a run differs from its suite's file, to follow the suite's name."""
    words = "; ".join(filter(None, (part_words(settings), change_words(settings))))
    return f" ({words})" if words else ""


def stop_sentence(reason: StopReason) -> str:
    """Write why a run stopped, in one or two sentences."""
    match reason:
        case LimitReached():
            return _limit_sentence(reason)
        case CallTooLarge(limit, maximum, needed, task):
            what = "Judging task" if reason.judging else "Task"
            may = "cost" if limit is Limit.USD else "use"
            return (
                f"{what} {one_line(task)} may {may} {_amount(limit, needed)}, more than "
                f"limits.{limit} ({_amount(limit, maximum, unit=False)})."
            )
        case AccountClosed(account, because, amount, error, model):
            name = f"{model}: {account}" if model else account
            if because is ClosedBecause.LONG_WAIT:
                return clean(f"{name} asks to wait {duration(amount * 1_000)}.")
            if because is ClosedBecause.SILENT:
                return clean(f"{name} has not answered any call for {amount / 60:g} min. {error}")
            if because is ClosedBecause.NEVER_ANSWERED:
                return clean(f"{name} has not answered a single call. {error}")
            return clean(f"{name} refused {plural(round(amount), 'call')} in a row. {error}")
        case TakenOver() | GivenUp() | Deleted():
            return _LOST[type(reason)]
        case BatchesOut():
            return _out_sentence(reason)


def _out_sentence(out: BatchesOut) -> str:
    refused = f"A batch was not taken: {clean(out.refused)}" if out.refused else ""
    if not out.requests:
        return refused
    verb = "is" if out.requests == 1 else "are"
    where = plural(out.batches, "batch", "batches")
    return f"{plural(out.requests, 'request')} {verb} out in {where}. {refused}".rstrip()


def waiting_line(out: OutBatches, pause: float) -> str:
    """Write what is out in batches, and when it is asked for again.

    >>> waiting_line(OutBatches(2, 1_500, 700), 30)
    '2 batches out: 700 of 1,500 requests done. Next check in 30.0 s.'
    """
    batches = plural(out.batches, "batch", "batches")
    done = f"{count(out.done)} of {plural(out.requests, 'request')} done"
    return f"{batches} out: {done}. Next check in {duration(pause * 1_000)}."


def _limit_sentence(reached: LimitReached) -> str:
    limit = reached.limit
    if limit is Limit.SECONDS:
        return f"Time limit reached ({reached.maximum:g} s)."
    name = "Cost" if limit is Limit.USD else "Token"
    used = "spent" if limit is Limit.USD else "used"
    spent, of = _amount(limit, reached.spent, unit=False), _amount(limit, reached.maximum)
    text = f"{name} limit reached: {spent} of {of} {used}"
    if reached.held:
        held = _amount(limit, reached.held)
        return (
            f"{text}, and {held} reserved for calls that reported no usage and may be charged "
            "(timeouts, for example)."
        )
    if reached.next_call is None:
        return f"{text}."
    may = "cost" if limit is Limit.USD else "use"
    return (
        f"{text}, and the next call may {may} up to {_amount(limit, reached.next_call)}. A smaller "
        "max_tokens makes calls smaller."
    )


def _amount(limit: Limit, value: float, *, unit: bool = True) -> str:
    if limit is Limit.USD:
        return money(value)
    return plural(round(value), "token") if unit else count(round(value))


def resume_command(
    address: str,
    run: str,
    record: Path | None,
    by: Sequence[str],
    until: Sequence[str] = (),
    settings: RunSettings | None = None,
) -> str:
    """Write the command that continues a run with the same options, those of a policy too.

    Options that narrow a run are stored with it; those that change its suite are repeated, because
    what a store names has to be confirmed.
    """
    options = [
        *option_words(Narrowing.stored(settings or {}).alterations),
        *until,
        *(["--record", str(record)] if record else []),
    ]
    options += [part for columns in by for part in ("--by", columns)]
    return " ".join([again(address, run), *map(shlex.quote, options)])


def collect_command(resume: str) -> str:
    """Write the command that collects batches, given the one that resumes a run.

    >>> collect_command("pennyweight run --resume a1 --store team.db")
    'pennyweight collect a1 --store team.db'
    """
    return resume.replace("pennyweight run --resume", "pennyweight collect", 1)


def work_command(resume: str) -> str:
    """Write the command that starts a worker, given the one that resumes a run.

    >>> work_command("pennyweight run --resume a1 --store team.db")
    'pennyweight work a1 --store team.db'
    """
    return resume.replace("pennyweight run --resume", "pennyweight work", 1)


def offer_sentence(run: str, number: int, command: str) -> str:
    """Write how many attempts wait for workers, given the command that resumes the run.

    >>> offer_sentence("a1", 1, "pennyweight run --resume a1")
    '1 attempt of run a1 waits for workers: pennyweight work a1'
    """
    verb = "waits" if number == 1 else "wait"
    return f"{plural(number, 'attempt')} of run {run} {verb} for workers: {work_command(command)}"


def end_sentences(
    ended: RunEnd, command: str, *, missing: int, answered: int, last_error: str = ""
) -> Iterator[str]:
    """Write why a run ended and how to continue it with a command; nothing if it is complete."""
    if ended.kind is EndKind.INTERRUPTED:
        yield f"Interrupted. Continue with: {command}"
    elif ended.kind is EndKind.WAITING and ended.reason:
        yield f"{stop_sentence(ended.reason)} Fetch their replies with: {collect_command(command)}"
    elif ended.kind is EndKind.DECIDED:  # nothing has to be continued
        yield from [stop_sentence(ended.reason)] if ended.reason else ()
    elif ended.reason:
        yield f"{stop_sentence(ended.reason)} {_next_step(ended, command, answered, last_error)}"
    elif missing:
        yield f"Retry them with: {command}"


def work_sentences(
    run: str, made: int, failed: int, left: int, ended: RunEnd, command: str
) -> Iterator[str]:
    """Write what a worker made of a run, what is left of it, and why the worker stopped early.

    `command` is the one that resumes the run.
    """
    text = f"This worker made {plural(made, 'attempt')} of run {run}"
    yield f"{text}, {failed:,} of which failed." if failed else f"{text}."
    if ended.reason:
        yield stop_sentence(ended.reason)
    if left:
        yield f"{plural(left, 'attempt')} left for other workers: {work_command(command)}"


def _next_step(ended: RunEnd, command: str, answered: int, last_error: str) -> str:
    if not ended.is_limit:
        return f"Continue later with: {command}"
    if last_error and not answered:
        return f"No call was answered. When that is fixed, continue with: {command}"
    return f"Raise the limits in the suite, then: {command} --yes"


def retry_sentence(ended: RunEnd, retries: int, last_error: str) -> str:
    """Write which calls failed and were retried when the run ended; nothing if none were."""
    shown = ended.reason.error if isinstance(ended.reason, AccountClosed) else ""
    if not last_error or last_error == shown:
        return ""
    calls = "1 call failed and was" if retries == 1 else f"{retries:,} calls failed and were"
    return f"{calls} retried. The last error: {one_line(last_error, _MESSAGE_WIDTH)}"


def made_sentence(
    run: str, attempts: int, made: int, failed: int, spent: Spending, *, judged: bool
) -> str:
    """Write how many attempts were made, and what the run cost."""
    cost = cost_text(spent)
    paid = f", {cost}" if cost else ""
    missing = f", {failed:,} failed" if failed else ""
    text = f"{made:,} of {plural(attempts, 'attempt')} made{missing}"
    if not attempts:
        text = "All attempts were already made" if judged else "Nothing was left to do"
    return f"{text}{paid}. Run {run}."


def failure_sentences(
    run: str, errors: Mapping[str, int], failures: Sequence[Failure]
) -> Iterator[str]:
    """Write why attempts failed: the count and one example of each kind of error."""
    yield f"Failed attempts: {_kinds(errors)}. For example:"
    shown = [failure for failure in failures if failure.kind in errors]
    for one in shown:
        yield f"  {one.kind}, task {one_line(one.task)}: {one_line(one.message, _MESSAGE_WIDTH)}"
    if shown:
        yield f"'pennyweight show {run} {one_line(shown[0].task)}' shows one in full."


def _kinds(errors: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {kind}" for kind, number in sorted(errors.items()))


def broken_sentence(run: str, broken: int) -> str:
    """Write how many checks raised an error."""
    return f"{plural(broken, 'check')} failed to run; 'pennyweight show {run} TASK' shows why."


def phase_title(phase: Phase) -> str:
    """Write what a phase of judges or of checks does."""
    if phase.kind is PhaseKind.CHECKS:
        return f"Trying 'verify' in {plural(phase.checks, 'workspace')} before any agent begins."
    if phase.kind is PhaseKind.BEHAVIOURS:
        return f"Asking the judges about {plural(phase.behaviours, 'behaviour')}."
    judges = ", ".join(phase.judges)
    if phase.kind is PhaseKind.SCORER:
        return clean(f"Asking for {phase.rubric}: {judges}.")
    return clean(f"Judging run {phase.run} by the rubric {phase.rubric}: {judges}.")


def judging_sentences(judged: JudgingResult, command: str) -> Iterator[str]:
    """Write how a phase of judges ended, and how to continue it."""
    tally = judged.tally
    paid = f", {money(judged.usd)}" if judged.usd else ""
    yield f"{judged.valid:,} of {plural(tally.total, 'judgment')} made{paid}."
    for judge, number in sorted(judged.invalid.items()):
        verb = "is" if number == 1 else "are"
        yield (
            f"{plural(number, 'judgment')} {verb} invalid: the replies of {clean(judge)} could "
            "not be read."
        )
    if tally.failed:
        last = one_line(tally.last_error, _MESSAGE_WIDTH)
        yield f"Failed judgments: {tally.failed:,}." + (f" For example: {last}" if last else "")
    if judged.unjudged:
        yield f"Attempts without any valid judgment: {judged.unjudged:,}."
    ended = tally.end
    if ended.kind is EndKind.WAITING and ended.reason:
        yield f"{stop_sentence(ended.reason)} Fetch their replies with: {collect_command(command)}"
        return
    if ended.kind is EndKind.STOPPED:
        if retried := retry_sentence(ended, tally.retries, tally.last_error):
            yield retried
        reason = ended.reason
        step = "Raise the limits in the suite, then" if ended.is_limit else "Continue later with"
        yield f"{stop_sentence(reason)} {step}: {command}" if reason else ""
        return
    if ended.kind is EndKind.INTERRUPTED:
        yield f"Interrupted. Continue with: {command}"
    elif judged.exit_code:
        yield f"Retry them with: {command}"


def summary_sentences(
    ended: RunEnd, errors: Mapping[str, int], judgings: Sequence[JudgingResult]
) -> Iterator[str]:
    """Write only what went wrong, for a page that shows the rest itself."""
    if ended.reason:
        yield stop_sentence(ended.reason)
    if errors:
        yield f"Failed attempts: {_kinds(errors)}."
    for judged in judgings:
        if reason := judged.tally.stop_reason:
            yield stop_sentence(reason)
        if judged.unjudged:
            yield f"Attempts without any valid judgment: {judged.unjudged:,}."


def difference_sentences(run: str, found: ResumePlan) -> Iterator[str]:
    """Write which attempts a resumed run reuses, retries and makes."""
    for change in found.texts:
        yield f"Changed since run {run} began: {change}."
    yield (
        f"{plural(found.reused, 'attempt')} reused, {found.failed:,} to retry, {found.new:,} "
        f"still to make, {found.changed:,} invalidated by changes to the suite."
    )
    if found.gone:
        records = "1 record is" if found.gone == 1 else f"{found.gone:,} records are"
        yield f"{records} no longer part of the suite."
    if found.gone or found.changed:
        yield (
            "Records that no longer belong to the suite are set aside: no score counts them. They "
            "count again if you restore the suite that made them."
        )
