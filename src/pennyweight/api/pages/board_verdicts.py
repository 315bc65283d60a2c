"""The stored verdicts of policies on the sides of a leaderboard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Any

from pennyweight.render.page.board import BoardVerdict
from pennyweight.render.view import when
from pennyweight.store.cache import policy_verdicts
from pennyweight.store.store import Store, StoredRun


def board_verdicts(
    store: Store,
    run: StoredRun,
    board: Mapping[str, Any],
    href: Callable[[Mapping[str, str]], str] | None = None,
) -> dict[str, list[BoardVerdict]]:
    """Return the verdicts by the name of the side; `href` leads to its gates."""
    same = {n: values[0] for n, values in run.sides.items() if len(values) == 1}
    names: dict[str, str] = {}
    for side in board["sides"]:
        own = {n: str(v) for n, v in side["group"].items()}
        for chosen in (own, {**same, **own}):
            names |= {", ".join(order): side["name"] for order in permutations(chosen.values())}
    groups = {side["name"]: side["group"] for side in board["sides"]}
    found: dict[str, list[BoardVerdict]] = {}
    for one in policy_verdicts(store, run.id):
        if one.side in names:
            group = groups[names[one.side]]
            where = {n: v for n, v in group.items() if n in {"subject", "tier"}}
            made = BoardVerdict(
                one.policy, one.verdict, one.current, when(one.at), href(where) if href else ""
            )
            found.setdefault(names[one.side], []).append(made)
    return found
