"""Test cases of promptfoo: lists, files and tables, with defaults and variables that multiply."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from pennyweight.schema.tree import Node, TreeError, parse, plain
from pennyweight.suite.foreign.suite_format import (
    BrokenRow,
    ForeignSuite,
    Place,
    csv_rows,
    json_rows,
    read_text,
)

MAX_TESTS = 100_000
"""The most test cases that variables with several values may make."""
MAX_DEPTH = 4
"""How deep assertions and their templates may be nested."""
_CODE = re.compile(r"\.(?:[cm]?[jt]s|py|rb|sh)(?::\w+)?$")
_ASSERTION = re.compile(r"^(not-)?([a-z][a-z0-9-]*)(?:\((\d+(?:\.\d+)?)\))?(?::([\s\S]*))?$")
_LISTS = {"contains-all", "contains-any", "icontains-all", "icontains-any"}
_NEAR = {"similar", "latency", "cost", "levenshtein", "starts-with", "answer-relevance"}
_KNOWN = {"description", "vars", "assert", "threshold", "options", "metadata"}
_OPTIONS = {"provider", "transform", "prefix", "suffix", "disableVarExpansion"}
_PARTS = {"type", "value", "threshold", "weight", "metric", "transform", "provider"}
"""The keys of assertions that are carried over."""


@dataclass(frozen=True, slots=True)
class ForeignAssertion:
    """One assertion as it is written."""

    type: str
    value: Any = None
    threshold: float | None = None
    weight: float = 1.0
    metric: str | None = None
    transform: str | None = None
    provider: Node | None = None
    parts: tuple[ForeignAssertion, ...] = ()
    """The assertions of a set."""
    problem: str = ""
    """Why it cannot be carried over, whatever its type is."""
    place: Place = field(default=Place(""))


@dataclass(frozen=True, slots=True)
class ForeignTest:
    """One test case, with the defaults filled in."""

    vars: Mapping[str, Any]
    asserts: tuple[ForeignAssertion, ...]
    place: Place
    description: str = ""
    threshold: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    transform: str | None = None
    provider: Node | None = None
    """The judge of its sentences."""
    multiplies: bool | None = None
    """Whether a variable that is a list means a test for each of its values."""
    prefix: str = ""
    suffix: str = ""


EMPTY = ForeignTest({}, (), Place(""))


def assertion_of(text: str) -> dict[str, Any]:
    """Read an assertion in a cell: a type with its value, or the text to equal.

    >>> assertion_of("not-contains: sorry"), assertion_of("similar(0.9): hi"), assertion_of("42")
    ({'type': 'not-contains', 'value': 'sorry'}, {'type': 'similar', 'value': 'hi', 'threshold': \
0.9}, {'type': 'equals', 'value': '42'})
    """
    for prefix in ("javascript:", "fn:", "eval:"):
        if text.startswith(prefix):
            return {"type": "javascript", "value": text.removeprefix(prefix).strip()}
    if text.startswith("file://"):
        kind = "python" if ".py" in text else "javascript"
        return {"type": kind, "value": text}
    for prefix in ("grade:", "llm-rubric:"):
        if text.startswith(prefix):
            return {"type": "llm-rubric", "value": text.removeprefix(prefix)}
    found = _ASSERTION.match(text)
    if not found or (found[4] is None and found[3] is None and found[2] not in TYPES):
        return {"type": "equals", "value": text}
    negated, kind, threshold, value = found.groups()
    if kind not in TYPES:
        return {"type": "equals", "value": text}
    value = value.strip() if value else value
    made: dict[str, Any] = {"type": f"{negated or ''}{kind}", "value": value}
    if kind in _LISTS and value:
        made["value"] = comma_separated(value)
    if threshold or kind in _NEAR:
        made["threshold"] = float(threshold or 0.75)
    return made


_TYPES = """
answer-relevance bleu classifier contains contains-all contains-any contains-html contains-json
contains-sql contains-xml context-faithfulness context-recall context-relevance cost equals
factuality finish-reason g-eval gleu guardrails icontains icontains-all icontains-any is-html
is-json is-refusal is-sql is-valid-function-call is-valid-openai-function-call
is-valid-openai-tools-call is-xml javascript latency levenshtein llm-rubric meteor
model-graded-closedqa model-graded-factuality moderation perplexity perplexity-score pi python regex
rouge-n ruby search-rubric select-best similar starts-with trace-error-spans trace-span-count
trace-span-duration webhook word-count
"""
TYPES = frozenset(_TYPES.split())
"""The types of assertions that a cell of a table may begin with."""


def comma_separated(text: str) -> list[str]:
    """Split a list in a text; quotes keep a comma.

    >>> comma_separated('a, "b, c"')
    ['a', 'b, c']
    """
    parts = re.findall(r'\s*(?:"((?:[^"]|"")*)"|([^,]*))\s*(?:,|$)', text)
    made = [(quoted.replace('""', '"') if quoted else bare).strip() for quoted, bare in parts]
    return made[:-1] if made and not made[-1] else made


@dataclass(slots=True)
class ForeignTests:
    """Reads the test cases of a configuration."""

    source: ForeignSuite
    root: Node
    default: ForeignTest = EMPTY

    def tests(self) -> list[ForeignTest]:
        """Return all test cases, one for each combination of variables with several values."""
        given = self.root.get("defaultTest")
        if given is not None:
            self.default = self._default(given)
        made: list[ForeignTest] = []
        tests = self.root.get("tests")
        listed = list(self._listed(tests, self.source.place)) if tests is not None else []
        for scenario in self._scenarios():
            listed += scenario
        if tests is None and not listed:
            listed = [replace(EMPTY, place=self.source.place)]
        for one in listed:
            made += self._multiplied(self._joined(one))
            if len(made) > MAX_TESTS:
                self.source.miss(one.place, "further tests", f"more than {MAX_TESTS:,} of them")
                return made[:MAX_TESTS]
        return made

    def _default(self, node: Node) -> ForeignTest:
        place = self.source.place.at(self.root.key_line("defaultTest"))
        if node.is_scalar:
            found = list(self._files(str(node.value), place, "defaultTest"))
            return found[0] if found else EMPTY
        return self._test(node, place) or EMPTY

    def _scenarios(self) -> Iterator[list[ForeignTest]]:
        node = self.root.get("scenarios")
        for one in node.elements() if node and node.is_list else ():
            place = self.source.place.at(one.line)
            if not one.is_mapping:
                self.source.miss(place, "a scenario", "write it here in place of a file")
                continue
            config, tests = one.get("config"), one.get("tests")
            shared = list(self._listed(config, place)) if config else [EMPTY]
            own = list(self._listed(tests, place)) if tests else [EMPTY]
            yield [self._over(outer, inner) for outer in shared for inner in own]

    @staticmethod
    def _over(outer: ForeignTest, inner: ForeignTest) -> ForeignTest:
        return replace(
            inner,
            vars={**outer.vars, **inner.vars},
            asserts=(*outer.asserts, *inner.asserts),
            place=inner.place if inner.place.file else outer.place,
            description=inner.description or outer.description,
            threshold=inner.threshold if inner.threshold is not None else outer.threshold,
            metadata={**outer.metadata, **inner.metadata},
            transform=inner.transform or outer.transform,
            provider=inner.provider or outer.provider,
            prefix=inner.prefix or outer.prefix,
            suffix=inner.suffix or outer.suffix,
            multiplies=outer.multiplies if inner.multiplies is None else inner.multiplies,
        )

    def _joined(self, test: ForeignTest) -> ForeignTest:
        joined = self._over(self.default, test)
        return replace(joined, description=test.description, place=test.place)

    def _listed(self, node: Node, place: Place) -> Iterator[ForeignTest]:
        if node.is_scalar:
            yield from self._files(str(node.value), place.at(node.line), "tests")
        elif node.is_list:
            for one in node.elements():
                if one.is_scalar:
                    yield from self._files(str(one.value), place.at(one.line), "tests")
                elif test := self._test(one, place.at(one.line)):
                    yield test
        elif node.get("path") is not None:
            self.source.miss(place.at(node.line), "tests", "they are made by code")
        elif test := self._test(node, place.at(node.line)):
            yield test

    def _files(self, name: str, place: Place, what: str) -> Iterator[ForeignTest]:
        if "://" in name.removeprefix("file://") or name.startswith(("http", "huggingface:")):
            self.source.miss(place, f"{what} {name}", "nothing is fetched; save it as a file")
            return
        name = name.removeprefix("file://")
        if _CODE.search(name):
            self.source.miss(place, f"{what} {name}", "it is code, and code is not run")
            return
        for path in self.source.find_all(name, place, what):
            yield from self._file(path, place)

    def _file(self, path: Path, place: Place) -> Iterator[ForeignTest]:
        text, ending = read_text(path), path.suffix.lower()
        own = Place(self.source.name_of(path))
        if ending in {".csv", ".tsv"}:
            for line, row in csv_rows(text):
                yield self._row(row, own.at(line))
        elif ending == ".jsonl":
            for line, value in json_rows(text):
                if isinstance(value, BrokenRow):
                    self.source.miss(own.at(line), "a test", "it is not valid JSON")
                elif test := self._test(Node.tree(value), own.at(line)):
                    yield test
        elif ending in {".yaml", ".yml", ".json"}:
            try:
                node, _ = parse(text, is_json=ending == ".json")
            except TreeError as error:
                self.source.miss(own.at(error.line), "tests", str(error).rstrip("."))
                return
            yield from self._listed(node, own)
        else:
            self.source.miss(place, f"tests {own.file}", "it is no file of tests")

    def _row(self, row: Mapping[str, str], place: Place) -> ForeignTest:
        """Read a row of a table: columns are variables, and __expected… assertions."""
        own = {key: value for key, value in row.items() if not key.startswith("__")}
        asserts = []
        for key, cell in row.items():
            if key.startswith("__expected") and cell.strip():
                table = {**assertion_of(cell.strip()), "metric": row.get("__metric") or None}
                asserts.append(self._assertion(Node.tree(table), place))
        for key in row:
            known = key.startswith(("__expected", "__metadata:"))
            if key.startswith("__") and not known and key not in _COLUMNS and row[key].strip():
                self.source.miss(place.at(1), f"column {key}", "there is no such setting")
        return ForeignTest(
            own,
            tuple(asserts),
            place,
            description=row.get("__description", ""),
            threshold=_number(row.get("__threshold")),
            metadata={
                key.removeprefix("__metadata:"): cell
                for key, cell in row.items()
                if key.startswith("__metadata:") and cell.strip()
            },
            prefix=row.get("__prefix", ""),
            suffix=row.get("__suffix", ""),
        )

    def _test(self, node: Node, place: Place) -> ForeignTest | None:
        if not node.is_mapping:
            self.source.miss(place, "a test", "it is no mapping")
            return None
        for key, below in node.items():
            if key not in _KNOWN:
                why = "every subject tries every task with every prompt"
                why = (
                    why if key in {"provider", "providers", "prompts"} else "it has no counterpart"
                )
                self.source.miss(place.at(below.line), f"test: {key}", why)
        options = node.get("options")
        for key, below in options.items() if options and options.is_mapping else ():
            if key not in _OPTIONS:
                what, why = f"options: {key}", "it has no counterpart"
                self.source.miss(place.at(below.line), what, why)
        own: Any = (plain(options) if options else None) or {}
        metadata: Any = plain(node.get("metadata") or Node(None)) or {}
        asserts = node.get("assert")
        given = [asserts] if asserts is not None and asserts.value is not None else []
        given = list(given[0].elements()) if given and given[0].is_list else given
        return ForeignTest(
            self._vars(node.get("vars"), place),
            tuple(self._assertion(one, place.at(one.line)) for one in given),
            place,
            description=str(plain(node.get("description") or Node("")) or ""),
            threshold=_number(plain(node.get("threshold") or Node(None))),
            metadata=metadata if isinstance(metadata, dict) else {},
            transform=own.get("transform"),
            provider=options.get("provider") if options else None,
            prefix=str(own.get("prefix") or ""),
            suffix=str(own.get("suffix") or ""),
            multiplies=not own["disableVarExpansion"] if "disableVarExpansion" in own else None,
        )

    def _vars(self, node: Node | None, place: Place) -> dict[str, Any]:
        if node is None or node.value is None:
            return {}
        if not node.is_mapping:
            found: dict[str, Any] = {}
            for one in node.elements() if node.is_list else [node]:
                found |= self._file_vars(one, place.at(one.line))
            return found
        return {
            name: value
            for name, below in (node.items() if node.is_mapping else ())
            for value in self._value(plain(below), place.at(below.line), name)
        }

    def _file_vars(self, node: Node, place: Place) -> dict[str, Any]:
        """Read variables from the files that a name or pattern means."""
        if not node.is_scalar:
            self.source.miss(place, "vars", "a file of variables has a name")
            return {}
        found: dict[str, Any] = {}
        name = str(node.value).removeprefix("file://")
        for path in self.source.find_all(name, place, "vars"):
            is_data = path.suffix.lower() in {".yaml", ".yml", ".json"}
            value = plain(self.source.document(path).root) if is_data else None
            if isinstance(value, dict):
                found |= value
            else:
                self.source.miss(place, f"vars {name}", "it is no mapping of variables")
        return found

    def _value(self, value: Any, place: Place, name: str) -> Iterator[Any]:
        """Yield the value of a variable, or the content of its file; nothing if there is none."""
        if not isinstance(value, str) or not value.startswith("file://"):
            yield value
            return
        if _CODE.search(value):
            self.source.miss(place, f"variable {name}: {value}", "it is code, and code is not run")
            return
        paths = self.source.find_all(value.removeprefix("file://"), place, f"variable {name}:")
        texts = [read_text(path).strip() for path in paths]
        if texts:
            yield texts if len(texts) > 1 else texts[0]

    def _assertion(self, node: Node, place: Place, depth: int = 0) -> ForeignAssertion:
        if (ref := node.get("$ref")) is not None:
            found = self.root.get(*str(ref.value).removeprefix("#/").split("/"))
            if found is None or depth > MAX_DEPTH:
                why = "there is no such template" if found is None else "it names itself"
                return ForeignAssertion(f"$ref {ref.value}", problem=why, place=place)
            return self._assertion(found, place, depth + 1)
        table: Any = plain(node) if node.is_mapping else None
        if not isinstance(table, dict) or not isinstance(table.get("type"), str):
            return ForeignAssertion("an assertion", problem="it has no type", place=place)
        below = node.get("assert")
        given = below.elements() if below is not None and below.is_list else ()
        parts = (self._assertion(one, place.at(one.line), depth + 1) for one in given)
        weight, threshold = _number(table.get("weight")), _number(table.get("threshold"))
        others = sorted(table.keys() - _PARTS - ({"assert"} if below is not None else set()))
        return ForeignAssertion(
            table["type"],
            table.get("value"),
            threshold,
            1.0 if weight is None else weight,
            str(table["metric"]) if table.get("metric") else None,
            table.get("transform"),
            node.get("provider"),
            tuple(parts),
            f"its key {others[0]!r} has no counterpart" if others else "",
            place,
        )

    def _multiplied(self, test: ForeignTest) -> list[ForeignTest]:
        """Return a test for each combination of the variables that are lists of texts."""
        if test.multiplies is False:
            return [test]
        values = [
            value if isinstance(value, list) and value and isinstance(value[0], str) else [value]
            for value in test.vars.values()
        ]
        size = 1
        for several in values:
            size *= len(several)
        if size > MAX_TESTS:
            self.source.miss(test.place, "a test", f"its variables make {size:,} combinations")
            return []
        return [
            replace(test, vars=dict(zip(test.vars, several, strict=True)))
            for several in product(*values)
        ]


_COLUMNS = {"__description", "__metric", "__threshold", "__prefix", "__suffix"}


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None
