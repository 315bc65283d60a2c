"""Keep the workspaces of tests among themselves."""

import pytest


@pytest.fixture(autouse=True)
def _workspaces(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_WORKSPACES", str(tmp_path / "workspaces"))
