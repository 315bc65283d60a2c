"""What tests of batches share: a local server of batches, and a store."""

from contextlib import closing

import pytest

from batch_serving import batch_server
from pennyweight.store.store import Store


@pytest.fixture
def server(tmp_path):
    with batch_server(tmp_path) as started:
        yield started


@pytest.fixture
def store(tmp_path):
    with closing(Store(str(tmp_path / "store.db"))) as opened:
        yield opened
