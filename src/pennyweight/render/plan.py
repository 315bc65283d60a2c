"""The plan of a suite: attempts, an example prompt for each tier, tokens and cost."""

from __future__ import annotations

import json
from typing import Any

from pennyweight.judges.prompt import JudgedCase, messages
from pennyweight.judges.sentences import questions_of, sentences_rubric
from pennyweight.models.model import Usage
from pennyweight.models.prices import Prices
from pennyweight.render.format import count, measured, money, plural
from pennyweight.render.plain import csv_table, markdown_table
from pennyweight.render.terminal import Terminal
from pennyweight.suite.plan import count as attempt_count
from pennyweight.suite.plan import estimates, tokens_of
from pennyweight.suite.rubric import Rubric
from pennyweight.suite.values import Suite, Task
from pennyweight.text.safe import clean

_COLUMNS = ("subject", "tier", "attempts", "prompt_tokens", "output_tokens", "cost_usd")


def facts(suite: Suite) -> dict[str, Any]:
    """Give the plan as plain data.

    `output_tokens` is the most that may come out, null without a limit. `cost_usd` is the cost of
    that, null where the price or the limit is not known; `cost_usd_at_least` is what is sure.
    """
    prices = Prices(suite.prices)
    sides: list[dict[str, Any]] = []
    for one in estimates(suite):
        price = prices.of(one.subject)
        sure = prices.cost(one.subject, Usage(one.prompt_tokens, one.output_tokens or 0))
        sides.append(
            {
                "subject": one.subject.name,
                "tier": one.tier.name,
                "attempts": one.attempts,
                "prompt_tokens": one.prompt_tokens,
                "output_tokens": one.output_tokens,
                "cost_usd": None if one.output_tokens is None else sure,
                "cost_usd_at_least": sure,
                "price_source": price.origin if price else None,
                "example": one.example,
            }
        )
    whole = all(side["cost_usd"] is not None for side in sides)
    least = sum(side["cost_usd_at_least"] or 0.0 for side in sides)
    return {
        "suite": suite.name,
        "attempts": attempt_count(suite),
        "tasks": len(suite.tasks),
        "subjects": len(suite.subjects),
        "tiers": len(suite.tiers),
        "runs": suite.runs,
        "cost_usd": least if whole else None,
        "cost_usd_at_least": least,
        "plan": sides,
        "judging": _judging(suite),
    }


def _judging(suite: Suite) -> dict[str, Any] | None:
    """Give what judging would take, as far as that is known before there is anything to judge."""
    judging = suite.judge
    if judging is None:
        return None
    judges = [judge.name for judge in judging.judges]
    rubric = judging.rubric if judging.scores else None
    made = attempt_count(suite) * len(judges) if rubric else 0
    return {
        "rubric": rubric.name if rubric else None,
        "items": len(rubric.items) if rubric else 0,
        "judges": judges,
        "more": [judge.name for judge in judging.more] if rubric else [],
        "judgments": made,
        "prompt_tokens_at_least": made * _asked(rubric, suite.tasks[0]) if rubric else 0,
        "sentences": _sentences(suite, len(judges)),
    }


def _sentences(suite: Suite, judges: int) -> dict[str, int]:
    """Give what it takes to put the sentences of scenarios to the judges."""
    questions = questions_of(suite)
    tries = attempt_count(suite) // max(1, len(suite.tasks)) * judges
    tasks = [task for task in suite.tasks if task.id in questions]
    tokens = sum(_asked(sentences_rubric(questions[task.id]), task) for task in tasks)
    return {
        "behaviors": sum(map(len, questions.values())),
        "judgments": tries * len(tasks),
        "prompt_tokens_at_least": tries * tokens,
    }


def _asked(rubric: Rubric, task: Task) -> int:
    """Estimate the tokens of one question about a task, before there is any reply."""
    said = messages(rubric, JudgedCase(task.input, "", task.target))
    return tokens_of([{"content": m.content} for m in said])


def render(suite: Suite, format: str = "table") -> str:  # noqa: A002
    """Write the plan."""
    found = facts(suite)
    if format == "json":
        return json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if format == "csv":
        return csv_table([_COLUMNS, *([side[n] for n in _COLUMNS] for side in found["plan"])])
    if format == "markdown":
        rows = [[measured(n, side[n]) for n in _COLUMNS] for side in found["plan"]]
        return markdown_table([_COLUMNS, *rows], right=(2, 3, 4, 5))
    return _table(found)


def _judges(judging: dict[str, Any]) -> str:
    more = f", and {', '.join(judging['more'])} where they disagree" if judging["more"] else ""
    who = f"by {', '.join(judging['judges'])}"
    lines = []
    if judging["judgments"]:
        lines.append(
            f"{plural(judging['judgments'], 'judgment')} {who}{more}: rubric "
            f"{judging['rubric']} with {plural(judging['items'], 'item')}, at least "
            f"{plural(judging['prompt_tokens_at_least'], 'input token')} "
            "(not part of the cost below)"
        )
    asked = judging["sentences"]
    if asked["judgments"]:
        lines.append(
            f"{plural(asked['judgments'], 'judgment')} {who}: "
            f"{plural(asked['behaviors'], 'sentence')} of scenarios, at least "
            f"{plural(asked['prompt_tokens_at_least'], 'input token')} (not part of the cost below)"
        )
    return "".join(f"\n{line}" for line in lines)


def _table(found: dict[str, Any]) -> str:
    terminal = Terminal()
    made = plural(found["attempts"], "attempt")
    terminal.print(f"{clean(found['suite'])}: {made}", style="bold")
    sides = ("tasks", "subjects", "tiers", "runs")
    terminal.print(" × ".join(plural(found[name], name[:-1]) for name in sides))
    for side in found["plan"]:
        output, cost = side["output_tokens"], side["cost_usd_at_least"]
        most = "no limit on output" if output is None else f"at most {count(output)} out"
        price = "price not known" if cost is None else f"about {money(cost)}"
        terminal.print(f"\n{clean(side['subject'])}, tier {clean(side['tier'])}", style="bold")
        terminal.print(f"{plural(side['prompt_tokens'], 'token')} in, {most}, {price}")
        for turn in side["example"]:
            terminal.print(f"{turn['role']}:", style="dim")
            terminal.print(clean(turn["content"]))
    if found["judging"]:
        terminal.print(clean(_judges(found["judging"])))
    known = found["cost_usd"] is not None
    suffix = "" if known else " or more: not every price or limit is known"
    least = found["cost_usd_at_least"]
    terminal.print(f"\nEstimated cost: {money(least)}{suffix}. No model was called.")
    return terminal.text()
