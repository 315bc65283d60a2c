"""A text that a regular expression matches, as short as its syntax allows.

It knows the common syntax. Whoever uses the text searches it with the pattern itself, so a pattern
that says more than is read here is noticed there.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_REPEATS = 1000
_CLASSES = {"d": "0", "w": "a", "s": " ", "D": "a", "W": " ", "S": "a", "h": " ", "v": "\n"}
_ENDS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "a": "\a"}
_BETWEEN = frozenset("bBAzZ<>")
"""Escapes that match between characters."""
_OTHERS = "a0 -.:A_\n,;!#"
"""Characters that may be outside of a negated class."""


class PatternError(ValueError):
    """A pattern has a syntax that is not read here."""


def example(pattern: str, group: str | None = None) -> str | None:
    r"""Write a text that a pattern matches; None if its syntax is not known here.

    `group` stands in place of its first group.

    >>> example(r"(?i)The answer is:?\s+([0-9]+)\b", "42")
    'The answer is 42'
    >>> example("^(?:yes|no)[.!]{1,2}$"), example(r"(a)\1")
    ('yes.', None)
    """
    reader = _Reader(pattern, group)
    try:
        written = reader.alternatives()
    except (PatternError, IndexError, ValueError):
        return None
    return written if reader.at == len(pattern) else None


def first_group(pattern: str) -> str | None:
    """Return the pattern inside the first group; None if there is none, or it cannot be read.

    >>> first_group("(?:a|b)=([(][0-9]+)")
    '[(][0-9]+'
    """
    reader = _Reader(pattern, "")
    try:
        reader.alternatives()
    except (PatternError, IndexError, ValueError):
        return None
    start, end = reader.inside
    return pattern[start:end] if end else None


@dataclass(slots=True)
class _Reader:
    """Reads a pattern from left to right and writes what it matches."""

    pattern: str
    group: str | None
    at: int = 0
    groups: int = 0
    has_group: bool = False
    """Whether what was read last contains the first group."""
    inside: tuple[int, int] = (0, 0)
    """Where the pattern inside the first group begins and ends."""

    def alternatives(self) -> str:
        """Read until the pattern or its group ends; the first alternative is written.

        One with the first group is preferred: what is looked for is in it.
        """
        written, has_group = self._sequence()
        while self.at < len(self.pattern) and self.pattern[self.at] == "|":
            self.at += 1
            other, other_has = self._sequence()
            if other_has and not has_group:
                written, has_group = other, True
        self.has_group = has_group
        return written

    def _sequence(self) -> tuple[str, bool]:
        parts: list[str] = []
        has_group = False
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            self.has_group = False
            part = self._item()
            least = self._least()
            if self.has_group:
                least, has_group = 1, True
            parts.append(part * least)
        return "".join(parts), has_group

    def _item(self) -> str:
        sign = self.pattern[self.at]
        self.at += 1
        if sign == "(":
            return self._group()
        if sign == "[":
            return self._class()
        if sign == "\\":
            return self._escape()
        if sign == ".":
            return "a"
        return "" if sign in "^$" else sign

    def _group(self) -> str:
        captures = True
        if self.pattern[self.at] == "?":
            end = min(
                (i for i in (self.pattern.find(s, self.at) for s in ":>)") if i >= 0),
                default=-1,
            )
            mark = self.pattern[self.at + 1 : end + 1]
            if mark[:1] in {"=", "!"} or mark[:2] in {"<=", "<!"} or end < 0:
                raise PatternError("it looks ahead or back")
            self.at = end + 1
            if mark.endswith(")"):  # flags for the rest
                if "x" in mark:
                    raise PatternError("its spaces mean nothing")
                return ""
            captures = mark.endswith(">")
        self.groups += captures
        is_first = captures and self.groups == 1
        start = self.at
        written = self.alternatives()
        if self.pattern[self.at] != ")":
            raise PatternError("a group does not end")
        if is_first:
            self.inside = start, self.at
            self.has_group = True
        self.at += 1
        return self.group if is_first and self.group is not None else written

    def _escape(self) -> str:
        sign = self.pattern[self.at]
        self.at += 1
        if sign in {"p", "P"}:
            if self.pattern[self.at] == "{":
                self.at = self.pattern.index("}", self.at)
            self.at += 1
            return "a"
        if sign in _BETWEEN:
            return ""
        if sign in "xuU" or sign.isdigit():
            raise PatternError("it refers to a group or a code point")
        return _CLASSES.get(sign) or _ENDS.get(sign) or sign

    def _class(self) -> str:
        negated = self.pattern[self.at] == "^"
        self.at += negated
        singles: list[str] = []
        ranges: list[tuple[str, str]] = []
        first = True
        while self.pattern[self.at] != "]" or first:
            first = False
            sign = self.pattern[self.at]
            self.at += 1
            if sign == "[":
                raise PatternError("a class inside a class")
            if sign == "\\":
                sign = self._escape() or "\b"
            is_range = self.pattern[self.at] == "-" and self.pattern[self.at + 1] != "]"
            if is_range:
                self.at += 1
                last = self._item()
                ranges.append((sign, last))
            else:
                singles.append(sign)
        self.at += 1
        if not negated:
            return (singles or [first for first, _ in ranges])[0]
        for other in _OTHERS:
            if other not in singles and not any(a <= other <= b for a, b in ranges):
                return other
        raise PatternError("nothing is outside of the class")

    def _least(self) -> int:
        """Read how often the item before is repeated; return the smallest number."""
        if self.at >= len(self.pattern):
            return 1
        sign = self.pattern[self.at]
        least = {"*": 0, "?": 0, "+": 1}.get(sign)
        if least is not None:
            self.at += 1
        elif sign == "{":
            end = self.pattern.index("}", self.at)
            least = int(self.pattern[self.at + 1 : end].partition(",")[0] or 0)
            if least > MAX_REPEATS:
                raise PatternError("it repeats too often")
            self.at = end + 1
        else:
            return 1
        if self.at < len(self.pattern) and self.pattern[self.at] in "?+":
            self.at += 1
        return least
