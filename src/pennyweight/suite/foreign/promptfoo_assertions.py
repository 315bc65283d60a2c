"""Assertions of promptfoo as behaviours: checks, must-nots and sentences for a judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pennyweight.checks.behaviour import read_behaviour
from pennyweight.errors import InputError, UsageError
from pennyweight.schema.tree import TreeError, parse, plain
from pennyweight.suite.foreign.javascript import (
    RUNNER,
    as_checks,
    function_body,
    is_boolean,
)
from pennyweight.suite.foreign.nunjucks import filled, spoken
from pennyweight.suite.foreign.promptfoo_providers import read_provider
from pennyweight.suite.foreign.promptfoo_tests import ForeignAssertion, ForeignTest, comma_separated
from pennyweight.suite.foreign.regular_expressions import from_javascript
from pennyweight.suite.foreign.suite_format import ForeignSuite, NotCarriedError, read_text
from pennyweight.suite.templates import TemplateError

Behaviour = dict[str, Any]
_CODE = {"python", "ruby", "javascript"}
_JUDGED = {
    "llm-rubric": "{}",
    "model-graded-closedqa": "It meets this criterion: {}",
    "factuality": "It does not contradict this: {}",
    "model-graded-factuality": "It does not contradict this: {}",
}
"""The sentence that a judge is asked, by the type of assertion."""
_GRADED = {*_JUDGED, *_CODE}
"""The types whose score may be a fraction."""
_SCORED = "promptfoo computes a score of its own and compares it with a threshold"
_OTHERS = {
    **dict.fromkeys(("g-eval", "answer-relevance", "context-faithfulness"), _SCORED),
    **dict.fromkeys(("context-recall", "context-relevance", "search-rubric"), _SCORED),
    "similar": "it depends on the embeddings of a model; the check similarity is like it",
    "is-refusal": "promptfoo has its own list of phrases; the check refusal is like it",
}
"""Why assertions are not carried over although something here is like them."""
_LIMITS = {"latency", "cost"}
_JUDGE_NOTE = (
    "Model-graded assertions are sentences for our judge: it answers yes, no or cannot say, and "
    "scores and thresholds of promptfoo's grader are not carried over."
)


@dataclass(slots=True)
class TaskBehaviours:
    """The behaviours of a task, by their role."""

    expected: list[Behaviour] = field(default_factory=list)
    must_not: list[Behaviour] = field(default_factory=list)
    checks: list[Behaviour] = field(default_factory=list)

    def fields(self) -> dict[str, list[Behaviour]]:
        """Return the keys of a task."""
        named = {
            "expected_behaviors": self.expected,
            "must_not": self.must_not,
            "checks": self.checks,
        }
        return {key: _distinct(several) for key, several in named.items() if several}


def _distinct(behaviours: Sequence[Behaviour]) -> list[Behaviour]:
    """Number behaviours of the same name, and leave out those that are the same altogether."""
    made: list[Behaviour] = []
    names: set[str] = set()
    for one in behaviours:
        if one in made:
            continue
        name = first = read_behaviour(_unweighted(one)).name
        number = 2
        while name in names:
            name, number = f"{first} ({number})", number + 1
        names.add(name)
        made.append(one if name == first else {**one, "name": name})
    return made


def _is_flag(one: ForeignAssertion) -> bool:
    """Whether an assertion is code that surely returns true or false."""
    return one.type == "javascript" and one.threshold is None and is_boolean(str(one.value))


def _is_undecided(behaviours: Sequence[Behaviour]) -> bool:
    return any("undecided" in one for one in behaviours)


def _unweighted(one: Behaviour) -> Behaviour:
    return {key: value for key, value in one.items() if key != "weight"}


@dataclass(slots=True)
class AssertionReader:
    """Turns the assertions of a test into behaviours."""

    source: ForeignSuite
    code: list[dict[str, Any]] = field(default_factory=list)
    """The assertions that node runs."""
    asks_judge: bool = False
    judge: Mapping[str, Any] | None = None
    """The grader that the tests name; None for promptfoo's own."""

    def behaviours(self, test: ForeignTest) -> TaskBehaviours:
        """Return the behaviours of a test; what cannot be carried over is listed."""
        made = TaskBehaviours()
        if test.threshold is not None:
            parts = list(self._parts(test.asserts, test))
            if parts:
                share = {"share": min(max(test.threshold, 0.0), 1.0), "parts": _distinct(parts)}
                made.expected.append({"name": "score", "at_least": share})
            return made
        for one in test.asserts:
            self._add(one, test, made)
        return made

    def _add(self, one: ForeignAssertion, test: ForeignTest, made: TaskBehaviours) -> None:
        if one.type == "assert-set":
            if one.threshold is None:
                for part in one.parts:
                    self._add(part, test, made)
                return
            parts = list(self._parts(one.parts, test))
            share = {"share": min(max(one.threshold, 0.0), 1.0), "parts": _distinct(parts)}
            name = {"name": one.metric} if one.metric else {}
            if one.problem:
                made.expected += self.lost(one, one.type, one.problem)
            elif parts:
                made.expected.append({**name, "at_least": share})
            return
        if one.weight == 0:
            self.source.leave(one.place, one.type, "its weight is 0, so it decides nothing")
            return
        kind = one.type.removeprefix("not-")
        if one.type.startswith("not-") and kind not in _LIMITS:
            several = self.read(replace(one, type=kind), test, written=one.type)
            if _is_undecided(several):
                made.expected += several
            elif len(several) > 1:
                made.expected.append({"not_at_least": {"share": 1, "parts": several}})
            else:
                made.must_not += several
            return
        made_of = made.checks if kind in _LIMITS else made.expected
        made_of += self.read(one, test)

    def _parts(self, asserts: Sequence[ForeignAssertion], test: ForeignTest) -> list[Behaviour]:
        """Return the weighted parts of a score; a set counts as one, by its own weights."""
        parts: list[Behaviour] = []
        for one in asserts:
            if one.type == "assert-set":
                total = sum(part.weight for part in one.parts) or 1.0
                inner = [replace(p, weight=p.weight * one.weight / total) for p in one.parts]
                parts += self._parts(inner, test)
                continue
            kind = one.type.removeprefix("not-")
            several = self.read(replace(one, type=kind), test, written=one.type, counted=True)
            lost = _is_undecided(several)
            if len(several) > 1:
                joined = {"share": 1, "parts": several}
                several = [{"at_least": joined}]
            for behaviour in several:
                negated = one.type.startswith("not-") and not lost
                right = _negated(behaviour) if negated else behaviour
                weight = {} if one.weight == 1 else {"weight": _short(one.weight)}
                parts.append({**right, **weight})
        return parts

    def read(
        self, one: ForeignAssertion, test: ForeignTest, written: str = "", *, counted: bool = False
    ) -> list[Behaviour]:
        """Return the behaviours of one assertion; one that is lost is a check without a result.

        `written` is its type as the file has it. `counted` means that its score is a part of a
        sum, in which a grader's score counts in fractions.
        """
        try:
            if one.problem:
                raise NotCarriedError(one.problem)
            if counted and one.type in _GRADED and not _is_flag(one):
                raise NotCarriedError("its score is a fraction, and a check here holds or does not")
            one = replace(one, value=self._value(one, test))
            made = self._transformed(self._checks(one, test), one.transform or test.transform)
            named = [{"name": one.metric, **check} if one.metric else check for check in made]
            for behaviour in named:
                read_behaviour(behaviour)
        except (NotCarriedError, UsageError, TemplateError) as error:
            if isinstance(error, TemplateError) and error.exceeded:
                raise InputError([f"{one.place}: {one.type}: {error}"]) from None
            return self.lost(one, written or one.type, str(error).rstrip("."))
        return named

    def lost(self, one: ForeignAssertion, kind: str, why: str) -> list[Behaviour]:
        """List an assertion as missing; return the check that leaves its result open."""
        said = f" {one.value!r}" if isinstance(one.value, str) and len(one.value) < 40 else ""
        self.source.miss(one.place, f"{kind}{said}", why)
        name = {"name": one.metric} if one.metric else {}
        text = f"{kind}: {one.value}" if isinstance(one.value, str) and one.value else kind
        return [{**name, "undecided": " ".join(text.split())[:200]}]

    def _value(self, one: ForeignAssertion, test: ForeignTest) -> Any:
        """Return the value with its variables filled in, or the content of its file."""
        value = one.value
        if isinstance(value, str) and value.startswith(("package:", "file://")):
            if one.type in _CODE or value.startswith("package:") or _is_code(value):
                raise NotCarriedError("it is code in a file; write it as a check of your own")
            path = self.source.find(value.removeprefix("file://"), one.place, one.type)
            if path is None:
                raise NotCarriedError("its file is missing")
            return _content(path)
        if isinstance(value, str):
            return filled(value, test.vars)
        if isinstance(value, list):
            return [filled(v, test.vars) if isinstance(v, str) else v for v in value]
        return value

    def _checks(self, one: ForeignAssertion, test: ForeignTest) -> list[Behaviour]:
        if one.type in _JUDGED:
            return self._judged(one, test)
        if one.type == "javascript":
            return self._javascript(one, test)
        if one.type in _CODE:
            raise NotCarriedError("it is code; write it as a check of your own (python: module:f)")
        make = _CHECKS.get(one.type)
        if make is None:
            raise NotCarriedError(_OTHERS.get(one.type, "there is no such check"))
        return [make(one)]

    def _judged(self, one: ForeignAssertion, test: ForeignTest) -> list[Behaviour]:
        given = one.value if isinstance(one.value, list) else [one.value]
        form = _JUDGED[one.type]
        if one.threshold is not None:
            raise NotCarriedError("it has a threshold, and a judge here answers yes or no")
        if one.transform or test.transform:
            raise NotCarriedError("its transform is code")
        if "{}" in form and not all(isinstance(v, str) and v.strip() for v in given):
            raise NotCarriedError("its criterion is no text")
        node = one.provider or test.provider
        judge = read_provider(self.source, node, one.place.at(node.line)) if node else None
        if node and judge is None:
            raise NotCarriedError("its grader cannot be called here")
        if self.asks_judge and judge != self.judge:
            raise NotCarriedError("a suite has the same judge for all tasks")
        self.asks_judge, self.judge = True, judge
        self.source.note(_JUDGE_NOTE)
        return [{"judge": form.format(str(value).strip())} for value in given]

    def _javascript(self, one: ForeignAssertion, test: ForeignTest) -> list[Behaviour]:
        if not isinstance(one.value, str):
            raise NotCarriedError("its code is no text")
        checks = as_checks(one.value) if one.threshold is None else None
        if checks:
            return checks
        if not self.source.options.code:
            why = "it is code; with --code the suite runs it with node"
            raise NotCarriedError(why)
        case = {
            "code": function_body(one.value),
            "vars": {name: spoken(value) for name, value in test.vars.items()},
            "threshold": one.threshold,
        }
        if case not in self.code:
            self.code.append(case)
        return [{"command": ["node", RUNNER, str(self.code.index(case))]}]

    def _transformed(self, checks: list[Behaviour], transform: Any) -> list[Behaviour]:
        """Apply a simple transform of the output to checks of texts."""
        if not transform:
            return checks
        code = str(transform).strip().rstrip(";")
        return [_with_transform(check, code) for check in checks]


def _with_transform(check: Behaviour, code: str) -> Behaviour:
    key, value = next(iter(check.items()))
    trims, lowers = ".trim()" in code, ".toLowerCase()" in code
    known = {"output.trim()", "output.toLowerCase()", "output.trim().toLowerCase()",
             "output.toLowerCase().trim()"}  # fmt: skip
    if code in known and key == "contains" and not (isinstance(value, dict) and value.get("case")):
        return check
    if code not in known or not isinstance(value, dict):
        raise NotCarriedError(f"its transform {code[:40]!r} is code")
    texts = [str(value.get("text", "")), *map(str, (*value.get("any", ()), *value.get("all", ())))]
    if lowers and any(text != text.lower() for text in texts):
        raise NotCarriedError("it looks for capitals in a text without any")
    if key == "contains":
        return {key: {**value, "case": not lowers}} if lowers else check
    if key == "equals" and trims:
        same = all(text == text.strip() for text in texts)
        plain_number = texts[0].replace(".", "").replace(",", "").strip("-").isdigit()
        if same and not (lowers and plain_number):
            return {key: {"text": value["text"], "case": not lowers}}
    raise NotCarriedError(f"its transform {code[:40]!r} is code")


def _negated(behaviour: Behaviour) -> Behaviour:
    own = ("name", "of")
    return {k if k in own else f"not_{k}": v for k, v in behaviour.items()}


def _short(number: float) -> float | int:
    return int(number) if number == int(number) else round(number, 9)


def _is_code(value: str) -> bool:
    return Path(value.partition(":")[2].split(":")[0]).suffix.lower() not in {
        *(".txt", ".md", ".json", ".yaml", ".yml", ""),
    }


def _content(path: Path) -> Any:
    text = read_text(path)
    if path.suffix.lower() in {".json", ".yaml", ".yml"}:
        try:
            return plain(parse(text, is_json=path.suffix.lower() == ".json")[0])
        except TreeError as error:
            raise NotCarriedError(str(error)) from None
    return text.strip()


def _text(one: ForeignAssertion) -> str:
    value = spoken(one.value)
    if not isinstance(value, str | int | float) or value == "":
        raise NotCarriedError("it needs a text")
    return str(value)


def _several(one: ForeignAssertion) -> list[str]:
    value = comma_separated(one.value) if isinstance(one.value, str) else one.value
    if not isinstance(value, list) or not value or "" in value:
        raise NotCarriedError("it needs a list of texts")
    return [str(spoken(v)) for v in value]


def _equals(one: ForeignAssertion) -> Behaviour:
    if isinstance(one.value, dict | list):
        return {"json": {"equals": one.value, "where": "reply"}}
    return {"equals": {"text": str(spoken(one.value)), "exact": True}}


def _contains(key: str | None, *, case: bool) -> Callable[[ForeignAssertion], Behaviour]:
    def make(one: ForeignAssertion) -> Behaviour:
        found: Any = _several(one) if key else _text(one)
        if not case and key is None:
            return {"contains": found}
        return {"contains": {key or "text": found, **({"case": True} if case else {})}}

    return make


def _json(where: str) -> Callable[[ForeignAssertion], Behaviour]:
    def make(one: ForeignAssertion) -> Behaviour:
        schema = one.value
        if isinstance(schema, str) and schema.strip():
            try:
                schema = plain(parse(schema, is_json=False)[0])
            except TreeError as error:
                raise NotCarriedError(str(error)) from None
        if schema is not None and schema != "" and not isinstance(schema, dict):
            raise NotCarriedError("its value is no JSON schema")
        if not schema and where == "anywhere":
            schema = {"type": "object"}
        return {"json": {"where": where, **({"schema": schema} if schema else {})}}

    return make


def _limit(name: str) -> Callable[[ForeignAssertion], Behaviour]:
    def make(one: ForeignAssertion) -> Behaviour:
        if one.threshold is None:
            raise NotCarriedError("it has no threshold")
        return {name: _short(one.threshold)}

    return make


def _words(one: ForeignAssertion) -> Behaviour:
    value = one.value
    if isinstance(value, Mapping):
        return {"length": {k: v for k, v in value.items() if k in {"min", "max"}}}
    try:
        number = int(str(value))
    except ValueError:
        raise NotCarriedError("it needs a number of words") from None
    return {"length": {"min": number, "max": number}}


def _regex(one: ForeignAssertion) -> Behaviour:
    return {"regex": from_javascript(_text(one))}


_CHECKS: dict[str, Callable[[ForeignAssertion], Behaviour]] = {
    "contains": _contains(None, case=True),
    "icontains": _contains(None, case=False),
    "contains-any": _contains("any", case=True),
    "contains-all": _contains("all", case=True),
    "icontains-any": _contains("any", case=False),
    "icontains-all": _contains("all", case=False),
    "equals": _equals,
    "starts-with": lambda one: {"starts_with": {"text": _text(one), "exact": True}},
    "regex": _regex,
    "is-json": _json("reply"),
    "contains-json": _json("anywhere"),
    "latency": _limit("latency"),
    "cost": _limit("cost"),
    "word-count": _words,
    "human": lambda one: {"human": _text(one)},
}
