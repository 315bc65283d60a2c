"""Misspelt keys of tasks, and values that are neither yes nor no."""

from pennyweight.schema.spelling import near_miss
from pennyweight.suite.tasks import GUARDED


def test_every_field_is_found_by_its_own_name():
    assert all(near_miss(name, GUARDED) for name in GUARDED)
