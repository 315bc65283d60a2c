"""Whether an answer is correct: exactly, or as loosely as a suite asks for."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Context, Decimal, DecimalException
from importlib.util import find_spec
from typing import Any

import polars as pl

from pennyweight.errors import UsageError
from pennyweight.text.normalize import normalize
from pennyweight.text.rules import check_regex, named, rule_schema

KINDS: dict[str, str] = {
    "exact": "the same text, or the same number exactly",
    "text": "the same text: case counts, and so does how a number is written",
    "verbatim": "the same text to the letter, once what it ignores is removed from both",
    "numeric": "the same number, within a tolerance if one is given",
    "choice": "the same letter, or the text of the choice",
    "label": "the target as a whole word, alone or before punctuation, and no other label",
    "contains": "the answer contains the target",
    "regex": "the target is a regular expression that matches in the answer",
    "any_of": "one of several targets: a list, or separated by a given sign",
    "math": "the same in mathematics, as far as math-verify can tell",
    "none": "nothing: no answer is right or wrong",
}


@dataclass(frozen=True, slots=True)
class MatchRule:
    """How an answer is compared with its target."""

    kind: str = "exact"
    absolute: Decimal = Decimal(0)
    relative: Decimal = Decimal(0)
    """A tolerance, as a share of the target."""
    separator: str = ""
    """The separator of several targets; empty for a JSON list."""
    each: str = "exact"
    """How each of several targets is compared."""
    ignore: tuple[str, ...] = ()
    """Patterns whose matches `verbatim` removes, one after the other."""
    case: bool = True
    punctuation: bool = True
    digits: bool = True
    """Whether these count where texts are compared verbatim."""
    labels: tuple[str, ...] = ()
    """All labels; an answer that names two of them is wrong."""

    @classmethod
    def parse(cls, given: object) -> MatchRule:
        """Read a rule from a suite (`{numeric: 0.01}`) or an option (`numeric=1%`).

        >>> MatchRule.parse("numeric=0.01") == MatchRule.parse({"numeric": {"absolute": 0.01}})
        True
        """
        kind, value = named(given, KINDS, "The way to match")
        if value is None:
            return cls(kind)
        if kind == "numeric":
            return _numeric_rule(cls(kind), value)
        if kind == "any_of":
            return _any_of_rule(cls(kind), value)
        if kind == "verbatim":
            return _verbatim_rule(cls(kind), value)
        if kind == "label":
            return cls(kind, labels=_labels(value))
        raise UsageError(f"{kind} takes no value; write only {kind!r}.")

    def plain(self) -> dict[str, Any]:
        """Return it as plain data, as a run stores it.

        >>> MatchRule("text").plain()
        {'kind': 'text', 'absolute': '0', 'relative': '0', 'separator': '', 'each': 'exact'}
        """
        numbers = {"absolute": str(self.absolute), "relative": str(self.relative)}
        texts = {"separator": self.separator, "each": self.each}
        ignored = {"ignore": list(self.ignore)} if self.ignore else {}
        flags = {name: False for name in _COUNTED if not getattr(self, name)}
        labels = {"labels": list(self.labels)} if self.labels else {}
        return {"kind": self.kind, **numbers, **texts, **ignored, **flags, **labels}

    @classmethod
    def stored(cls, plain: Mapping[str, Any]) -> MatchRule:
        """Read what `plain` returned."""
        numbers = {n: Decimal(plain[n]) for n in ("absolute", "relative") if n in plain}
        lists = {n: tuple(plain[n]) for n in ("ignore", "labels") if n in plain}
        return cls(**{**plain, **numbers, **lists})

    def missing(self) -> str | None:
        """Return what has to be installed first; None if nothing is missing."""
        if "math" in {self.kind, self.each} and find_spec("math_verify") is None:
            return "match: math needs the package math-verify: pip install 'pennyweight[math]'."
        return None

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """Return the JSON schema of what `parse` reads."""
        number = {"type": ["number", "string"]}
        tolerances = {"absolute": number, "relative": number}
        texts = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
        ignored = {"ignore": texts, **{name: {"type": "boolean"} for name in _COUNTED}}
        nested = {"verbatim": _closed(ignored)}
        each = {"anyOf": [{"enum": sorted(_EACH)}, _closed(nested)]}
        several = {"separator": {"type": "string"}, "match": each}
        labels = {"type": "array", "items": {"type": ["string", "number", "boolean"]}}
        return rule_schema(
            KINDS,
            {
                "numeric": {"anyOf": [number, _closed(tolerances)]},
                "any_of": {"anyOf": [{"type": "string"}, _closed(several)]},
                "verbatim": _closed(ignored),
                "label": {"anyOf": [{"type": "string"}, labels]},
            },
        )


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _numeric_rule(rule: MatchRule, value: Any) -> MatchRule:
    given = value if isinstance(value, Mapping) else {"absolute": value}
    for name, text in given.items():
        if name not in {"absolute", "relative"}:
            raise UsageError(f"numeric takes 'absolute' and 'relative', not {name!r}.")
        percent = str(text).strip().endswith("%")
        tolerance = _tolerance(str(text).strip().removesuffix("%"))
        if percent or name == "relative":
            rule = replace(rule, relative=tolerance / 100 if percent else tolerance)
        else:
            rule = replace(rule, absolute=tolerance)
    return rule


def _tolerance(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except DecimalException:
        number = Decimal(-1)
    if not number.is_finite() or number < 0:
        raise UsageError(f"A tolerance is a number of at least 0, or a percentage, not {text!r}.")
    return number


def _any_of_rule(rule: MatchRule, value: Any) -> MatchRule:
    given = value if isinstance(value, Mapping) else {"separator": value}
    for name, text in given.items():
        if name == "separator" and isinstance(text, str) and text:
            rule = replace(rule, separator=text)
        elif name == "match" and isinstance(text, str) and text in _EACH:
            rule = replace(rule, each=text)
        elif name == "match" and isinstance(text, Mapping) and [*text] == ["verbatim"]:
            rule = _verbatim_rule(replace(rule, each="verbatim"), text["verbatim"])
        else:
            raise UsageError(
                "any_of takes 'separator' (text) and 'match' "
                f"({', '.join(sorted(_EACH))}), not {name}: {text!r}."
            )
    return rule


_COUNTED = ("case", "punctuation", "digits")


def _verbatim_rule(rule: MatchRule, value: Any) -> MatchRule:
    known = f"'ignore' (patterns), {', '.join(map(repr, _COUNTED))} (true or false)"
    if not isinstance(value, Mapping):
        raise UsageError(f"verbatim takes {known}, not {value!r}.")
    counted: dict[str, Any] = {}
    for name, given in value.items():
        patterns = [given] if isinstance(given, str) else given
        if name in _COUNTED and isinstance(given, bool):
            counted[name] = given
        elif name == "ignore" and isinstance(patterns, list):
            if not all(isinstance(pattern, str) for pattern in patterns):
                raise UsageError(f"ignore takes patterns, which are texts, not {given!r}.")
            for pattern in patterns:
                check_regex(pattern)
            rule = replace(rule, ignore=tuple(patterns))
        else:
            raise UsageError(f"verbatim takes {known}, not {name}: {given!r}.")
    return replace(rule, **counted)


def _labels(value: Any) -> tuple[str, ...]:
    """Read labels: a list, or a text with commas."""
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or isinstance(next(iter(given), None), list | dict):
        raise UsageError(f"label takes the labels as a list, or with commas, not {value!r}.")
    read = tuple(dict.fromkeys(text for label in given if (text := _as_text(label).strip())))
    if len(read) < 2:
        raise UsageError("label needs at least two labels, as in label=yes,no.")
    return read


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def matches(answer: pl.Expr, target: pl.Expr, rule: MatchRule) -> pl.Expr:
    """Compare answers with targets. A missing answer is wrong, a missing target gives null.

    >>> frame = pl.DataFrame({"a": ["$1,000", "12%", None], "t": ["1e3", "0.12", "4"]})
    >>> frame.select(m=matches(pl.col("a"), pl.col("t"), MatchRule("numeric")))["m"].to_list()
    [True, True, False]
    """
    both = pl.struct(answer.alias("answer"), target.alias("target"))
    return both.map_batches(
        lambda pairs: _matched(pairs.struct.unnest(), rule),
        return_dtype=pl.Boolean,
        is_elementwise=True,
    )


_A, _T = pl.col("answer"), pl.col("target")
_UNBOXED = frozenset({"exact", "numeric", "choice", "label"})
_BOXED = (
    r"^\s*(?:\$|\\\(|\\\[)?\s*\\boxed\{(?:\\text\{)?([^{}]+)\}{1,2}\s*(?:\$|\\\)|\\\])?\s*\.?\s*$"
)
r"""An answer that is nothing but a box: `$\boxed{B}$`."""


def _matched(pairs: pl.DataFrame, rule: MatchRule) -> pl.Series:
    frame = pairs.select(pl.col("answer", "target").cast(pl.String))
    if rule.kind == "none":
        return pl.repeat(None, frame.height, dtype=pl.Boolean, eager=True).alias("answer")
    right = _MATCHERS[rule.kind](frame, rule)
    if (rule.each if rule.kind == "any_of" else rule.kind) in _UNBOXED:
        bare = frame.with_columns(_A.str.extract(_BOXED, 1))
        boxed = bare["answer"].is_not_null() & ~right.fill_null(value=False)
        if boxed.any():  # rarely
            right = right.zip_with(~boxed, _MATCHERS[rule.kind](bare, rule))
    decided = right.is_not_null() | frame["answer"].is_null()
    known = decided & frame["target"].is_not_null()
    return pl.select(pl.when(known).then(right.fill_null(value=False))).to_series().alias("answer")


def _exact(frame: pl.DataFrame, _: MatchRule) -> pl.Series:
    return frame.select(normalize(_A) == normalize(_T)).to_series()


def _text(frame: pl.DataFrame, _: MatchRule) -> pl.Series:
    return frame.select(_A.str.strip_chars() == _T.str.strip_chars()).to_series()


def _verbatim(frame: pl.DataFrame, rule: MatchRule) -> pl.Series:
    return frame.select(counted(_A, rule) == counted(_T, rule)).to_series()


def counted(text: pl.Expr, rule: MatchRule) -> pl.Expr:
    """Return the part of a text that counts: patterns are removed first, then the rest."""
    for pattern in rule.ignore:
        text = text.str.replace_all(pattern, "")
    text = text if rule.case else text.str.to_lowercase()
    text = text if rule.punctuation else text.str.replace_all(r"[!-/:-@\[-`{-~]", "")
    return text if rule.digits else text.str.replace_all("[0-9]", "")


_SIGN = r"[$€£¥₹]"
_AMOUNT = (
    rf"^([-−+]?)\s*(?:\\?{_SIGN})?\s*([-−+]?)((?:[0-9][0-9,]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)"
    rf"\s*(\\?%|percent)?\s*(?:\\?{_SIGN})?\.?$"
)


def _numbers(name: str) -> list[pl.Expr]:
    """Read a column of amounts: the number in its exact form, and whether it is a percentage."""
    parts = pl.col(name).str.strip_chars().str.extract_groups(_AMOUNT).struct
    minus = pl.concat_str(parts.field("1"), parts.field("2")).str.replace("−", "-", literal=True)
    number = normalize(pl.concat_str(minus, parts.field("3")))
    plain = number.str.contains(r"^-?[0-9.]+(?:e-?[0-9]+)?$")
    return [
        pl.when(plain).then(number).alias(name),
        parts.field("4").is_not_null().alias(f"{name}%"),
    ]


def are_numbers(texts: pl.Series) -> pl.Series:
    """Return which texts `match: numeric` reads as numbers.

    >>> are_numbers(pl.Series(["$1,000", "12%", "a dozen"])).to_list()
    [True, True, False]
    """
    return texts.alias("t").to_frame().select(_numbers("t")[0].is_not_null()).to_series()


def _numeric(frame: pl.DataFrame, rule: MatchRule) -> pl.Series:
    """Compare numbers; a target that is not a number is compared as text.

    If only one side has a percent sign, 12% matches both 12 and 0.12.
    """
    table = frame.select(*_numbers("answer"), *_numbers("target"))
    one = pl.col("answer%") != pl.col("target%")
    part = pl.when(one & pl.col("answer%")).then(normalize(_A + "e-2")).otherwise(_A)
    whole = pl.when(one & pl.col("target%")).then(normalize(_T + "e-2")).otherwise(_T)
    table = table.with_columns(part=part, whole=whole)
    right = table.select((_A == _T) | (pl.col("part") == pl.col("whole"))).to_series()
    if rule.absolute or rule.relative:
        pairs = [("answer", "target"), ("part", "whole")]
        near = [_near(table[a], table[t], right, rule) for a, t in pairs]
        right = right | near[0] | near[1]
    text = table["target"].is_null()
    return pl.select(
        pl.when(text).then(_exact(frame, rule)).otherwise(right.fill_null(value=False))
    ).to_series()


_EXACT = Context(prec=60, Emax=999999999999999999, Emin=-999999999999999999)


def _near(answer: pl.Series, target: pl.Series, done: pl.Series, rule: MatchRule) -> pl.Series:
    """Compare in decimals, so that 1.1 is within 0.1 of 1, as on paper."""
    near = [
        not right and a is not None and t is not None and _within(a, t, rule)
        for a, t, right in zip(answer, target, done, strict=True)
    ]
    return pl.Series(near, dtype=pl.Boolean)


def _within(answer: str, target: str, rule: MatchRule) -> bool:
    try:
        right = _EXACT.create_decimal(target)
        difference = _EXACT.abs(_EXACT.subtract(_EXACT.create_decimal(answer), right))
        allowed = max(rule.absolute, _EXACT.multiply(rule.relative, _EXACT.abs(right)))
    except DecimalException:
        return False
    return difference <= allowed


_LETTER = r"""^[\s(\[{*"'`]*([A-Za-z])(?:[)\]}.:,*"'`]|$)"""

_TEXT = r"^\s*[A-Za-z][.]\s+(.+)$"
"""The text of a choice in a target such as `B. Paris`."""
_NEXT_LETTER = (
    r"""^[\s(\[{*"'`]*[A-Za-z][)\]}.:,;*"'`]*\s*(?:[,/&+]|and\b|or\b)?\s*[(\[{*"'`]*"""
    r"""(?:[A-Z][)\]}.:,;*"'`/]|[A-Z]\s*$|[A-Z]\s+(?:and|or)\b)"""
)
"""A second letter right after the first: `A, B`, `(A) or (B)`."""
_LATER_LETTER = r"""[\s,;(\[*]([A-Z])[.):][)*]*\s"""
"""Another choice with its letter further on: `A. Rome B. Paris`."""


def _choice(frame: pl.DataFrame, rule: MatchRule) -> pl.Series:
    """Compare letters: `(B)`, `b` and `B. Paris` are B; other targets are compared as text.

    An answer without a letter is right if it is the text of the target `B. Paris`. One that names
    several letters is wrong, unless it is the target itself.
    """
    stripped = pl.col("answer", "target").str.strip_chars()
    table = frame.select(stripped.str.extract(_LETTER, 1).str.to_uppercase())
    exact = _exact(frame, rule)
    text = pl.when(table["answer"].is_null()).then(_T.str.extract(_TEXT, 1))
    named = frame.select(normalize(_A) == normalize(text)).to_series().fill_null(value=False)
    later = _A.str.extract_all(_LATER_LETTER).list.eval(pl.element().str.extract(r"([A-Z])"))
    several = _A.str.contains(_NEXT_LETTER) | (
        later.list.set_difference(pl.concat_list(pl.lit(table["answer"]))).list.len() > 0
    )
    letter = table.select(_A == _T).to_series() & ~frame.select(several).to_series()
    same = letter.fill_null(value=False) | named | exact.fill_null(value=False)
    return pl.select(pl.when(table["target"].is_null()).then(exact).otherwise(same)).to_series()


_OPENING = " \t\"'“‘`*_([{"
_AFTER_LABEL = r"""^["'”’`*_)\]}]*(?:\s*$|[.,;:!]+["'”’`*_)\]}]*(?:\s|$)|\s+[-–—(])"""
_WORD = r"(?:^|[^\p{L}\p{N}_])"


def _label(frame: pl.DataFrame, rule: MatchRule) -> pl.Series:
    """Compare words: `Yes`, `"yes"!` and `Yes, it is.` are yes; `yes and no`, `no idea` are not."""
    target = _T.str.strip_chars().str.to_lowercase()
    words = _A.str.strip_chars_start(_OPENING).str.to_lowercase()
    table = frame.select(target=target, answer=words, rest=words.str.strip_prefix(target))
    right = _A.str.starts_with(_T) & pl.col("rest").str.contains(_AFTER_LABEL)
    for label in dict.fromkeys(one.lower() for one in rule.labels):
        other = rf"{_WORD}{re.escape(label)}(?:[^\p{{L}}\p{{N}}_]|$)"
        right &= _T.eq(label) | ~pl.col("rest").str.contains(other)
    return table.select(right).to_series() | _exact(frame, rule)


def _contains(frame: pl.DataFrame, _: MatchRule) -> pl.Series:
    low = frame.select(pl.col("answer", "target").str.strip_chars().str.to_lowercase())
    return low.select((_T != "") & _A.str.contains(_T, literal=True)).to_series()


def _regex(frame: pl.DataFrame, _: MatchRule) -> pl.Series:
    return frame.select(_A.str.contains(_T, strict=False)).to_series()


def _any_of(frame: pl.DataFrame, rule: MatchRule) -> pl.Series:
    """Compare with each target; one match is enough."""
    several = [targets(t, rule.separator) if t is not None else None for t in frame["target"]]
    table = frame.with_columns(pl.Series("target", several, dtype=pl.List(pl.String)))
    table = table.with_row_index().explode("target", empty_as_null=True)
    right = _MATCHERS[rule.each](table.select("answer", "target"), rule)
    best = table.select("index", right=right).group_by("index", maintain_order=True)
    return best.agg(pl.col("right").any(ignore_nulls=True)).get_column("right")


def targets(target: str, separator: str = "") -> list[str]:
    """Read several targets: a list in JSON or Python, or a text with a separator.

    Any other text is one target.

    >>> targets('["a", 1.50]'), targets("a | b", "|"), targets("a"), targets("['a']")
    (['a', '1.50'], ['a', 'b'], ['a'], ['a'])
    """
    if separator:
        return [part.strip() for part in target.split(separator)]
    if not target.lstrip().startswith("["):
        return [target]
    try:
        values = json.loads(target, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        values = _python_list(target)
    if not isinstance(values, list):
        return [target]
    return [v if isinstance(v, str) else json.dumps(v) for v in values]


def _python_list(text: str) -> list[str] | None:
    """Read a list as Python writes it, which is how templates and tables often hold one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about odd escapes in a text that is no list
            values = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return [str(value) for value in values] if isinstance(values, list) else None


def _math(frame: pl.DataFrame, rule: MatchRule) -> pl.Series:
    """Ask math-verify if the texts differ."""
    from pennyweight.text.symbolic import Verifier  # noqa: PLC0415

    same = _exact(frame, rule)
    rows = zip(frame["answer"], frame["target"], same, strict=True)
    with Verifier() as verifier:
        right = [s if s or a is None or t is None else verifier.same(a, t) for a, t, s in rows]
    return pl.Series(right, dtype=pl.Boolean)


_MATCHERS: dict[str, Callable[[pl.DataFrame, MatchRule], pl.Series]] = {
    "exact": _exact,
    "text": _text,
    "verbatim": _verbatim,
    "numeric": _numeric,
    "choice": _choice,
    "label": _label,
    "contains": _contains,
    "regex": _regex,
    "any_of": _any_of,
    "math": _math,
}
_EACH = frozenset(_MATCHERS) - {"any_of"}
