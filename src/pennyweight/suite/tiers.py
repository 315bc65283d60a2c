"""Tiers, merged with the tiers they extend and with the texts of the suite; their prompts checked.

Every prompt is checked before the first call, by rendering all of them once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pennyweight.errors import unknown
from pennyweight.schema.problems import Problems
from pennyweight.schema.tree import Node
from pennyweight.suite.plan import FIELDS, example_turns, shows_examples, variables
from pennyweight.suite.tasks import HIDDEN, usable
from pennyweight.suite.templates import TemplateError, always_fits, render, variables_of
from pennyweight.suite.values import DEFAULT_PROMPT, NO_EXTRA, Task, Tier, Turn

MAX_TASKS_NAMED = 3
"""Tasks that are named if a prompt cannot be rendered for them."""


def resolve_tiers(
    suite: Mapping[str, Any], tiers: Mapping[str, Mapping[str, Any]], root: Node, problems: Problems
) -> tuple[Tier, ...]:
    """Merge tiers; what a tier sets, including null, overrides what it extends."""
    for name, tier in tiers.items():
        parent = tier.get("extends")
        line = root.line_at("tiers", name, "extends")
        if parent is not None and parent not in tiers:
            what = unknown("Tier", parent, tiers, f"There are: {', '.join(tiers)}.")
            problems.add(line, f"tiers.{name} extends: {what}")
        elif parent is not None and name in (circle := _ancestors(name, tiers)):
            problems.add(line, f"tiers.{name} extends itself: {' → '.join((name, *circle))}.")
    return tuple(_tier(name, suite, tiers) for name in tiers)


def _ancestors(name: str, tiers: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the tiers that a tier extends, nearest first; stop at a circle."""
    line: list[str] = []
    parent: Any = tiers[name].get("extends")
    while parent in tiers and parent not in line:
        line.append(parent)
        parent = tiers[parent].get("extends")
    return line


def _tier(name: str, suite: Mapping[str, Any], tiers: Mapping[str, Mapping[str, Any]]) -> Tier:
    values = {k: v for k, v in suite.items() if k != "extends"}
    settings: dict[str, Any] = {}
    for one in (*reversed(_ancestors(name, tiers)), name):
        tier = tiers[one]
        values = _over(values, tier)
        if "files" in tier:
            values["work"] = tier["files"](values["work"])
        settings |= tier.get("settings", {})
    return Tier(
        name=name,
        system=values.get("system"),
        prompt=values.get("prompt") or DEFAULT_PROMPT,
        examples=values.get("examples") or (),
        messages=values.get("messages") or (),
        settings=settings,
        extends=tiers[name].get("extends"),
        work=values.get("work"),
    )


def _over(below: dict[str, Any], tier: Mapping[str, Any]) -> dict[str, Any]:
    """Override values with those of a tier; a prompt replaces messages, and vice versa."""
    own = {k: tier[k] for k in ("system", "prompt", "examples", "messages") if k in tier}
    instead = {"prompt": "messages", "messages": "prompt"}
    dropped = {instead[k] for k, v in own.items() if k in instead and v}
    return {**{k: v for k, v in below.items() if k not in dropped}, **own}


def finish_tiers(
    tiers: Sequence[Tier],
    tasks: Sequence[Task],
    root: Node,
    problems: Problems,
    aliases: Mapping[str, str] = NO_EXTRA,
) -> tuple[Tier, ...]:
    """Check the templates of all tiers; return the tiers with their examples as turns.

    `aliases` are the columns that became fields of tasks; templates may use both names.
    """
    aliases = {name: to for name, to in aliases.items() if to in FIELDS and name not in HIDDEN}
    names = usable(tasks) | aliases.keys()
    before = len(problems.found)
    for path, node in _templates(root):
        _check(path, node, names, tasks, problems)
    if len(problems.found) > before:
        return tuple(tiers)
    finished = []
    if aliases:
        used = {name for _, node in _templates(root) for name in variables_of(node.text)}
        aliases = {name: to for name, to in aliases.items() if name in used}
        tiers = [replace(tier, aliases=aliases) for tier in tiers]
    for tier in tiers:
        try:
            finished.append(_with_examples(tier))
        except TemplateError as error:
            line = root.line_at("tiers", tier.name)
            problems.add(line, f"the examples of tier {tier.name} cannot be rendered: {error}")
            finished.append(tier)
    _render_all(finished, tasks, root, problems)
    return tuple(finished)


def _templates(root: Node) -> Iterator[tuple[str, Node]]:
    """Yield every template in a suite."""
    tiers = root.get("tiers")
    named = tiers.value if tiers is not None and isinstance(tiers.value, dict) else {}
    for prefix, place in [("", root), *((f"tiers.{name}.", tier) for name, tier in named.items())]:
        for key in ("system", "prompt"):
            node = place.get(key)
            if node is not None and isinstance(node.value, str):
                yield prefix + key, node
        turns = place.get("messages")
        for index, _ in enumerate(turns.value if turns and isinstance(turns.value, list) else ()):
            node = place.get("messages", index, "content")
            if node is not None and isinstance(node.value, str):
                yield f"{prefix}messages[{index + 1}].content", node


def _check(
    path: str, node: Node, names: frozenset[str], tasks: Sequence[Task], problems: Problems
) -> None:
    before = 0 if node.file else node.line - (not node.block)
    problems = problems.within(node.file) if node.file else problems
    try:
        used = variables_of(node.text)
    except TemplateError as error:
        problems.add(before + error.line, f"{path}: {error}")
        return
    unread = not tasks and problems.found  # what their columns are is not known
    for name in () if unread else sorted(used - names):
        lines = enumerate(node.text.splitlines(), 1)
        number = next((i for i, line in lines if name in line and "{" in line), 1)
        if name in HIDDEN:
            what = f"{path}: prompts cannot use {name!r}, which would give the answer away."
        else:
            known = ", ".join(sorted(names))
            what = f"{path}: {unknown('Variable', name, names, f'Tasks have: {known}.')}"
        problems.add(before + number, what)


def _with_examples(tier: Tier) -> Tier:
    """Turn the examples into messages, unless a template shows them itself."""
    texts = [tier.prompt, tier.system or "", *(m.content for m in tier.messages)]
    if not tier.examples or shows_examples(texts):
        return tier
    prompt = "{{ input }}" if tier.messages else tier.prompt
    turns = example_turns(prompt, tier.examples, tier.aliases)
    shown = [m for asked, said in turns for m in (Turn("user", asked), Turn("assistant", said))]
    return replace(tier, shown=tuple(shown))


def _render_all(
    tiers: Sequence[Tier], tasks: Sequence[Task], root: Node, problems: Problems
) -> None:
    """Render each distinct template for each task."""
    texts: dict[str, Tier] = {}
    for tier in tiers:
        own = [*(m.content for m in tier.messages)] if tier.messages else [tier.prompt]
        for text in (tier.system or "", *own):
            if "{" in text:
                texts.setdefault(text, tier)
    for text, tier in texts.items():
        if not always_fits(text, (*FIELDS, *tier.aliases)):
            _render_each(text, tier, tasks, _place_of(text, root), problems)


def _render_each(
    text: str, tier: Tier, tasks: Sequence[Task], line: int, problems: Problems
) -> None:
    failed = 0
    for task in tasks:
        try:
            render(text, variables(task, tier.examples, tier.aliases))
        except TemplateError as error:
            failed += 1
            if failed <= MAX_TASKS_NAMED:
                what = f"the prompt of task {task.id!r} cannot be rendered: {error}"
                problems.add(line, what)
            if error.exceeded:
                return
    if failed > MAX_TASKS_NAMED:
        what = f"the prompts of {failed - MAX_TASKS_NAMED:,} more tasks cannot be rendered."
        problems.add(line, what)


def _place_of(text: str, root: Node) -> int:
    return next((node.line for _, node in _templates(root) if node.text == text), root.line)
