"""A plan in words, as a table, Markdown, CSV or JSON."""

from __future__ import annotations

from collections.abc import Iterator

from pennyweight.render.format import unit_of
from pennyweight.render.plain import csv_table, json_text, markdown_table, markdown_text, wrapped
from pennyweight.render.terminal import Terminal, borderless
from pennyweight.scoring.sample_plan import Assumptions, PlanRow, SamplePlan
from pennyweight.text.format import (
    MISSING,
    count,
    declared,
    declared_points,
    level,
    money,
    number,
    plural,
    quantity,
    ratio,
    share,
)
from pennyweight.text.notation import SHARE

TEXT_WIDTH = 80


def render(plan: SamplePlan, format: str) -> str:  # noqa: A002
    """Write a plan in one of the formats."""
    if format == "json":
        return json_text({**plan.to_dict(), "words": [*advice(plan), *basis(plan)]})
    if format == "csv":
        return csv_table([plan.to_polars().columns, *plan.to_polars().rows()])
    return _markdown(plan) if format == "markdown" else _table(plan)


def _table(plan: SamplePlan) -> str:
    terminal = Terminal()
    width = min(terminal.width, TEXT_WIDTH)
    for text in advice(plan):
        terminal.print("\n".join(wrapped(text, width=width)))
    terminal.print()
    if plan.gates:
        head, *body = _gates(plan)
        table = borderless()
        for index, name in enumerate(head):
            table.add_column(name, justify="left" if index in {0, 1, 3} else "right", no_wrap=True)
        for row in body:
            table.add_row(*row)
        terminal.print(table)
        terminal.print()
    head, *body = _rows(plan)
    table = borderless()
    for name in head[:-1]:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(head[-1])
    for row in body:
        table.add_row(*row)
    terminal.print(table)
    terminal.print()
    for text in basis(plan):
        terminal.print("\n".join(wrapped(text, width=width)), style="dim")
    return terminal.text()


def _markdown(plan: SamplePlan) -> str:
    parts = ["".join(f"- {markdown_text(line)}\n" for line in advice(plan))]
    if plan.gates:
        parts.append(markdown_table(_gates(plan), right=[2, *range(4, 4 + len(plan.rows))]))
    rows = _rows(plan)
    parts.append(markdown_table(rows, right=range(len(rows[0]) - 1)))
    parts += [f"{markdown_text(line)}\n" for line in basis(plan)]
    return "\n".join(parts)


def _gates(plan: SamplePlan) -> list[list[str]]:
    """Make a head and a row for each planned gate: the tasks it needs with so many attempts."""
    rows = [["gate", "rule", "at", "decides", *(f"×{row.runs}" for row in plan.rows)]]
    for gate in plan.gates:
        if not gate.why:
            value = quantity(gate.value, unit_of(gate.metric))
            words = gate.name, gate.rule, value, gate.expected or MISSING
            rows.append([*words, *map(count, gate.tasks)])
    return rows


def _rows(plan: SamplePlan) -> list[list[str]]:
    """Make a head and a row for each number of attempts at a task; the last cell is a remark."""
    ranged = any(row.likely for row in plan.rows)
    priced = plan.cost_per_attempt is not None
    head = ["attempts at each task", "tasks"]
    head += ["likely"] * ranged + ["attempts in all"] + ["cost"] * priced + [""]
    rows = [head]
    for row in plan.rows:
        cells = [count(row.runs), count(row.tasks)]
        if ranged:
            cells.append("–".join(count(end) for end in row.likely) if row.likely else "")
        cells.append(count(row.attempts))
        if priced:
            cells.append(money(row.usd))
        rows.append([*cells, _remark(plan, row)])
    return rows


def _remark(plan: SamplePlan, row: PlanRow) -> str:
    if row == plan.best:
        return "← cheapest"
    if row.tasks is None:
        return "no number is enough"
    if plan.available is not None and row.tasks > plan.available:
        return "too many tasks"
    return ""


def goal(plan: SamplePlan) -> str:
    """Write what the plan is for."""
    if plan.question == "policy":
        return f"To decide {plan.policy}"
    name = plan.about[0].metric
    assert plan.amount is not None
    if plan.question == "width":
        return f"To estimate {name} with an interval {_size(plan)} wide"
    if plan.question == "no_worse":
        return f"To show that {name} is no worse by more than {_size(plan)}"
    if plan.relative:
        part = 1 - plan.amount if plan.amount < 1 else 1 + plan.amount
        return f"To show that {name} is {ratio(part)} on one side"
    return f"To show a difference of {_size(plan)} in {name}"


def _size(plan: SamplePlan) -> str:
    assert plan.amount is not None
    if plan.relative:
        text = declared(plan.amount, SHARE)
        return f"{text} of the mean" if plan.question == "width" else text
    return declared_points(plan.amount) if plan.unit == SHARE else declared(plan.amount)


def advice(plan: SamplePlan) -> Iterator[str]:
    """Write what to do, and what repeats are worth."""
    chance = "" if plan.question == "width" else f" with {level(plan.power)} power"
    best = plan.best
    if best is None:
        yield f"{goal(plan)}{chance}, {_impossible(plan)}"
        return
    assert best.tasks is not None
    both = " with both sides" if plan.sides == 2 else ""
    cost = f", {money(best.usd)}" if best.usd is not None else ""
    often = {1: "once", 2: "twice"}.get(best.runs, f"{best.runs} times")
    yield (
        f"{goal(plan)}{chance}, try {plural(best.tasks, 'task')} {often} each{both}: "
        f"{plural(best.attempts or 0, 'attempt')}{cost}."
    )
    if text := _repeats(plan, best):
        yield text


def _impossible(plan: SamplePlan) -> str:
    if plan.available is None or plan.limit is None:
        return "no number of tasks is enough."
    if plan.limit > plan.available:
        return (
            f"{plural(plan.available, 'task')} are not enough, however often each is tried: at "
            f"least {count(plan.limit)} are needed. Add tasks, or ask for less."
        )
    return (
        f"{plural(plan.available, 'task')} are enough only with more attempts at each than "
        f"{max(row.runs for row in plan.rows)}. List more with --runs."
    )


def _repeats(plan: SamplePlan, best: PlanRow) -> str:
    """Write what more attempts at each task would save and cost."""
    more = [row for row in plan.rows if row.runs > best.runs and row.tasks]
    if not more or not best.tasks or not best.attempts:
        return ""
    row = next((r for r in more if r.runs >= 5), more[-1])
    assert row.tasks is not None
    assert row.attempts is not None
    if row.tasks >= best.tasks:
        return "Repeating tasks does not help here: what varies are the tasks."
    times = row.attempts / best.attempts
    cost = f"for {number(times, 2)} times the attempts: repeat tasks only if they are scarce"
    if times < 1.1:
        cost = "for about as many attempts: what varies are the attempts, so repeats do as well"
    return f"With {row.runs} attempts at each task, {count(row.tasks)} tasks are enough, {cost}."


NAMES = {
    "mean": "the mean",
    "sd": "its standard deviation",
    "task_share": "the share between tasks (--task-share)",
    "correlation": "the correlation (--correlation)",
}


def basis(plan: SamplePlan) -> Iterator[str]:
    """Write what the plan rests on."""
    if plan.question != "policy":
        (about,) = plan.about
        yield _shown(plan, about)
    else:
        yield from _planned(plan)
    if any(row.likely for row in plan.rows):
        yield (
            "likely: where the number of tasks lies with 80 % probability, because the pilot shows "
            "the variation only roughly."
        )
    if plan.question == "difference":
        tests = (
            "this one comparison" if plan.comparisons == 1 else f"{plan.comparisons} comparisons"
        )
        name = plan.about[0].metric
        yield f"Tested at {level(1 - plan.confidence)} for {tests}: compare --metric {name}."
    if plan.question == "width":
        yield f"Width of the {level(plan.confidence)} interval, on average."
    if plan.question == "no_worse":
        yield (
            "Assumes that the sides are equal. A side that is worse by the margin is shown to be "
            f"no worse in at most {level(1 - plan.confidence)} of the cases: compare --margin."
        )


def _planned(plan: SamplePlan) -> Iterator[str]:
    """Write what the plan of a policy rests on, and which gates it leaves out."""
    yield "×3: the tasks that decide a gate if each is tried three times, and so on."
    if plan.pilot_tasks is None:
        yield "Assumed, as the options say. A pilot run would show how each metric varies."
    else:
        made = f"{plural(plan.pilot_tasks, 'task')}, {plural(plan.pilot_attempts or 0, 'attempt')}"
        yield (
            f"Takes the values of the pilot ({made}) for true. The closer a value is to its "
            "threshold, the more tasks decide it."
        )
    for gate in plan.gates:
        if not gate.why and gate.expected is None:
            yield (
                f"The assumed value of {gate.name} is at its threshold, which no number of tasks "
                "can decide. Assume another value, or move the threshold."
            )
    failing = [gate.name for gate in plan.gates if gate.expected == "fail"]
    if failing:
        names = " and ".join(failing)
        verb = "fails" if len(failing) == 1 else "fail"
        yield f"At these values {names} {verb}; the plan is for showing that."
    for gate in plan.gates:
        if gate.why:
            yield f"Not planned: {gate.name}, because {gate.why}."


def _shown(plan: SamplePlan, about: Assumptions) -> str:
    """Write the values that the plan assumes, and where they come from."""
    unit = unit_of(about.metric)
    parts = [f"{about.metric} {quantity(about.mean, unit)}"]
    if unit != SHARE:
        parts[0] += f" with a standard deviation of {quantity(about.sd, unit)}"
    parts.append(f"{share(about.task_share)} of its variance between tasks")
    if plan.sides == 2:
        parts.append(f"a correlation of {about.correlation:.2f} between the sides' tasks")
    text = ", ".join(parts)
    if plan.pilot_tasks is None:
        return f"Assumed: {text}. A pilot run would show them."
    made = f"{plural(plan.pilot_tasks, 'task')}, {plural(plan.pilot_attempts or 0, 'attempt')}"
    used = [n for n in about.assumed if n != "correlation" or plan.sides == 2]
    rest = f" Assumed, not seen: {' and '.join(NAMES[n] for n in used)}." if used else ""
    return f"From the pilot ({made}): {text}.{rest}"
