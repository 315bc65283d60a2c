"""Behaviours: a check with its values, or a sentence for a judge."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from pennyweight.checks import CHECKS
from pennyweight.checks.attempt import OF, AttemptView
from pennyweight.checks.declaration import Check, CheckResult
from pennyweight.errors import PennyweightError, UsageError, unknown
from pennyweight.schema.kinds import listed

NOT = "not_"
MAX_NAME_LENGTH = 100
_OWN = ("name", "of")
_THOUGHTS = "(Found with the thoughts in the reply included.)"
_WAITING = {
    "code": "It has not run yet; 'pennyweight run --resume' runs it.",
    "judge": "The judge has not decided yet.",
    "person": "No person has decided yet; 'pennyweight review' asks.",
}


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One behaviour that is expected, or that must never be observed."""

    name: str
    key: str
    """The name of the check as written, with or without `not_`."""
    value: Any
    of: str = "response"
    problem: str = ""
    """Why it cannot be used; then it decides nothing."""
    _known: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """A cache of the arguments of the check."""

    @property
    def check(self) -> Check:
        """The check behind it."""
        return CHECKS[self.key if self.key in CHECKS else self.key.removeprefix(NOT)]

    @property
    def question(self) -> str:
        """The question for a judge or a person."""
        value = self.value
        return str(value.get("question") if isinstance(value, Mapping) else value)

    @property
    def mark(self) -> str:
        """A short hash of its content; stored verdicts are matched by it."""
        said = json.dumps([self.key.removeprefix(NOT), self.value, self.of], sort_keys=True)
        return hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=8).hexdigest()

    @property
    def parts(self) -> tuple[WeightedPart, ...]:
        """The behaviours that it combines, if it is about others."""
        if self.problem or self.check.by != "parts":
            return ()
        if "parts" not in self._known:
            self._known["parts"] = parts_of(self.value["parts"])
        parts: tuple[WeightedPart, ...] = self._known["parts"]
        return parts

    def leaves(self) -> Iterator[Behaviour]:
        """Yield the behaviours that decide it: its parts and theirs, or itself."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.behaviour.leaves()

    def plain(self) -> dict[str, Any]:
        """Return it as plain data, which `read_behaviour` reads."""
        own = {"name": self.name, self.key: self.value}
        return own if self.of == "response" else {**own, "of": self.of}

    def verdict(
        self, attempt: AttemptView, given: Mapping[str, CheckResult], *, forbidden: bool = False
    ) -> CheckResult:
        """Check an attempt; results of code, judges and persons are taken from `given`.

        What must not be found (it is `forbidden`, or has `not_`) is also looked for in thoughts.
        A check that raises an exception decides nothing, and its result is marked as an error.
        """
        if self.problem:  # of a check of the user, results are stored that need no code
            undecided = CheckResult(None, f"{self.key}: {self.problem}", error=True)
            found = given.get(self.mark, undecided)
            return found.negated() if self.key.startswith(NOT) else found
        negated = self.key not in CHECKS
        if self.check.by == "record":
            found = self.run(attempt)
            if forbidden != negated and not found.holds:
                thoughts = attempt.at(self.of, whole=True).text != attempt.at(self.of).text
                found = self._worse(found, self.run(attempt, whole=True)) if thoughts else found
        elif self.check.by == "parts":
            share = self.check.read(self.value)["share"]
            found = share_that_holds(share, self.parts, attempt, given, forbidden ^ negated)
        else:
            found = given.get(self.mark, CheckResult(None, _WAITING[self.check.by]))
        return found.negated() if negated else found

    @staticmethod
    def _worse(without_thoughts: CheckResult, whole: CheckResult) -> CheckResult:
        """Prefer a result from the whole reply to one that found nothing outside of thoughts."""
        if whole.holds is False or (without_thoughts.holds is None and not whole.holds):
            return without_thoughts
        return replace(whole, why=f"{whole.why} {_THOUGHTS}")

    def run(self, attempt: AttemptView, *, whole: bool = False) -> CheckResult:
        """Run the check itself, without applying `not_`."""
        try:
            if "arguments" not in self._known:
                self._known["arguments"] = self.check.read(self.value)
            return self.check.apply(attempt.at(self.of, whole=whole), self._known["arguments"])
        except Exception as error:  # of the check itself
            kind = "" if isinstance(error, PennyweightError) else f"{type(error).__name__}: "
            return CheckResult(None, f"{self.key} failed: {kind}{error}"[:400], error=True)


def read_behaviour(given: Any) -> Behaviour:
    """Read a behaviour; raise UsageError if it is invalid.

    >>> read_behaviour({"contains": "refund"}).name, read_behaviour("It greets the customer.").key
    ('contains: refund', 'judge')
    """
    behaviour = _parsed(given)
    behaviour.check.read(behaviour.value)
    if behaviour.check.by == "parts":
        for part in behaviour.value["parts"]:
            read_behaviour(_split_weight(part)[0])
    return behaviour


@dataclass(frozen=True, slots=True)
class WeightedPart:
    """A behaviour that others are combined with, and how much it counts."""

    behaviour: Behaviour
    weight: float = 1.0


def parts_of(given: Sequence[Any]) -> tuple[WeightedPart, ...]:
    """Read behaviours with weights; code that they name is not loaded."""
    split = map(_split_weight, given)
    return tuple(WeightedPart(stored_behaviour(one), weight) for one, weight in split)


def _split_weight(given: Any) -> tuple[Any, float]:
    if not isinstance(given, Mapping) or "weight" not in given:
        return given, 1.0
    weight = given["weight"]
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < inf:
        raise UsageError(f"weight must be a number of at least 0, not {weight!r}.")
    return {key: value for key, value in given.items() if key != "weight"}, float(weight)


def share_that_holds(
    share: float,
    parts: Sequence[WeightedPart],
    attempt: AttemptView,
    given: Mapping[str, CheckResult],
    forbidden: bool = False,
) -> CheckResult:
    """Decide whether enough parts hold; None if undecided parts make the difference."""
    found = [(part, part.behaviour.verdict(attempt, given, forbidden=forbidden)) for part in parts]
    total = sum(part.weight for part in parts)
    sure = sum(part.weight for part, one in found if one.holds)
    possible = sure + sum(part.weight for part, one in found if one.holds is None)
    least, most = (value / total if total else 0.0 for value in (sure, possible))
    holds = True if least >= share else None if most >= share else False
    missing = [part.behaviour.name for part, one in found if not one.holds]
    why = f"{least:.0%} hold; at least {share:.0%} is required.".replace("%", " %")
    why += f" Not: {'; '.join(missing[:5])}." if missing else ""
    broken = holds is None and any(one.error for _, one in found)
    evidence = tuple(excerpt for _, one in found for excerpt in one.evidence)
    return CheckResult(holds, why, evidence[:10], error=broken)


def _parsed(given: Any) -> Behaviour:
    """Read the form of a behaviour, but not the values of its check."""
    if isinstance(given, str) and (text := given.strip()):
        is_check = text.removeprefix(NOT) in CHECKS
        return Behaviour(text, text, None) if is_check else Behaviour(text, "judge", text)
    if not isinstance(given, Mapping):
        raise UsageError("a behaviour must be a check, such as {contains: refund}, or a sentence.")
    keys = [str(key) for key in given if key not in _OWN]
    for key in keys:
        if key not in CHECKS and key.removeprefix(NOT) not in CHECKS:
            raise UsageError(unknown("Check", key, [*CHECKS, *(NOT + n for n in CHECKS)], _LIST))
    if len(keys) != 1:
        found = f"this has {len(keys)}: {', '.join(keys)}" if keys else "this has none"
        raise UsageError(f"a behaviour has one check; {found}.")
    key = keys[0]
    of = given.get("of", "response")
    if of not in OF:
        raise UsageError(f"of must be {listed(OF)}, not {of!r}.")
    name = given.get("name")
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise UsageError("name must be text that is not empty.")
    value = json.loads(json.dumps(given[key], default=str))
    return Behaviour(name.strip() if name else _name(key, value), key, value, of)


def stored_behaviour(given: Any) -> Behaviour:
    """Read a stored behaviour; one that has become invalid decides nothing.

    Code that it names is not loaded: a store must not be able to run code.
    """
    try:
        behaviour = _parsed(given)
        if behaviour.check.by != "code":
            behaviour.check.read(behaviour.value)
        if behaviour.check.by == "parts":
            parts_of(behaviour.value["parts"])
        return behaviour
    except UsageError as error:
        table = given if isinstance(given, Mapping) else {}
        keys = [str(k) for k in table if k not in _OWN] or ["?"]
        name = str(table.get("name") or keys[0])
        of = str(table.get("of", "response"))
        return Behaviour(name, keys[0], table.get(keys[0]), of, str(error))


_LIST = f"Known checks: {', '.join(CHECKS)}; each also with {NOT} before it."


def _name(key: str, value: Any) -> str:
    if key in {"judge", "human"}:
        return str(value.get("question") if isinstance(value, Mapping) else value)
    if value is None or value is True:
        return key
    is_table = isinstance(value, Mapping)
    parts = [f"{k} {_written(v)}" for k, v in value.items()] if is_table else [_written(value)]
    text = f"{key}: {', '.join(parts)}"
    return text if len(text) <= MAX_NAME_LENGTH else text[: MAX_NAME_LENGTH - 1] + "…"


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def definitions() -> dict[str, Any]:
    """Describe behaviours and every check for the `$defs` of a JSON schema."""
    keys = {f"{mark}{name}": name for name in CHECKS for mark in ("", NOT)}
    behaviour = {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "The name in reports."},
                    "of": {"enum": list(OF), "description": "The text to look at."},
                    "weight": {"type": "number", "description": "How much a part counts."},
                    **{key: {"$ref": f"#/$defs/{name}"} for key, name in keys.items()},
                },
                "additionalProperties": False,
                "oneOf": [{"required": [key]} for key in keys],
            },
        ]
    }
    return {"behavior": behaviour, **{name: one.schema() for name, one in CHECKS.items()}}
