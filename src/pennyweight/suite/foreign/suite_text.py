"""The text of a converted suite: its keys in the usual order, with comments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from textwrap import wrap
from typing import Any

from pennyweight.suite.foreign.suite_format import ForeignSuite
from pennyweight.suite.foreign.yaml_text import yaml_text
from pennyweight.text.safe import clean

_ORDER = (
    *("suite", "partial", "system", "prompt", "messages", "examples", "subjects", "tiers"),
    *("settings", "answer", "match", "judge", "scorers", "runs", "seed", "limits", "prices"),
    "tasks",
)
_COMMENTS = {
    "subjects": "the models that are measured",
    "tiers": "the prompts, side by side; the first one is the baseline of comparisons",
    "judge": "asked about every behaviour that is a sentence",
    "answer": "where the answer is in a response",
    "match": "how an answer is compared with its target",
    "tasks": "the test cases",
    "runs": "attempts at each task",
    "partial": "what is missing of the suite that it was made from; every run says so",
}
_APART = {
    *("partial", "system", "prompt", "messages", "examples", "tiers", "judge", "tasks"),
    "subjects",
}
_TASK = re.compile(r"(?<!^tasks)(\S)\n(  - id: )")
MAX_LISTED = 20
"""The most lines of what was left out that the suite itself lists."""


def suite_text(source: ForeignSuite, table: Mapping[str, Any]) -> str:
    """Return the suite as YAML, beginning with what was left out."""
    missing = [clean(str(one)) for one in source.missing]
    if missing:
        more = len(missing) - MAX_LISTED
        listed = [*missing[:MAX_LISTED], *([f"{more:,} more parts"] if more > 0 else [])]
        table = {**table, "partial": listed}
    lines = [
        "# yaml-language-server: $schema=suite.schema.json",
        f"# Made from {clean(source.path.name)} by 'pennyweight init --from'.",
        "# Try it:  pennyweight run suite.yaml --limit 3",
    ]
    if source.notes:
        lines += ["#", "# Different from there:", *_comments(source.notes)]
    if source.left:
        lines += ["#", "# Not carried over:"]
        lines += _comments(map(str, source.left[:MAX_LISTED]))
        more = len(source.left) - MAX_LISTED
        lines += [f"# - … and {more} more"] if more > 0 else []
    text = "\n".join(lines) + "\n"
    for key in _ORDER:
        if key not in table:
            continue
        text += "\n" if key in _APART else ""
        text += f"# {_COMMENTS[key]}\n" if key in _COMMENTS and key in _APART else ""
        written = yaml_text({key: table[key]})
        text += _TASK.sub(r"\1\n\n\2", written) if key == "tasks" else written
    return text


def _comments(texts: Iterable[str]) -> list[str]:
    """Return lines of comments, wrapped."""
    lines: list[str] = []
    for text in texts:
        said = clean(text).replace("\n", " ")
        lines += wrap(said, 98, initial_indent="# - ", subsequent_indent="#   ")
    return lines
