"""Keep the workspaces of tests among themselves, and try agents in every sandbox."""

import pytest

from agent.trying import needs_bubblewrap

EVERYWHERE = ["bubblewrap", "none"]


@pytest.fixture(autouse=True)
def _workspaces(tmp_path, monkeypatch):
    monkeypatch.setenv("PENNYWEIGHT_WORKSPACES", str(tmp_path / "workspaces"))


@pytest.fixture(params=EVERYWHERE)
def sandbox(request):
    if request.param == "bubblewrap":
        needs_bubblewrap()
    return request.param


@pytest.fixture
def _bubblewrap():
    needs_bubblewrap()
