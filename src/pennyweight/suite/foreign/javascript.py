"""Assertions in JavaScript: the few that a check can say, and a file that runs the others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

RUNNER = "assertions.cjs"
"""The file with the assertions that node runs."""
_STRING = r"""(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')"""
_LOWER = r"output\.toLowerCase\(\)"
_JSON = r"JSON\.parse\(output\)((?:\.\w+|\[\d+\])+)"
Check = dict[str, Any]


def _length(found: re.Match[str], _: str) -> Check:
    sign, number = found[1], int(found[2])
    limits = {
        "<": {"max": number - 1},
        "<=": {"max": number},
        ">": {"min": number + 1},
        ">=": {"min": number},
    }
    both = {"min": number, "max": number}
    return {"length": {**limits.get(sign, both), "unit": "characters"}}


def _lowered(_: re.Match[str], text: str) -> Check:
    """Look for a text in lower case; no such text has capitals, so that is no check."""
    return {"contains": text if text == text.lower() else ""}


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], Check]], ...] = tuple(
    (re.compile(pattern), make)
    for pattern, make in (
        (rf"output\.includes\({_STRING}\)", lambda _, t: {"contains": {"text": t, "case": True}}),
        (rf"{_LOWER}\.includes\({_STRING}\)", _lowered),
        (
            rf"output\.startsWith\({_STRING}\)",
            lambda _, t: {"starts_with": {"text": t, "exact": True}},
        ),
        (rf"output\s*===?\s*{_STRING}", lambda _, t: {"equals": {"text": t, "exact": True}}),
        (
            rf"output\.trim\(\)\s*===?\s*{_STRING}",
            lambda _, t: {"equals": {"text": t, "case": True}},
        ),
        (
            rf"{_JSON}\s*===\s*{_STRING}",
            lambda m, t: {"json": {"path": f"${m[1]}", "equals": t, "where": "reply"}},
        ),
        (
            rf"{_JSON}\s*===\s*(-?\d+(?:\.\d+)?|true|false)",
            lambda m, _: {
                "json": {"path": f"${m[1]}", "equals": json.loads(m[2]), "where": "reply"}
            },
        ),
        (r"output\.length\s*(<=|>=|<|>|===?)\s*(\d{1,9})", _length),
    )
)


def as_checks(code: str) -> list[Check] | None:
    """Return the checks that say the same as an expression; None if there are none.

    >>> as_checks("output.length < 200 && !output.toLowerCase().includes('sorry')")
    [{'length': {'max': 199, 'unit': 'characters'}}, {'not_contains': 'sorry'}]
    >>> as_checks("output.split(' ').length")
    """
    made: list[Check] = []
    for part in code.strip().rstrip(";").removeprefix("return ").split("&&"):
        text = part.strip()
        negated = text.startswith("!")
        one = _check(text.removeprefix("!").strip())
        if one is None:
            return None
        made.append({f"not_{k}": v for k, v in one.items()} if negated else one)
    return made


_COMPARED = r"[^<>=!?]+(?:[!=]==?|[<>]=?)[^<>=!?]+"
_ASKED = r"!?[^?<>=]*\.(?:includes|startsWith|endsWith|test|every|some)\([^?]*\)"


def is_boolean(code: str) -> bool:
    """Whether code surely returns true or false, so that its score is 1 or 0.

    >>> is_boolean("const k = 8; output.endsWith(String(k))"), is_boolean("output.length / 9")
    (True, False)
    """
    last = re.sub(_STRING, "''", code).strip().rstrip("; \n").split("\n")[-1].rpartition(";")[2]
    parts = re.split(r"&&|\|\|", last.strip().removeprefix("return "))
    return all(re.fullmatch(f"{_COMPARED}|{_ASKED}", part.strip()) for part in parts)


def _check(text: str) -> Check | None:
    for pattern, make in _FORMS:
        found = pattern.fullmatch(text)
        if found:
            strings = [one for one in found.groups() if one is not None]
            said = _unescaped(strings[-1]) if strings else ""
            check = make(found, said)
            return None if "" in (check.get("contains"), said) and not _has_number(found) else check
    return None


def _has_number(found: re.Match[str]) -> bool:
    return bool(re.search(r"\d$|true$|false$", found[0]))


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), text)


_HEAD = """\
// Assertions of promptfoo that are JavaScript. The suite runs one with: node {name} NUMBER
// The reply is on standard input. The exit code is 0 if the assertion holds, 1 if it does not.
// This is code from the configuration that was converted: read it before you run the suite.
"use strict";
const assertions = [
"""
_TAIL = """\
];
const fs = require("node:fs");
const { code, vars, threshold, config } = assertions[Number(process.argv[2])];
const output = fs.readFileSync(0, "utf8");
const record = JSON.parse(fs.readFileSync(process.env.PENNYWEIGHT_RECORD_FILE, "utf8"));
const test = { vars };
const context = { vars, config, prompt: record.input, test, providerResponse: { output } };
(async () => {
  const result = await new Function("output", "context", "process", code)(output, context, {});
  const passed =
    typeof result === "number"
      ? threshold === null ? result > 0 : result >= threshold
      : typeof result === "object" && result !== null ? result.pass : result;
  if (typeof passed !== "boolean") throw new Error(`it returned ${JSON.stringify(result)}`);
  console.log(`It returned ${JSON.stringify(result)}.`);
  process.exit(passed ? 0 : 1);
})().catch((error) => {
  console.log(String(error));
  process.exit(1);
});
"""


def runner(assertions: Sequence[Mapping[str, Any]]) -> str:
    """Return the file that node runs."""
    lines = [f"  {json.dumps(one, ensure_ascii=False, default=str)},\n" for one in assertions]
    return _HEAD.replace("{name}", RUNNER) + "".join(lines) + _TAIL


def function_body(code: str) -> str:
    """Return the body of the function that an assertion stands for.

    >>> function_body("output.length > 3"), function_body("const n = 3; output.length > n")
    ('return output.length > 3', 'const n = 3; return output.length > n')
    """
    text = code.rstrip()
    if "\n" in text:
        return text
    text = text.strip().rstrip("; ")
    if re.match(r"(?:const|let|var)\s", text):
        first, found, last = text.rpartition(";")
        return f"{first}; return {last.strip()}" if found and last.strip() else text
    return text if text.startswith("return ") else f"return {text}"
