"""A behaviour as a person writes it: a check with its values, or a sentence for a judge."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pennyweight.checks import CHECKS
from pennyweight.checks.attempt import OF
from pennyweight.checks.declaration import CheckResult
from pennyweight.errors import PennyweightError, UsageError, unknown

if TYPE_CHECKING:
    from pennyweight.checks.attempt import AttemptView
    from pennyweight.checks.declaration import Check

NOT = "not_"
LONGEST = 100
_OWN = ("name", "of")
_THOUGHTS = "(What it thought aloud was looked at too.)"
_WAITING = {
    "code": "It was not run yet; 'pennyweight run --resume' runs it.",
    "judge": "The judge has not said yet.",
    "person": "No person has said yet; 'pennyweight review' asks.",
}


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One thing that is to be seen, or never to be seen."""

    name: str
    key: str
    """The check's name as it was written, with `not_` before it or not."""
    value: Any
    of: str = "response"
    problem: str = ""
    """What is wrong with it; then it can decide nothing."""
    _known: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What was worked out once: the check's arguments, as they were read."""

    @property
    def check(self) -> Check:
        """The check behind it."""
        return CHECKS[self.key if self.key in CHECKS else self.key.removeprefix(NOT)]

    @property
    def question(self) -> str:
        """What a judge or a person is asked."""
        value = self.value
        return str(value.get("question") if isinstance(value, Mapping) else value)

    @property
    def mark(self) -> str:
        """A short hash of what it says; verdicts about anything else do not count for it."""
        said = json.dumps([self.key.removeprefix(NOT), self.value, self.of], sort_keys=True)
        return hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=8).hexdigest()

    def plain(self) -> dict[str, Any]:
        """Give it as plain data, as `read_behaviour` reads it."""
        own = {"name": self.name, self.key: self.value}
        return own if self.of == "response" else {**own, "of": self.of}

    def verdict(
        self, attempt: AttemptView, given: Mapping[str, CheckResult], *, forbidden: bool = False
    ) -> CheckResult:
        """Check an attempt; what is not for a record to say is taken from the verdicts given.

        What must not be found (it is `forbidden`, or has a `not_`) is looked for in all that was
        said, thoughts too. A check that breaks has an error to its name, and decides nothing.
        """
        if self.problem:
            return CheckResult(None, f"{self.key}: {self.problem}", error=True)
        negated = self.key not in CHECKS
        if self.check.by == "record":
            found = self.run(attempt)
            if forbidden != negated and not found.holds and self._hides(attempt):
                found = self._worse(found, self.run(attempt, whole=True))
        else:
            found = given.get(self.mark, CheckResult(None, _WAITING[self.check.by]))
        return found.negated() if negated else found

    @staticmethod
    def _worse(without_thoughts: CheckResult, whole: CheckResult) -> CheckResult:
        """Take what was found in the whole of a reply over nothing found in what was said."""
        if whole.holds is False or (without_thoughts.holds is None and not whole.holds):
            return without_thoughts
        return replace(whole, why=f"{whole.why} {_THOUGHTS}")

    def _hides(self, attempt: AttemptView) -> bool:
        """Whether the text it looks at is not all that was said there."""
        return attempt.at(self.of).text != attempt.at(self.of, whole=True).text

    def run(self, attempt: AttemptView, *, whole: bool = False) -> CheckResult:
        """Run the check itself, whoever's it is; the `not_` before it is not applied."""
        try:
            if "arguments" not in self._known:
                self._known["arguments"] = self.check.read(self.value)
            return self.check.apply(attempt.at(self.of, whole=whole), self._known["arguments"])
        except Exception as error:  # whatever it is, it is the check's own
            kind = "" if isinstance(error, PennyweightError) else f"{type(error).__name__}: "
            return CheckResult(None, f"{self.key} failed: {kind}{error}"[:400], error=True)


def read_behaviour(given: Any) -> Behaviour:
    """Read a behaviour; says what is wrong with it.

    >>> read_behaviour({"contains": "refund"}).name, read_behaviour("It greets the customer.").key
    ('contains: refund', 'judge')
    """
    made = _written(given)
    made.check.read(made.value)
    return made


def _written(given: Any) -> Behaviour:
    """Read how a behaviour is written, but not yet the values of its check."""
    if isinstance(given, str) and given.strip():
        return _sentence(given.strip())
    if not isinstance(given, Mapping):
        raise UsageError("a behaviour is a check, such as {contains: refund}, or a sentence.")
    keys = [str(key) for key in given if key not in _OWN]
    for key in keys:
        _known(key)
    if len(keys) != 1:
        named = f"these are {len(keys)}: {', '.join(keys)}" if keys else "there is none"
        raise UsageError(f"a behaviour is one check; {named}.")
    key = keys[0]
    of = given.get("of", "response")
    if of not in OF:
        raise UsageError(f"of: {of!r} is no text of an attempt. There are: {', '.join(OF)}.")
    name = given.get("name")
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise UsageError("name: a behaviour's name is text.")
    value = _plain(given[key])
    return Behaviour(name.strip() if name else _name(key, value), key, value, of)


def stored_behaviour(given: Any) -> Behaviour:
    """Read a behaviour that was kept; one that cannot be read any more decides nothing.

    Code that it names is not looked for: it is not to run out of a store.
    """
    try:
        made = _written(given)
        if made.check.by != "code":
            made.check.read(made.value)
        return made
    except UsageError as error:
        table = given if isinstance(given, Mapping) else {}
        keys = [str(k) for k in table if k not in _OWN] or ["?"]
        name = str(table.get("name") or keys[0])
        return Behaviour(name, keys[0], table.get(keys[0]), problem=str(error))


def _sentence(text: str) -> Behaviour:
    bare = text.removeprefix(NOT)
    if bare in CHECKS:
        return Behaviour(text, text, None)
    return Behaviour(text, "judge", text)


def _known(key: str) -> None:
    if key not in CHECKS and key.removeprefix(NOT) not in CHECKS:
        raise UsageError(unknown("Check", key, [*CHECKS, *(NOT + n for n in CHECKS)], _LIST))


_LIST = f"There are: {', '.join(CHECKS)}; each also with {NOT} before it."


def _plain(value: Any) -> Any:
    """Make plain JSON of what was read from a suite, numbers as numbers."""
    return json.loads(json.dumps(value, default=str))


def _name(key: str, value: Any) -> str:
    if key in {"judge", "human"}:
        return str(value.get("question") if isinstance(value, Mapping) else value)
    if value is None or value is True:
        return key
    if isinstance(value, Mapping):
        said = ", ".join(f"{k} {_said(v)}" for k, v in value.items())
    else:
        said = _said(value)
    text = f"{key}: {said}"
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _said(value: Any) -> str:
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
                    "name": {"type": "string", "description": "What it is called in reports."},
                    "of": {"enum": list(OF), "description": "The text that is looked at."},
                    **{key: {"$ref": f"#/$defs/{name}"} for key, name in keys.items()},
                },
                "additionalProperties": False,
                "oneOf": [{"required": [key]} for key in keys],
            },
        ]
    }
    return {"behavior": behaviour, **{name: one.schema() for name, one in CHECKS.items()}}
