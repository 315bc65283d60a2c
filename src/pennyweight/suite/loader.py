"""Load suites: read a suite and its tasks, and check everything before the first call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pennyweight.errors import InputError, UsageError, unknown
from pennyweight.schema.documents import Document
from pennyweight.schema.problems import Problems
from pennyweight.schema.tree import Node
from pennyweight.schema.user_code import suite_folder
from pennyweight.suite.addresses import address_problems, is_address
from pennyweight.suite.agents import agent_name, read_agent, unset
from pennyweight.suite.choices import lettered
from pennyweight.suite.declaration import SETTINGS, SUITE
from pennyweight.suite.definition import GivenSuite, document_of
from pennyweight.suite.implied import ImpliedTasks, is_implied, open_document
from pennyweight.suite.narrowing import Narrowing
from pennyweight.suite.overlooked import overlooked
from pennyweight.suite.resources import read_resources
from pennyweight.suite.rubric import for_tasks, read_judging
from pennyweight.suite.scorers import check_scorers, read_scorers
from pennyweight.suite.task_rows import TaskSource, inline_rows, read_rows
from pennyweight.suite.tasks import TaskReader, bad_columns, data_hash, unique
from pennyweight.suite.templates import variables_of
from pennyweight.suite.text_files import with_text_files
from pennyweight.suite.tiers import finish_tiers, resolve_tiers
from pennyweight.suite.values import (
    Agent,
    Example,
    Judging,
    Limits,
    LoadedSuite,
    Price,
    Subject,
    Task,
    Tier,
    Turn,
    Workspace,
)
from pennyweight.suite.workspaces import WorkspaceReader, has_work
from pennyweight.text.extraction import AnswerRule
from pennyweight.text.matching import MatchRule, targets
from pennyweight.text.rules import regex_problem

Mistake = tuple[Subject | tuple[str, ...], str]
"""A subject, or the keys that lead to a place (none: the whole suite), and a message."""


def load_suite(
    path: GivenSuite,
    text: str | None = None,
    check_subject: Callable[[Subject], str | None] | None = None,
    check: Callable[[LoadedSuite], Iterable[Mistake]] = lambda _: (),
    narrowing: Narrowing | None = None,
) -> LoadedSuite:
    """Load a suite; raise DocumentError with every problem in it.

    `path` is a file, or a suite that was built in Python. `text` replaces the content of the file,
    such as the text that an earlier run stored.
    `check_subject` returns a problem of a subject, such as an unknown provider. `check` yields
    problems of the whole suite; it gets all subjects whose address can be read. `narrowing` picks
    some tasks, subjects and tiers, and changes other values.
    """
    reader, given = _open(path, text, narrowing)
    root, problems = reader.root, reader.problems
    suite = reader.suite(given)
    if is_implied(suite.text):
        suite = replace(suite, implied=ImpliedTasks.of(suite.tasks))
    if narrowing:
        suite = _narrowed(suite, narrowing, reader)
    valid = list(suite.subjects)
    judges = (*suite.judge.judges, *suite.judge.more) if suite.judge else ()
    for subject in (*suite.subjects, *judges):
        bad_address = not all(map(is_address, (subject.base_url, *subject.more_urls)))
        problem = check_subject(subject) if check_subject and not bad_address else None
        if problem:
            prefix = "judge: " if subject in judges else ""
            problems.add(reader.subject_line(subject), prefix + problem)
        if bad_address:
            valid = [one for one in valid if one is not subject]
    for place, what in check(replace(suite, subjects=tuple(valid))):
        line = reader.subject_line(place) if isinstance(place, Subject) else root.line_at(*place)
        problems.add(line if place else 0, what)
    problems.stop()
    return suite


def load_outline(path: GivenSuite, text: str | None, narrowing: Narrowing) -> LoadedSuite:
    """Read a suite without reporting problems, for an audit that does not open its files."""
    reader, given = _open(path, text, narrowing)
    of_tasks: dict[str, Any] = {"limit": None, "tasks": (), "sample": None, "seed": None}
    return _narrowed(reader.suite(given), replace(narrowing, **of_tasks), reader)


def load_judging(
    path: str | Path, text: str | None = None
) -> tuple[Judging | None, Limits, dict[str, Price]]:
    """Load the part of a suite that concerns judges, without its tasks and subjects."""
    reader, given = _open(path, text)
    judging = read_judging(given, reader)
    judging = replace(judging, scores=True) if judging else None
    prices = reader.prices(given.get("prices", {}), (), judging)
    reader.problems.stop()
    return judging, Limits(**given.get("limits", {})), prices


def _narrowed(suite: LoadedSuite, narrowing: Narrowing, reader: SuiteReader) -> LoadedSuite:
    """Pick what is asked for; in a suite with problems, names may be unknown because of them."""
    try:
        return narrowing.selected(suite, reader.of_runs)
    except UsageError:
        if not reader.problems.found:
            raise
    return suite


def _open(
    path: GivenSuite, text: str | None, narrowing: Narrowing | None = None
) -> tuple[SuiteReader, dict[str, Any]]:
    """Read the keys of a suite; the files that it names are read later."""
    if isinstance(path, str | Path):
        models, changes = (narrowing.models, narrowing.changes) if narrowing else ((), {})
        document = open_document(path, text, models=bool(models), changes=changes)
    else:
        document = document_of(path)
    root, problems = document.root, document.problems
    if not root.is_mapping:
        other = " A list of tasks is run with -m PROVIDER/NAME." if root.is_list else ""
        what = f"a suite is a mapping with 'suite', 'tasks' and 'subjects'.{other}"
        problems.add(root.line, what)
        problems.stop()
    reader = SuiteReader(document, root, problems, Path(document.file).parent)
    if narrowing:
        root = narrowing.edited(root, partial(problems.add, 0))
        reader = replace(reader, root=root, of_runs=_whole_number(reader.root.get("runs")))
        reader = replace(reader, other_models=bool(narrowing.models))
    root = with_text_files(root, reader.folder, problems)
    reader = replace(reader, root=root)
    return reader, SUITE.read(root, "", problems)


def _whole_number(node: Node | None) -> int:
    return node.value if node is not None and isinstance(node.value, int) else 1


@dataclass(frozen=True, slots=True)
class SuiteReader:
    """Turns the keys of a suite into values, and checks what concerns more than one key."""

    document: Document
    root: Node
    problems: Problems
    folder: Path
    """The folder of the suite, in which its files are found."""
    lines: list[tuple[Subject, int]] = field(default_factory=list)
    """The line of each subject."""
    aliases: dict[str, str] = field(default_factory=dict)
    """The columns of tasks that became fields under another name."""
    of_runs: int = 1
    """The attempts at each task that the file asks for."""
    other_models: bool = False
    """Whether other models take the place of the file's subjects."""

    def suite(self, given: dict[str, Any]) -> LoadedSuite:
        """Read the whole suite."""
        rules: dict[str, Any] = {
            k: given[k] for k in ("answer", "match", "confidence") if k in given
        }
        rules["answer"] = rules.get("answer", AnswerRule()).with_confidence(rules.get("confidence"))
        worker = WorkspaceReader(self.folder) if has_work(given) else None
        named = given.get("scorers", [])
        scorers = read_scorers(named, self)  # before the tasks, which may name its checks
        tasks = self._tasks(given, worker)
        subjects = self.subjects(given.get("subjects", []))
        judging = read_judging(given, self)
        judging = for_tasks(judging, tasks, scorers) if judging else None
        texts = self._texts(given, ())
        if worker:
            texts["work"] = worker.read(given, Workspace(), self._tell_at())
        tiers = resolve_tiers(texts, self._tier_texts(given, worker), self.root, self.problems)
        for subject, wrong in unset(subjects, tiers, given.get("settings", {})):
            self.problems.add(self.subject_line(subject), wrong)
        scripted = next((task.id for task in tasks if task.turns), None)
        for subject in subjects if scripted is not None else ():
            if subject.agent:
                what = f"a command is called once, but task {scripted!r} has several turns."
                self.problems.add(self.subject_line(subject), what)
        tasks = self._matched(tasks, rules.get("match", MatchRule()))
        tiers = finish_tiers(tiers, tasks, self.root, self.problems, self.aliases)
        if not (worker or self.problems.found):
            self._report_overlooked(given, tasks, tiers, subjects)
        check_scorers(scorers, self, tasks, (subjects, tiers), judged="judge" in given)
        examples = [e for tier in tiers for e in tier.examples]
        return LoadedSuite(
            name=given.get("suite", ""),
            path=self.document.file,
            text=self.document.text,
            data_hash=data_hash(tasks, examples) if not self.problems.found else "",
            tasks=tasks,
            subjects=subjects,
            tiers=tiers,
            settings=given.get("settings", {}),
            runs=given.get("runs", 1),
            seed=given.get("seed"),
            limits=Limits(**given.get("limits", {})),
            prices=self.prices(given.get("prices", {}), subjects, judging),
            judge=judging,
            scorers=scorers,
            named_scorers=tuple(named),
            partial=tuple(given.get("partial", ())),
            work=texts.get("work"),
            states_rules="answer" in given or "match" in given,
            **rules,
        )

    def _report_overlooked(
        self,
        given: Mapping[str, Any],
        tasks: Sequence[Task],
        tiers: Sequence[Tier],
        subjects: Sequence[Subject],
    ) -> None:
        """Report columns of tasks that look as if they were used."""
        source = given.get("tasks")
        columns = source.get("columns", {}) if isinstance(source, Mapping) else {}
        own = any(s.agent or s.model.startswith(("python:", "replay:")) for s in subjects)
        decided = own or not given.keys().isdisjoint(("judge", "scorers"))
        shown = {name for tier in tiers for text in tier.texts for name in variables_of(text)}
        inline = isinstance(source, Node)
        for what in overlooked(tasks, shown, columns, inline=inline, decided=decided):
            self.problems.add(self.root.line_at("tasks"), f"tasks: {what}")

    def _tell_at(self, *path: str | int) -> Callable[[str, str], None]:
        """Return a function that reports problems of keys at a place of the suite."""

        def tell(key: str, what: str) -> None:
            parts = (f"[{p + 1}]" if isinstance(p, int) else f".{p}" for p in (*path, key))
            name = "".join(parts).removeprefix(".")
            self.problems.add(self.root.line_at(*path, key), f"{name}: {what}")

        return tell

    def _tasks(self, given: dict[str, Any], worker: WorkspaceReader | None) -> tuple[Task, ...]:
        tasks = given.get("tasks")
        line = self.root.line_at("tasks")
        if tasks is None:
            return ()
        if isinstance(tasks, Node):
            rows = TaskReader(inline_rows(tasks), self.problems, inline=True)
        else:
            table: dict[str, Any] = {"from": tasks} if isinstance(tasks, str) else tasks
            for wrong in bad_columns(table.get("columns", {})):
                self.problems.add(self.root.line_at("tasks", "columns"), wrong)
            found = self._table("tasks", table, line)
            if found is None:
                return ()
            rows = found
        rows.workspaces, rows.judged = worker, given.get("judge") is not None
        before = len(self.problems.found)
        with suite_folder(self.folder):
            made = self._made(lambda: unique(rows.tasks(), rows), line)
            missing = dict(self._made(lambda: tuple(rows.missing_columns()), line))
            for name, wrong in missing.items():
                self._tell_at("tasks", "columns")(name, wrong)
            if "input" not in missing:
                rows.report_inputless()
        self.aliases.update(rows.aliases)
        if not made and len(self.problems.found) == before:
            self.problems.add(line, "there are no tasks; a suite needs at least one.")
        return made

    def _table(self, key: str, given: dict[str, Any], line: int) -> TaskReader | None:
        """Open a table of tasks or examples; None if it cannot be read."""
        if "from" not in given:
            return None
        others = map(given.get, ("split", "config", "make"))
        source = TaskSource(given["from"], self.folder, *others)
        columns: dict[str, str] = given.get("columns", {})
        header: dict[str, None] = {}
        try:
            problems, rows = read_rows(source, self.problems, header)
        except InputError as error:
            self.problems.add(line, f"{key}: {'; '.join(error.problems)}")
            return None
        return TaskReader(rows, problems, columns=columns, header=header, limit=given.get("limit"))

    def _made(self, make: Callable[[], tuple[Any, ...]], line: int) -> tuple[Any, ...]:
        """Call a reader; report it if its file turns out to be unreadable."""
        try:
            return make()
        except InputError as error:
            self.problems.add(line, "; ".join(error.problems))
        except (OSError, EOFError) as error:
            self.problems.add(line, f"a file cannot be read completely: {error}.")
        return ()

    def _texts(self, given: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
        """Read the texts of a suite or tier; only keys that are there, so that null counts."""
        texts: dict[str, Any] = {k: given[k] for k in ("system", "prompt", "extends") if k in given}
        if "examples" in given:
            texts["examples"] = self._examples(given["examples"], (*path, "examples"))
        if "messages" in given:
            texts["messages"] = tuple(Turn(**m) for m in given["messages"] or () if len(m) == 2)
        if given.get("messages") and given.get("prompt"):
            line = self.root.line_at(*path, "prompt")
            self.problems.add(line, "use either 'prompt' or 'messages', not both.")
        return texts

    def _tier_texts(
        self, given: dict[str, Any], worker: WorkspaceReader | None
    ) -> dict[str, dict[str, Any]]:
        tiers = {name: tier or {} for name, tier in (given.get("tiers") or {"T0": {}}).items()}
        texts = {
            name: {**self._texts(tier, ("tiers", name)), "settings": _settings(tier)}
            for name, tier in tiers.items()
        }
        for name, tier in tiers.items():
            if worker and "files" in tier:
                own = {"files": tier["files"]}
                tell = self._tell_at("tiers", name)
                texts[name]["files"] = partial(worker.read, own, tell=tell)
        return texts

    def _examples(self, given: Any, path: tuple[str, ...]) -> tuple[Example, ...]:
        line = self.root.line_at(*path)
        if given is None:
            return ()
        if isinstance(given, Node):
            return tuple(TaskReader(inline_rows(given), self.problems, inline=True).examples())
        table = self._table("examples", {"from": given}, line)
        return self._made(lambda: tuple(table.examples()), line) if table else ()

    def subjects(self, given: list[Any], *path: str) -> tuple[Subject, ...]:
        """Read models and commands with their settings; `path` leads to them."""
        path = path or ("subjects",)
        subjects: list[Subject] = []
        for index, one in enumerate(given):
            table: dict[str, Any] = {"model": one} if isinstance(one, str) else one
            agent = self._agent(table, *path, index) if "command" in table else None
            if agent is None and "model" not in table:
                continue
            line = self.root.line_at(*path, index)
            table.setdefault("model", "command")
            name = table.get("name") or (agent_name(agent) if agent else table["model"])
            if name in {s.name for s in subjects}:
                what = f"the subject {name!r} appears twice; give one of them another 'name'."
                self.problems.add(line, what)
            self._check_address(table, *path, index)
            settings = _settings(table)
            urls, key = tuple(table.get("base_url") or ()), table.get("key_env")
            like, url = table.get("priced_as"), urls[0] if urls else None
            rest = self.folder, like, urls[1:], table.get("limits", {}).get("lane")
            made = Subject(name, table["model"], url, key, settings, agent, *rest,
                           resources=read_resources(table))  # fmt: skip
            subjects.append(made)
            self.lines.append((made, line))
        return tuple(subjects)

    def _agent(self, table: dict[str, Any], *path: str | int) -> Agent | None:
        """Read a command and its settings."""
        for name in ("base_url", "key_env"):
            if name in table:
                what = "a command calls its model itself; list its variables under 'env'."
                self._tell_at(*path)(name, what)
        return read_agent(table, self.folder, self._tell_at(*path))

    def _check_address(self, table: dict[str, Any], *path: str | int) -> None:
        for name, what in address_problems(table):
            self.problems.add(self.root.line_at(*path, name), what)

    def subject_line(self, subject: Subject) -> int:
        """Return the line of a subject."""
        found = (line for one, line in self.lines if one is subject)
        return next(found, self.root.line_at("subjects"))

    def prices(
        self, given: dict[str, Any], subjects: tuple[Subject, ...], judging: Judging | None
    ) -> dict[str, Price]:
        """Read the prices of subjects and judges."""
        judges = (*judging.judges, *judging.more) if judging else ()
        known = {name for s in (*subjects, *judges) for name in (s.name, s.model)}
        for name in given:
            if name not in known and subjects and not self.other_models:
                what = unknown(
                    "The subject or model", name, known, f"There are: {', '.join(sorted(known))}."
                )
                self.problems.add(self.root.line_at("prices", name), f"prices: {what}")
        return {name: Price(**p) for name, p in given.items() if {"input", "output"} <= p.keys()}

    def _matched(self, tasks: tuple[Task, ...], rule: MatchRule) -> tuple[Task, ...]:
        """Check targets against the rule that matches them; return them as it reads them."""
        line = self.root.line_at("match")
        if rule.kind == "choice":
            tasks, wrong = lettered(tasks)
            for _, what in wrong:
                self.problems.add(line, f"match: choice: {what}")
        missing = rule.missing()
        if missing:
            self.problems.add(line, missing)
        if "regex" not in {rule.kind, rule.each}:
            return tasks
        for task in tasks:
            text = task.target or ""
            for target in targets(text, rule.separator) if rule.kind == "any_of" else [text]:
                if bad := regex_problem(target):
                    what = f"the target of task {task.id!r} is not a regular expression: {bad}."
                    self.problems.add(line, f"match: {what}")
        return tasks


_KNOWN = tuple(f.name for f in SETTINGS if f.name != "settings")


def _settings(table: dict[str, Any]) -> dict[str, Any]:
    """Return the model settings of a subject or tier."""
    return {**{n: table[n] for n in _KNOWN if n in table}, **table.get("settings", {})}
