"""Logs that real tools wrote. They are not part of the repository."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

PLACE = Path(os.environ.get("PENNYWEIGHT_LOGS", Path(__file__).parents[3] / "../shared/logs"))
"""The folder with `fixtures/`: beside the repository, or where PENNYWEIGHT_LOGS says."""


def fixture(name: str) -> Path:
    """Return the folder with the logs of a tool; skip the test if there is none."""
    folder = PLACE / "fixtures" / name
    if not folder.is_dir():
        pytest.skip("no logs of other tools: PENNYWEIGHT_LOGS names the folder of their fixtures")
    return folder


def expected(name: str) -> Any:
    """Return what the tool itself reported."""
    return json.loads((fixture(name) / "expected.json").read_text())
