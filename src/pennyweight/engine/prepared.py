"""An attempt made ready: what is sent, to whom, and the most it may take."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pennyweight.engine.budget import Amount
    from pennyweight.engine.conversations import Talk
    from pennyweight.engine.limiter import Limiter
    from pennyweight.models.model import Model, Request, Settings
    from pennyweight.store.store import Row
    from pennyweight.suite.plan import Attempt
    from pennyweight.suite.values import Price


@dataclass(frozen=True, slots=True)
class PreparedSide:
    """What all attempts of one subject in one tier share."""

    model: Model
    limiter: Limiter
    settings: Settings
    output: int
    """The most tokens that may come out of a call."""
    sent: int
    """The most tokens of what is sent beside the messages: tools, a schema, what is extra."""
    mark: str
    price: Price | None


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt made ready: what is sent, to whom, and the most it may take."""

    attempt: Attempt
    side: PreparedSide
    request: Request
    turns: str
    fingerprint: str
    most: Amount
    one: Amount
    """The most of one call, where a scripted user makes several of them."""
    talk: Talk | None = None
    rows: list[Row] = field(default_factory=list)
    """The ledger of the calls of a conversation that are not written yet."""

    def taken_rows(self, last: Row | None = None) -> list[Row]:
        """Give the rows that are to be written, once."""
        taken = [*self.rows, last] if last else [*self.rows]
        self.rows.clear()
        return taken
