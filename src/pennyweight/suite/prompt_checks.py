"""Check every prompt before the first call, by rendering all of them once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pennyweight.errors import unknown
from pennyweight.schema.problems import Problems
from pennyweight.schema.tree import Node
from pennyweight.suite.plan import FIELDS, example_turns, shows_examples, variables
from pennyweight.suite.tasks import HIDDEN, usable
from pennyweight.suite.templates import TemplateError, always_fits, render, variables_of
from pennyweight.suite.values import Task, Tier, Turn

MAX_TASKS_NAMED = 3
"""Tasks that are named if a prompt cannot be rendered for them."""


def finish_tiers(
    tiers: Sequence[Tier], tasks: Sequence[Task], root: Node, problems: Problems
) -> tuple[Tier, ...]:
    """Check the templates of all tiers; return the tiers with their examples as turns."""
    names = usable(tasks)
    before = len(problems.found)
    for path, node in _templates(root):
        _check(path, node, names, problems)
    if len(problems.found) > before:
        return tuple(tiers)
    finished = []
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


def _check(path: str, node: Node, names: frozenset[str], problems: Problems) -> None:
    try:
        used = variables_of(node.text)
    except TemplateError as error:
        problems.add(node.line + error.line - (not node.block), f"{path}: {error}")
        return
    for name in sorted(used - names):
        line = node.line + _line_of(name, node.text) - (not node.block)
        if name in HIDDEN:
            what = f"{path}: prompts cannot use {name!r}, which would give the answer away."
        else:
            known = ", ".join(sorted(names))
            what = f"{path}: {unknown('Variable', name, names, f'Tasks have: {known}.')}"
        problems.add(line, what)


def _line_of(name: str, text: str) -> int:
    lines = text.splitlines()
    return next((i for i, line in enumerate(lines, 1) if name in line and "{" in line), 1)


def _with_examples(tier: Tier) -> Tier:
    """Turn the examples into messages, unless a template shows them itself."""
    texts = [tier.prompt, tier.system or "", *(m.content for m in tier.messages)]
    if not tier.examples or shows_examples(texts):
        return tier
    prompt = "{{ input }}" if tier.messages else tier.prompt
    turns = example_turns(prompt, tier.examples)
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
        if always_fits(text, FIELDS):
            continue
        failed = 0
        for task in tasks:
            try:
                render(text, variables(task, tier.examples))
            except TemplateError as error:
                failed += 1
                if failed <= MAX_TASKS_NAMED:
                    line = _place_of(text, root)
                    problems.add(
                        line, f"the prompt of task {task.id!r} cannot be rendered: {error}"
                    )
        if failed > MAX_TASKS_NAMED:
            what = f"the prompts of {failed - MAX_TASKS_NAMED:,} more tasks cannot be rendered."
            problems.add(_place_of(text, root), what)


def _place_of(text: str, root: Node) -> int:
    return next((node.line for _, node in _templates(root) if node.text == text), root.line)
