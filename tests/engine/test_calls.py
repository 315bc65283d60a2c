"""One call within a budget: what is reserved for it, and until when."""

import asyncio

import pytest

from pennyweight.engine.budget import Amount, Budget
from pennyweight.engine.calls import call_once
from pennyweight.engine.limiter import ClosedError
from pennyweight.engine.reservation_ledger import ReservationLedger
from pennyweight.engine.tally import Tally
from pennyweight.models.model import Message, Model, Request, Settings
from pennyweight.suite.values import Limits

ONE = Amount(0.25, 100)


class Closing(Model):
    """A model whose turn does not come any more."""

    name = account = "m"

    async def call(self, request):
        raise ClosedError


def test_a_call_that_was_not_sent_reserves_nothing():
    """The second call is covered by what the ledger holds for the first."""

    async def made():
        written = []

        async def write(usd, tokens):
            written.append((usd, tokens))

        budget = Budget(Limits(usd=1.0))
        budget.ledger = ReservationLedger(write)
        request = Request((Message("user", "hi"),), Settings(), 1)
        for _ in range(2):
            with pytest.raises(ClosedError):
                await call_once(
                    Closing(), request, ("attempt", "m"), ONE, budget, Tally(1), lambda _: ONE
                )
        return budget.held_usd, written

    assert asyncio.run(made()) == (0.0, [(0.25, 100)])
