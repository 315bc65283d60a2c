"""Behaviours: a check with its values, or a sentence for a judge."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
        if self.problem:
            return CheckResult(None, f"{self.key}: {self.problem}", error=True)
        negated = self.key not in CHECKS
        if self.check.by == "record":
            found = self.run(attempt)
            if forbidden != negated and not found.holds:
                thoughts = attempt.at(self.of, whole=True).text != attempt.at(self.of).text
                found = self._worse(found, self.run(attempt, whole=True)) if thoughts else found
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
    return behaviour


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
        return behaviour
    except UsageError as error:
        table = given if isinstance(given, Mapping) else {}
        keys = [str(k) for k in table if k not in _OWN] or ["?"]
        name = str(table.get("name") or keys[0])
        return Behaviour(name, keys[0], table.get(keys[0]), problem=str(error))


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
                    **{key: {"$ref": f"#/$defs/{name}"} for key, name in keys.items()},
                },
                "additionalProperties": False,
                "oneOf": [{"required": [key]} for key in keys],
            },
        ]
    }
    return {"behavior": behaviour, **{name: one.schema() for name, one in CHECKS.items()}}
