"""Examine a suite: try what must pass and what must fail, and name what is wrong with its tasks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl
from scipy.stats import binom

from pennyweight.engine.advice import unfit
from pennyweight.engine.resume import settings_of
from pennyweight.soundness import duplicates, leaks, scenarios, shuffled
from pennyweight.soundness.audit import Audit, AuditCost
from pennyweight.soundness.findings import (
    CODE,
    JUDGED,
    NO_SOLUTION,
    NOT_ASKED,
    NOT_RUN,
    NOTHING,
    PATTERN,
    QUOTED,
    REFUSABLE,
    SILENCE,
    SLOW,
    UNMARKED,
    Findings,
    Progress,
    cut,
    quoted,
)
from pennyweight.soundness.replies import Replies
from pennyweight.soundness.trial import Trial, TrialResult, tried
from pennyweight.suite.templates import variables_of
from pennyweight.suite.values import LoadedSuite, Task
from pennyweight.text.format import money, plural
from pennyweight.text.pattern_example import first_group

CHANCE_LEVEL = 0.01
"""How improbable it must be that a reply passes tasks with few targets by chance."""
_WRONG = {
    "empty": "an empty reply passes",
    "echo": "the prompt itself passes as a reply",
    "refusal": "a refusal passes",
    "other": "the answer of another task passes",
    "choices": "all choices at once pass",
}
_SLOW_CHECKS = frozenset({"similarity"})


@dataclass(frozen=True, slots=True)
class Examination:
    """The free part of an audit: no model is called."""

    suite: LoadedSuite
    tasks: Sequence[Task]
    runs_code: bool = True
    """Whether checks that are code of the user may run, and checks that are slow."""
    pairs: bool = True
    """Whether tasks that are nearly the same are looked for."""
    workspaces: bool = True
    """Whether the commands that verify agents are run."""
    judges: bool = False
    """Whether judges are asked, which costs money."""
    progress: Progress | None = None
    note: Callable[[str], None] = lambda _: None
    found: Findings = field(default_factory=Findings)

    def audit(self) -> Audit:
        """Try everything."""
        replies = Replies(self.suite, self.suite.tasks)
        able, answered = self._able(), self._answered()
        trials = list(self._trials(replies, able, answered))
        results: dict[str, dict[str, list[TrialResult]]] = defaultdict(lambda: defaultdict(list))
        for result in tried(self.suite, trials, runs_code=self.runs_code):
            results[result.trial.task.id][result.trial.probe].append(result)
        for task in able:
            self._gold(task, results[task.id], is_answered=task.id in answered)
            self._wrong(task, results[task.id], is_answered=task.id in answered, replies=replies)
        self._echoes([t for t in able if t.id in answered], results, replies)
        self._scenarios([task for task in able if task.scenario], results)
        matched = [task for task in able if task.id in answered]
        self._leaks(replies, matched)
        self._duplicates()
        odds = shuffled.chance(replies, matched) if self.runs_code else None
        self.found.checked["shuffled"] = odds.tasks if odds else 0
        if why := shuffled.problem(odds):
            self.found.wrong("shuffled", (), why)
        self._rules()
        verified = [task for task in self.tasks if is_verified(self.suite, task)]
        if verified and self.workspaces:
            from pennyweight.soundness.workspaces import examine_workspaces  # noqa: PLC0415

            examine_workspaces(self.suite, verified, self.found, self.progress)
        else:
            self.found.leave("verify", NOT_RUN, *verified)
        cost = self._judges()
        return replace(self.found.audit(self.suite, self.tasks, odds), judging=cost)

    def _judges(self) -> AuditCost | None:
        """Ask the judges; without leave to, count the tasks that they decide about."""
        if self.suite.judge is None:
            return None
        from pennyweight.soundness.judging import (  # noqa: PLC0415
            JudgedTrials,
            examine_judges,
            tasks_judged,
        )

        if not self.judges:
            self.found.leave("judge", NOT_ASKED, *tasks_judged(self.suite, self.tasks))
            return None
        trials = JudgedTrials.of(self.suite, self.tasks)
        usd = self.suite.limits.usd
        limit = "no cost limit" if usd is None else f"a cost limit of {money(usd)}"
        judgments = plural(trials.judgments, "judgment")
        self.note(f"The judges are asked for at least {judgments}, with {limit} (limits.usd).")
        return examine_judges(trials, self.found)

    def _able(self) -> list[Task]:
        """Return the tasks whose replies can be scored here."""
        found = []
        answered = self._answered()
        for task in self.tasks:
            if is_verified(self.suite, task) and task.id not in answered:
                continue
            leaves = [b for _, b in task.scenario.leaves()] if task.scenario else []
            code = any(not b.problem and b.check.by == "code" for b in leaves)
            slow = any(not b.problem and b.check.name in _SLOW_CHECKS for b in leaves)
            why = CODE if code else SLOW if slow else None
            if why and not self.runs_code:
                for probe in ("gold", "empty", "echo", "refusal", "scenario"):
                    self.found.leave(probe, why, task)
            else:
                found.append(task)
        return found

    def _answered(self) -> frozenset[str]:
        """Return the tasks whose answers are compared with targets."""
        if self.suite.match.kind == "none":
            return frozenset()
        held = [task.id for task in self.tasks if task.target is not None]
        verified = settings_of(self.suite).get("verified")
        if verified is None or {s.name for s in self.suite.subjects} - {*verified["subjects"]}:
            return frozenset(held)
        return frozenset(held) & frozenset(verified["other_tasks"])

    def _trials(
        self, replies: Replies, tasks: Iterable[Task], answered: frozenset[str]
    ) -> Iterator[Trial]:
        shown = self._shown()
        for task in tasks:
            is_answered = task.id in answered
            if is_answered:
                yield from (Trial(task, "gold", reply) for reply in replies.gold(task))
            elif task.scenario is None:
                continue
            if task.solution and task.solution.reply is not None and "solution" not in shown:
                yield Trial(task, "solution", task.solution.reply)
            yield from replies.wrong(task, answered=is_answered)

    def _shown(self) -> frozenset[str]:
        """Return the columns that prompts show."""
        texts = [t for tier in self.suite.tiers for t in (tier.prompt, tier.system) if t]
        texts += [turn.content for tier in self.suite.tiers for turn in tier.messages]
        return frozenset().union(*map(variables_of, texts))

    # --- what must pass ---------------------------------------------------------------------------

    def _gold(
        self, task: Task, results: Mapping[str, list[TrialResult]], *, is_answered: bool
    ) -> None:
        solved = next(iter(results["solution"]), None)
        if is_answered:
            self._target(task, results["gold"], solved)
        elif task.scenario is None:
            judged = self.suite.judge is not None and self.suite.judge.scores
            if not (judged and self.judges):
                self.found.leave("gold", JUDGED if judged else NOTHING, task)
        elif solved is None:
            self.found.leave("gold", NO_SOLUTION, task)
        else:
            self._solution(task, solved)

    def _target(
        self, task: Task, results: Sequence[TrialResult], solved: TrialResult | None
    ) -> None:
        """Decide whether the target itself passes."""
        right = next((r for r in results if r.correct), None)
        target = cut(task.target or "")
        if right is None:
            first = results[0]
            if not self._is_proven(task, results):
                self.found.leave("gold", PATTERN, task)
                return
            if first.answer is None:
                why = f"the answer rule finds no answer in a reply with the target {target!r}"
            else:
                shown = cut(first.answer)
                why = f"a reply with the target {target!r} is read as {shown!r}, which is wrong"
            self.found.wrong("gold", [task], why, first.trial.reply, first.answer)
        elif violated := right.names("must_not", holds=True):
            why = f"{quoted(violated)} is forbidden, and its target {target!r} does it"
            self.found.wrong("gold", [task], why, right.trial.reply, right.answer)
        elif solved is not None:
            self._solved_answer(task, solved)
        elif task.scenario and not right.passed:
            self.found.leave("gold", JUDGED if right.passed is None else NO_SOLUTION, task)
        else:
            self.found.well("gold", task)

    def _solved_answer(self, task: Task, solved: TrialResult) -> None:
        """Decide whether the solution of a task with a target passes."""
        if solved.correct is False and solved.answer is not None:
            answer, target = cut(solved.answer), cut(task.target or "")
            why = f"its solution has the answer {answer!r}, and its target is {target!r}"
            self.found.wrong("gold", [task], why, solved.trial.reply, solved.answer)
        elif task.scenario:
            self._solution(task, solved)
        else:
            self.found.well("gold", task)
            if solved.correct is False:
                self.found.leave("gold", UNMARKED, task)

    def _solution(self, task: Task, solved: TrialResult) -> None:
        """Decide whether the solution passes the behaviours and checks of a task."""
        if solved.passed:
            self.found.well("gold", task)
            return
        if solved.passed is None:
            self.found.leave("gold", JUDGED, task)
            return
        violated = solved.names("must_not", holds=True)
        missing = solved.names("expected", "check", holds=False)
        if violated:
            why = f"its solution does what is forbidden: {quoted(violated)}"
        else:
            why = f"its solution fails: {quoted(missing)}" if missing else "its solution fails"
        self.found.wrong("gold", [task], why, solved.trial.reply, solved.answer)

    def _is_proven(self, task: Task, results: Sequence[TrialResult]) -> bool:
        """Whether no reply can pass; a pattern may find the target in a reply that is not known."""
        rule = self.suite.answer
        if rule.kind not in {"regex", "last_regex"} or any(r.answer for r in results):
            return True
        inside = first_group(rule.value) or rule.value
        texts = pl.Series([task.target, (task.target or "").strip()], dtype=pl.String)
        try:
            return not texts.str.contains(f"^(?:{inside})$").any()
        except pl.exceptions.PolarsError:
            return False

    # --- what must fail ---------------------------------------------------------------------------

    def _wrong(
        self,
        task: Task,
        results: Mapping[str, list[TrialResult]],
        *,
        is_answered: bool,
        replies: Replies,
    ) -> None:
        silent = not is_answered and task.scenario is not None and _is_restraint(results["empty"])
        for probe, what in _WRONG.items():
            several = results[probe]
            if not several or (probe == "echo" and is_answered):
                continue
            if silent:
                self.found.leave(probe, SILENCE, task)
                continue
            if probe == "refusal" and scenarios.may_be_refused(task):
                self.found.leave(probe, REFUSABLE, task)
                continue
            passing = [one for one in several if one.counts]
            if probe == "other" and not replies.choices(task) and not self._means(several):
                passing = []
            if passing:
                first = passing[0]
                shown = f"{what}: {cut(first.trial.reply)!r}" if probe != "empty" else what
                if probe in {"other", "choices"}:
                    shown += f", where the target is {cut(task.target or '')!r}"
                self.found.wrong(probe, [task], shown, first.trial.reply, first.answer)
            elif any(one.counts is None for one in several):
                self.found.leave(probe, JUDGED, task)
            else:
                self.found.well(probe, task)

    def _means(self, several: Sequence[TrialResult]) -> bool:
        """Whether it is a flaw if some targets of other tasks pass.

        Tolerances and patterns accept some by design: then all of them must pass.
        """
        kinds = {self.suite.match.kind, self.suite.match.each}
        if not kinds & {"numeric", "math", "regex"}:
            return True
        return len(several) >= 3 and all(one.counts for one in several)

    def _echoes(
        self,
        tasks: Sequence[Task],
        results: Mapping[str, Mapping[str, list[TrialResult]]],
        replies: Replies,
    ) -> None:
        """Decide about prompts as replies.

        Where there are few targets, such as choices, one of them is right by chance.
        """
        guessed = [t for t in tasks if replies.choices(t) or replies.is_label(t)]
        few = {task.id for task in guessed}
        passing = {t.id: [r for r in results[t.id]["echo"] if r.counts] for t in tasks}
        by_chance = not _exceeds_chance(guessed, passing, replies)
        for task in tasks:
            first = next(iter(passing[task.id]), None)
            if first and not (task.id in few and by_chance):
                what = f"{_WRONG['echo']}: the answer {cut(first.answer or '')!r} is found in it"
                self.found.wrong("echo", [task], what, first.trial.reply, first.answer)
            elif results[task.id]["echo"]:
                self.found.well("echo", task)

    def _scenarios(
        self, tasks: Sequence[Task], results: Mapping[str, Mapping[str, list[TrialResult]]]
    ) -> None:
        """Decide whether what scenarios expect can be observed, and whether each can fail."""
        tried_at = {t.id: [one for some in results[t.id].values() for one in some] for t in tasks}
        doubtful = [t for t in tasks if not any(r.passed is False for r in tried_at[t.id])]
        more = [trial for task in doubtful for trial in scenarios.violations(task)]
        for result in tried(self.suite, more, runs_code=self.runs_code):
            tried_at[result.trial.task.id].append(result)
        for task in tasks:
            several = tried_at[task.id]
            problems = list(scenarios.unobservable(self.suite, task))
            if task.target is None and all(one.passed for one in several):
                number = plural(len(several), "reply", "replies")
                problems.append(f"everything that was tried passes: {number}")
            for why in problems:
                self.found.wrong("scenario", [task], why)
            if any(one.passed is False for one in several):
                self.found.well("scenario", task)
            elif not problems:
                self.found.leave("scenario", JUDGED, task)

    # --- the tasks themselves ---------------------------------------------------------------------

    def _leaks(self, replies: Replies, tasks: Sequence[Task]) -> None:
        found = leaks.leaks(replies, tasks)
        for leak in found.found:
            target = cut(leak.task.target or "")
            why = f"{leak.where} shows the target {target!r}: {cut(leak.shown)!r}"
            self.found.wrong("leak", [leak.task], why)
        shown = {leak.task.id for leak in found.found}
        quoting = {task.id for task in found.quoted}
        self.found.leave("leak", QUOTED, *found.quoted)
        self.found.well("leak", *(t for t in tasks if t.id not in shown and t.id not in quoting))

    def _duplicates(self) -> None:
        words = {
            "same": "is the same task as",
            "near": "is nearly the same task as",
            "contradicts": "asks the same as",
        }
        for one in duplicates.twins(self.suite, self.tasks, near=self.pairs):
            why = f"{one.task.id!r} {words[one.kind]} {one.first.id!r}"
            if one.kind == "contradicts":
                targets = f"{cut(one.task.target or '')!r} and {cut(one.first.target or '')!r}"
                why += f", and the targets differ: {targets}"
            self.found.wrong("duplicate", [one.task], why)
        self.found.well("duplicate", *self.tasks)

    def _rules(self) -> None:
        problems = list(unfit(self.suite))
        for why in problems:
            self.found.wrong("prompt", (), why.rstrip("."))
        self.found.checked["prompt"] = len(self.tasks)


def _is_restraint(results: Sequence[TrialResult]) -> bool:
    """Whether all that a scenario expects is already so if nothing is said."""
    first = next(iter(results), None)
    return bool(first and first.passed and not first.names("expected", holds=False))


def _exceeds_chance(
    tasks: Sequence[Task], passing: Mapping[str, Sequence[TrialResult]], replies: Replies
) -> bool:
    """Whether prompts pass more tasks than the most frequent target alone would."""
    right = [task for task in tasks if passing[task.id]]
    if not right:
        return False
    most = max(Counter(replies.letter(task) for task in tasks).values()) / len(tasks)
    different = len({replies.letter(task) for task in right})
    if different > 1 and len(right) == len(tasks):
        return True
    return bool(binom.sf(len(right) - 1, len(tasks), min(most, 0.999)) < CHANCE_LEVEL)


def is_verified(suite: LoadedSuite, task: Task) -> bool:
    """Whether a command decides about a task, whichever subject works at it."""
    if not suite.subjects or not all(subject.agent for subject in suite.subjects):
        return False
    own = task.work is not None and bool(task.work.verify)
    return own or any(tier.work and tier.work.verify for tier in suite.tiers)
