"""Arithmetic in running text: reading an expression exactly, or not at all.

A reader of running text has to be careful rather than complete. What it cannot read with certainty
(variables, functions, mixed units, ratios, a number that belongs to the sentence around it) is left
out, whether it would hold or not. The words that decide are in `arithmetic_tokens.py`.
"""

from __future__ import annotations

from typing import TypeVar

from pennyweight.text.arithmetic_tokens import (
    AFTER,
    ARTICLES,
    BEFORE,
    GO_ON,
    STARTS,
    TOTALS,
    UNIT_LETTERS,
    NumberOf,
    Token,
    is_variable,
    number_of,
    tokens_of,
)
from pennyweight.text.arithmetic_values import Value, product
from pennyweight.text.rational import power, root, written
from pennyweight.text.units import DIMENSIONS, NONE, PER, Units, mixed

LONGEST_NUMBER = 30
DEEPEST = 16
LONGEST_LINE = 2_000


T = TypeVar("T")


class Unreadable(Exception):  # noqa: N818 - nobody made a mistake
    """What begins here cannot be read with certainty; `args[0]` is the token to go on from."""


def canonical(text: str) -> str | None:
    r"""Write a text that is one calculation or number in its lowest terms; None for another text.

    >>> canonical("1/2"), canonical("0.50"), canonical(r"\frac{3}{6}"), canonical("x/2")
    ('1/2', '1/2', '1/2', None)
    """
    tokens = [t for t in tokens_of(text, 0, min(len(text), LONGEST_LINE)) if t.kind != "money"]
    reader = Reader(tokens)
    value = reader.beginning() if tokens else None
    if value is None or reader.at < len(tokens) or value.percent or value.rounded:
        return None
    return written(value.ratio)


class Reader:
    """Reads an expression from the tokens of one side."""

    def __init__(self, tokens: list[Token], number: NumberOf = number_of) -> None:
        self.tokens, self.number = tokens, number
        self.kinds = [token.kind for token in tokens] + ["end"]
        self.at = 0
        self.depth = 0
        self.fractions: list[object] = []
        self.operators = 0
        self.rounded = False
        opened: list[int] = []
        for i, kind in enumerate(self.kinds):
            if kind == "open":
                opened.append(i)
            elif kind == "close":
                if opened:
                    opened.pop()
                else:
                    self.kinds[i] = "closed"
        for i in opened:
            self.kinds[i] = "opened"

    def beginning(self) -> Value | None:
        """Read the expression that the side begins with; prose may follow."""
        try:
            value = self._whole(0)
        except Unreadable:
            return None
        kind = self.kinds[self.at]
        dash = kind == "minus" and self.kinds[self.at + 1] in {"word", "end"}
        ended = kind in {"end", "word", "closed", "unit", "opened"} or dash
        remark = kind == "open" and self.kinds[self.at + 1] == "word"  # 20 (square feet)
        return value if ended or (remark and not self.tokens[self.at].attached) else None

    def end(self) -> Value | None:
        """Read the expression that the side ends with; prose may precede it."""
        start = 0
        while start < len(self.tokens):
            if self.kinds[start] in STARTS or self._is_sign(start):
                try:
                    value = self._whole(start)
                except Unreadable as error:
                    start = max(start + 1, error.args[0])
                    continue
                if self.at == len(self.tokens):
                    return value if self._begins(start) else None
                start = max(start, self.at - 1)
            start += 1
        return None

    def _is_sign(self, at: int) -> bool:
        """Whether a minus belongs to the number after it, as in «is -5 + 7»; not a dash."""
        if self.kinds[at] != "minus" or at == 0:
            return self.kinds[at] == "minus"
        word = self.kinds[at - 1] == "word" and not self.tokens[at].attached
        return word and at + 1 < len(self.tokens) and self.tokens[at + 1].attached

    def _begins(self, start: int) -> bool:
        """Whether an expression begins here and is not a part of what precedes it."""
        if start == 0:
            return True
        before, first = self.tokens[start - 1], self.tokens[start]
        if before.kind == "word":
            word = before.text.lower()
            if word == "of" and start > 1:
                return self.tokens[start - 2].text.lower() in TOTALS
            return not first.attached and word not in BEFORE and not is_variable(before.text)
        if self.kinds[max(0, start - 3) : start] == ["open", "word", "close"]:  # (iv) 2 + 3
            return start == 3 or not is_variable(self.tokens[start - 2].text)
        return self.kinds[start - 1] in {"opened", "closed", "unit"}

    def _whole(self, start: int) -> Value:
        self.at, self.depth, self.operators = start, 0, 0
        self.fractions, self.rounded = [], False
        value = self._sum()
        last = self.at - 1
        while self.kinds[last] in {"word", "unit"}:
            last -= 1
        value.span = self.tokens[start].start, self.tokens[last].end
        value.rounded = self.rounded
        if self.operators:
            value.fractions = tuple(self.fractions)
        else:
            value.first = None
        return value

    def _sum(self) -> Value:
        value = self._product()
        value.first = value.first or value.ratio
        while self._operator({"plus", "minus"}):
            sign = -1 if self.kinds[self.at] == "minus" else 1
            self.at += 1
            other = self._product()
            if value.percent != other.percent or mixed(value.units, other.units):
                raise Unreadable(self.at)
            (a, b), (c, d) = value.ratio, other.ratio
            value.ratio = a * d + sign * c * b, b * d
            value.units, value.scale = value.units | other.units, None
            value.rates |= other.rates
        return value

    def _product(self) -> Value:
        value = self._factor()
        first = value.ratio
        while True:
            kind = self.kinds[self.at]
            if self._operator({"times", "over"}) or self._is_cross():
                self.at += 1
            elif self._is_share(value):
                kind = "times"
            elif kind == "open" and self.tokens[self.at].attached:
                kind = "times"  # 2(3 + 4)
            else:
                break
            if kind == "open" or not self._starts(self.at):
                raise Unreadable(self.at)
            other = self._factor()
            (a, b), (c, d) = value.ratio, other.ratio
            if kind == "over":
                if c == 0 or mixed(value.units, other.units):
                    raise Unreadable(self.at)
                c, d = (d, c) if c > 0 else (-d, -c)
            self.operators += 1
            value = self._known(product((a * c, b * d), value, other))
        value.first = first
        return value

    def _factor(self) -> Value:
        if self.kinds[self.at] == "minus":
            self.at += 1
            value = self._factor()
            value.ratio = -value.ratio[0], value.ratio[1]
            return value
        value = self._atom()
        kind = self.kinds[self.at]
        if kind in {"power", "square"}:
            self.at += 1
            if kind == "square":
                exponent = (2 if self.tokens[self.at - 1].text == "²" else 3, 1)
            else:
                exponent = self._factor().ratio
            self.operators += 1
            value = Value(self._known(power(value.ratio, exponent)))
        return value

    def _atom(self) -> Value:
        kind = self.kinds[self.at]
        if kind == "money":
            self.at += 1
            kind = self.kinds[self.at]
            if kind == "minus" and self.kinds[self.at + 1] == "number":  # $-5
                return self._factor()
            if kind not in {"number", "frac"}:
                raise Unreadable(self.at)
        if kind == "number":
            return self._number()
        self.depth += 1
        if self.depth > DEEPEST:
            raise Unreadable(self.at)
        self.at += 1
        if kind == "open":
            value = self._inside()
            self._units(value)
        elif kind == "frac":
            top, bottom = self._arguments()
            if bottom.ratio[0] == 0:
                raise Unreadable(self.at)
            sign = 1 if bottom.ratio[0] > 0 else -1
            (a, b), (c, d) = top.ratio, bottom.ratio
            value = self._known(product((sign * a * d, sign * b * c), top, bottom))
            self.operators += 1
            self._units(value)
        elif kind == "root" and self.kinds[self.at] in {"number", "open"}:
            value = self._root()
        else:
            raise Unreadable(self.at)
        self.depth -= 1
        return value

    def _root(self) -> Value:
        degree = (2, 1)
        if self.tokens[self.at].text == "[":  # \sqrt[3]{27}
            degree = self._atom().ratio
            if self.kinds[self.at] != "open":
                raise Unreadable(self.at)
        found, exact = self._known(root(self._atom().ratio, degree))
        self.rounded = self.rounded or not exact
        self.operators += 1
        return Value(found)

    def _known(self, found: T | None) -> T:
        if found is None:
            raise Unreadable(self.at)
        return found

    def _arguments(self) -> list[Value]:
        r"""Read the two arguments of a fraction; without braces each is one digit: \frac12."""
        found: list[Value] = []
        while len(found) < 2:
            if self.kinds[self.at] != "number":
                found.append(self._braced())
                continue
            digits = str(self.number(self.tokens[self.at])[2])  # so there is no plan for it
            if not digits.isdigit() or len(digits) > 2 - len(found):
                raise Unreadable(self.at)
            found += [Value((int(digit), 1)) for digit in digits]
            self.at += 1
        return found

    def _braced(self) -> Value:
        if self.kinds[self.at] != "open":
            raise Unreadable(self.at)
        self.at += 1
        return self._inside()

    def _inside(self) -> Value:
        value = self._sum()
        if self.kinds[self.at] != "close":
            raise Unreadable(self.at)
        self.at += 1
        value.scale, value.first = None, None
        return value

    def _number(self) -> Value:
        token = self.tokens[self.at]
        if len(token.text) > LONGEST_NUMBER:
            raise Unreadable(self.at)
        top, scale, text = self.number(token)
        value, whole = Value((top, scale), scale), "." not in token.text
        if not whole:
            self.fractions.append(text)
        self.at += 1
        if self.tokens[self.at - 2].kind == "money" and self.at > 1:
            value.units = DIMENSIONS["dollar"]
        self._fraction_after(value, whole=whole)
        if self.kinds[self.at] == "percent":
            self.at += 1
            value.ratio, value.percent = (value.ratio[0], value.ratio[1] * 100), True
        self._units(value)
        return value

    def _fraction_after(self, value: Value, *, whole: bool) -> None:
        """Read the fraction of a mixed number: 2 1/2."""
        parts = self.kinds[self.at : self.at + 3]
        if parts != ["number", "over", "number"] or self.tokens[self.at].attached:
            return
        first, second = self.tokens[self.at], self.tokens[self.at + 2]
        top, bottom = self.number(first)[0], self.number(second)[0]
        if not (whole and first.text.isdigit() and second.text.isdigit() and top < bottom):
            raise Unreadable(self.at)
        value.ratio = value.ratio[0] * bottom + top, bottom
        value.scale = None
        self.operators += 1
        self.at += 3

    def _units(self, value: Value) -> None:
        """Pass over the words after a number that say of what it is."""
        if self.kinds[self.at] == "money":
            value.units = DIMENSIONS["cent"] if self.tokens[self.at].text == "¢" else value.units
            self.at += 1
        at, last = self.at, self.at
        if self._is_rate():
            value.rates, last = self._unit(at + 1), at + 2
        while self.kinds[last] in {"word", "unit"} and last - at < 4 and not self._is_cross(last):
            word, spaced = self.tokens[last].text, not self.tokens[last].attached
            variable = is_variable(word) and not (spaced and word in UNIT_LETTERS)
            if last == at and (variable or word.lower() in AFTER):
                raise Unreadable(at)
            if variable:
                return  # (8 - 2) / 2 and b = 5
            if word.lower() == "of":
                break
            if last > at and self.tokens[last - 1].text.lower() in PER:
                value.rates = self._unit(last)
            else:
                value.units = value.units or self._unit(last)
            last += 1
            if self.kinds[last] == "over" and self.kinds[last + 1] in {"word", "unit"}:
                value.rates = self._unit(last + 1)
                last += 2  # miles/hour
                break
        if self.kinds[last] in GO_ON or self._is_cross(last):
            self.at = last

    def _unit(self, at: int) -> Units:
        word = self.tokens[at].text
        if self.kinds[at] == "unit":  # \text{ hours}
            word = word[word.index("{") + 1 : -1].strip()
        return DIMENSIONS.get(word.lower(), NONE)

    def _is_rate(self) -> bool:
        """Whether a unit follows without a number, as in $12.50/hour."""
        if self.kinds[self.at : self.at + 2] != ["over", "word"]:
            return False
        if is_variable(self.tokens[self.at + 1].text):
            raise Unreadable(self.at)
        return True

    def _operator(self, kinds: set[str]) -> bool:
        """Whether an operator of these kinds follows, with something to its right."""
        if self.kinds[self.at] not in kinds:
            return False
        if not self._starts(self.at + 1):
            if self.kinds[self.at] == "minus" and self.kinds[self.at + 1] in {"word", "end"}:
                return False  # a dash
            raise Unreadable(self.at + 1)
        self.operators += 1
        return True

    def _starts(self, at: int) -> bool:
        return self.kinds[at] in STARTS or self.kinds[at] == "minus"

    def _is_cross(self, at: int | None = None) -> bool:
        """Whether the letter x stands for a multiplication here."""
        at = self.at if at is None else at
        letter = self.kinds[at] == "word" and self.tokens[at].text in {"x", "X"}
        return letter and self.kinds[at + 1] in STARTS  # 4x - 31 has a variable

    def _is_share(self, value: Value) -> bool:
        """Whether «of» follows a share, as in 20% of 50 or 1/2 of the 10; passes over it."""
        if self.kinds[self.at] != "word" or self.tokens[self.at].text.lower() != "of":
            return False
        at = self.at + 1
        if self.kinds[at] == "word" and self.tokens[at].text.lower() in ARTICLES:
            at += 1
        share = value.percent or (value.scale is None and 0 < value.ratio[0] < value.ratio[1])
        if not (share and self.kinds[at] in STARTS):
            return False
        self.at = at
        return True
