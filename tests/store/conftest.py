"""A store of each kind, new for each test."""

import pytest

from pennyweight.store.store import Store


@pytest.fixture
def store(store_address):
    made = Store(store_address)
    yield made
    made.close()
