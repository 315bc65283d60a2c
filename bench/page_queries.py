"""The pages of a run of a million records, each with the SELECT that fetches its rows."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from bench.sample_store import OFTEN, RARE
from pennyweight.catalogue import METRICS

PHRASE = f'"{RARE}"'
"""Without quotes, its words would be looked for one by one."""
Query = tuple[str, tuple[Any, ...]]
Address = str | Callable[[int], str]
"""An address, or one for each request."""


def _order(number: int) -> str:
    """Return another order of the leaderboard for each number."""
    turns = ("", "&order=reverse", "&all=1", "&order=reverse&all=1")
    more, index = divmod(number, len(METRICS))
    return f"sort={[*METRICS][index]}{turns[more % len(turns)]}"


def asked(run: str, *, like: bool) -> dict[str, tuple[Address, list[Query]]]:
    """Return each page's address, and the queries that fetch the same rows with all columns."""
    at = f"/runs/{run}/records"
    both = (
        "SELECT r.*, m.* FROM pennyweight_record r "
        "LEFT JOIN pennyweight_measured m ON m.run = r.run AND "
        "m.task_id = r.task_id AND m.subject = r.subject AND m.tier = r.tier AND "
        "m.attempt = r.attempt WHERE r.run = ?"
    )
    order = "ORDER BY r.task_id {0}, r.subject {0}, r.tier {0}, r.attempt {0} LIMIT 51"
    sign = "ILIKE" if like else "LIKE"
    names = ("input", "response", "reasoning", "task_id", "error")
    text = f"({' OR '.join(f'r.{n} {sign} ?' for n in names)})"
    listed = "id, suite, status, attempts, created, ended, settings"
    brief = "metric, value, low, high, records, errors, d.cost_usd"
    runs = (
        f"SELECT {listed}, {brief} FROM pennyweight_run "
        "LEFT JOIN pennyweight_digest d ON d.run = id"
    )
    one = "SELECT * FROM pennyweight_run LEFT JOIN pennyweight_digest d ON d.run = id WHERE id = ?"
    inner = (
        "SELECT run, task_id, subject, tier, attempt FROM pennyweight_measured "
        "WHERE run = ? {0} LIMIT 51"
    )
    whole = (
        "SELECT r.*, m.* FROM ({0}) k "
        "JOIN pennyweight_measured m USING (run, task_id, subject, tier, "
        "attempt) JOIN pennyweight_record r USING (run, task_id, subject, tier, attempt)"
    )
    wrong = inner.format(
        "AND NOT correct AND latency_ms >= 3000 ORDER BY task_id, subject, tier, attempt"
    )
    slow = inner.format("ORDER BY latency_ms DESC, task_id, subject, tier, attempt")

    grid = "SELECT * FROM pennyweight_grid WHERE run = ? AND sides = 'subject,tier' {0} LIMIT 22"
    cells = grid.format("ORDER BY mean, task_id")
    far = grid.format("AND differs ORDER BY agreement, task_id") + " OFFSET 20000"

    def search(part: str) -> Query:
        return f"{both} AND {text} {order.format('')}", (run, *[f"%{part}%"] * len(names))

    return {
        "runs": ("/", [(f"{runs} ORDER BY created DESC", ())]),
        "run": (f"/runs/{run}", [(one, (run,))]),
        "leaderboard, sorted": (
            f"/runs/{run}?sort=latency_p95_ms",
            [(one, (run,)), (cells, (run,))],
        ),
        "leaderboard, new order": (
            lambda i: f"/runs/{run}?{_order(i)}",
            [(one, (run,)), (cells, (run,))],
        ),
        "leaderboard, all new": (
            lambda i: f"/runs/{run}?{_order(i)}&from={22 * (i + 1)}",
            [(one, (run,)), (cells + " OFFSET 1650", (run,))],
        ),
        "grid": (f"/runs/{run}/grid", [(cells, (run,))]),
        "grid, new tasks": (
            lambda i: f"/runs/{run}/grid?from={22 * (i + 1)}",
            [(cells + " OFFSET 1650", (run,))],  # in the middle of those that are asked for
        ),
        "grid, filtered, far down": (
            f"/runs/{run}/grid?only=differs&rows=disagreement&from=20000",
            [(far, (run,))],
        ),
        "first page": (at, [(f"{both} {order.format('')}", (run,))]),
        "last page": (f"{at}?last=1", [(f"{both} {order.format('DESC')}", (run,))]),
        "filtered by measures": (
            f"{at}?correct=no&latency_ms_min=3000",
            [(whole.format(wrong), (run,))],
        ),
        "sorted by a measure": (
            f"{at}?sort=latency_ms&order=down",
            [(whole.format(slow), (run,))],
        ),
        "search for a frequent word": (f"{at}?q={OFTEN}", [search(OFTEN)]),
        "search for a rare phrase": (f"{at}?q={quote(PHRASE)}", [search(RARE)]),
    }
