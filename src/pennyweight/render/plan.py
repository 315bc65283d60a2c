"""The plan of a suite: attempts, an example prompt for each tier, tokens and cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pennyweight.judges.prompt import JudgedCase, messages
from pennyweight.judges.questions import question_prompt
from pennyweight.judges.sentences import questions_of, sentences_rubric
from pennyweight.models.model import Usage
from pennyweight.models.prices import Prices, cost
from pennyweight.render.format import measured
from pennyweight.render.plain import csv_table, json_text, markdown_table
from pennyweight.render.terminal import Terminal
from pennyweight.scorers.declaration import Scorer
from pennyweight.scorers.pairing import ORDERS
from pennyweight.suite.narrowing import change_words, part_words
from pennyweight.suite.plan import count as attempt_count
from pennyweight.suite.plan import estimates, tokens_of
from pennyweight.suite.rubric import Rubric
from pennyweight.suite.values import LoadedSuite, Task
from pennyweight.text.format import count, money, plural
from pennyweight.text.safe import clean

LOCAL = "local"
"""The source of the price of a model that runs on this machine."""
_COLUMNS = ("subject", "tier", "attempts", "prompt_tokens", "output_tokens", "cost_usd")


def facts(suite: LoadedSuite) -> dict[str, Any]:
    """Return the plan as plain data.

    `output_tokens` is the maximum, null without a limit. `cost_usd` is the cost of the maximum,
    null where the price or the limit is unknown; `cost_usd_at_least` covers what is known. A model
    that runs on this machine costs nothing. `cost_limit_usd` is the limit of the run, null without
    one.
    """
    prices = Prices(suite.prices)
    sides: list[dict[str, Any]] = []
    for side in estimates(suite):
        price = prices.of(side.subject)
        tokens = Usage(side.prompt_tokens, side.output_tokens or 0)
        each = side.prompt_tokens // max(1, side.attempts)
        is_free = prices.is_free(side.subject)
        known = cost(price.at(each), tokens) if price else 0.0 if is_free else None
        sides.append(
            {
                "subject": side.subject.name,
                "tier": side.tier.name,
                "attempts": side.attempts,
                "prompt_tokens": side.prompt_tokens,
                "output_tokens": side.output_tokens,
                "cost_usd": None if side.output_tokens is None and not is_free else known,
                "cost_usd_at_least": known,
                "price_source": price.origin if price else LOCAL if is_free else None,
                "example": side.example,
            }
        )
    is_known = all(side["cost_usd"] is not None for side in sides)
    least = sum(side["cost_usd_at_least"] or 0.0 for side in sides)
    return {
        "suite": suite.name,
        "narrowed": _narrowed(suite, part_words),
        "changed": _narrowed(suite, change_words),
        "attempts": attempt_count(suite),
        "tasks": len(suite.tasks),
        "subjects": len(suite.subjects),
        "tiers": len(suite.tiers),
        "runs": suite.runs,
        "cost_usd": least if is_known else None,
        "cost_usd_at_least": least,
        "cost_limit_usd": suite.limits.usd,
        "plan": sides,
        "judging": _judging(suite),
    }


def _narrowed(suite: LoadedSuite, words: Callable[[Mapping[str, Any]], str]) -> str | None:
    options = suite.narrowing.plain() if suite.narrowing else {}
    return words({"tasks": len(suite.tasks), "runs": suite.runs, "narrowing": options}) or None


def _judging(suite: LoadedSuite) -> dict[str, Any] | None:
    """Estimate the judgments and their tokens, without the replies that do not exist yet."""
    judging = suite.judge
    if judging is None:
        return None
    judges = [judge.name for judge in judging.judges]
    rubric = judging.rubric if judging.scores else None
    judgments = attempt_count(suite) * len(judges) if rubric else 0
    return {
        "rubric": rubric.name if rubric else None,
        "items": len(rubric.items) if rubric else 0,
        "judges": judges,
        "more": [judge.name for judge in judging.more] if rubric else [],
        "judgments": judgments,
        "prompt_tokens_at_least": judgments * _asked(rubric, suite.tasks[0]) if rubric else 0,
        "sentences": _sentences(suite, len(judges)),
        "scorers": _scorers(suite, len(judges)),
    }


def _scorers(suite: LoadedSuite, judges: int) -> dict[str, int]:
    """Estimate what it takes to ask the judges the questions of scorers, if all can be asked."""
    asking = [scorer for scorer in suite.scorers if scorer.question]
    tries = [_tries(suite, one) * judges for one in asking]
    tokens = [
        count * tokens_of([{"content": turn.content} for turn in question_prompt(one, {})])
        for count, one in zip(tries, asking, strict=True)
    ]
    return {
        "questions": len(asking),
        "judgments": sum(tries),
        "prompt_tokens_at_least": sum(tokens),
    }


def _tries(suite: LoadedSuite, scorer: Scorer) -> int:
    """Count how often one judge is asked the question of a scorer."""
    attempts = attempt_count(suite)
    pair = scorer.question.pair if scorer.question else None
    if pair is None:
        return attempts
    sides = {"subject": [s.name for s in suite.subjects], "tier": [t.name for t in suite.tiers]}
    return round(attempts * pair.share(sides)) * ORDERS


def _sentences(suite: LoadedSuite, judges: int) -> dict[str, int]:
    """Estimate what it takes to ask the judges about the sentences of scenarios."""
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
    """Estimate the tokens of one question about a task, without its reply."""
    turns = messages(rubric, JudgedCase(task.input, "", task.target))
    return tokens_of([{"content": turn.content} for turn in turns])


def render(suite: LoadedSuite, format: str = "table") -> str:  # noqa: A002
    """Write the plan."""
    found = facts(suite)
    if format == "json":
        return json_text(found)
    if format == "csv":
        return csv_table([_COLUMNS, *([side[n] for n in _COLUMNS] for side in found["plan"])])
    if format == "markdown":
        rows = [[measured(n, side[n]) for n in _COLUMNS] for side in found["plan"]]
        return markdown_table([_COLUMNS, *rows], right=(2, 3, 4, 5))
    return _table(found)


def _judges(judging: dict[str, Any]) -> str:
    more = f", and {', '.join(judging['more'])} where they disagree" if judging["more"] else ""
    who, sentences = f"by {', '.join(judging['judges'])}", judging["sentences"]
    rubric = f"rubric {judging['rubric']} with {plural(judging['items'], 'item')}"
    asked = f"{plural(sentences['behaviors'], 'sentence')} of scenarios"
    scorers = judging["scorers"]
    phases = (
        (judging, f"{who}{more}: {rubric}"),
        (scorers, f"{who}: {plural(scorers['questions'], 'question')} of scorers"),
        (sentences, f"{who}: {asked}"),
    )
    return "".join(
        f"\n{plural(phase['judgments'], 'judgment')} {what}, at least "
        f"{plural(phase['prompt_tokens_at_least'], 'input token')} (not part of the cost below)"
        for phase, what in phases
        if phase["judgments"]
    )


def _table(found: dict[str, Any]) -> str:
    terminal = Terminal()
    attempts = plural(found["attempts"], "attempt")
    terminal.print(f"{clean(found['suite'])}: {attempts}", style="bold")
    sides = ("tasks", "subjects", "tiers", "runs")
    for name in ("narrowed", "changed"):
        if found[name]:
            terminal.print(clean(f"{name}: {found[name]}"))
    terminal.print(" × ".join(plural(found[name], name[:-1]) for name in sides))
    for side in found["plan"]:
        output, cost = side["output_tokens"], side["cost_usd_at_least"]
        most = "no limit on output" if output is None else f"at most {count(output)} out"
        price = "price unknown" if cost is None else f"about {money(cost)}"
        price = "free: it runs on this machine" if side["price_source"] == LOCAL else price
        terminal.print(f"\n{clean(side['subject'])}, tier {clean(side['tier'])}", style="bold")
        terminal.print(f"{plural(side['prompt_tokens'], 'token')} in, {most}, {price}")
        for turn in side["example"]:
            terminal.print(f"{turn['role']}:", style="dim")
            terminal.print(clean(turn["content"]))
    if found["judging"]:
        terminal.print(clean(_judges(found["judging"])))
    known = found["cost_usd"] is not None
    suffix = "" if known else " or more: some prices or limits are unknown"
    least = found["cost_usd_at_least"]
    is_free = all(side["price_source"] == LOCAL for side in found["plan"])
    total = "nothing" if is_free else f"{money(least)}{suffix}"
    terminal.print(f"\nEstimated cost: {total}. No model was called.")
    return terminal.text()
