"""A first suite, created in a folder."""

from pathlib import Path

import pytest

from pennyweight.api.init import init
from pennyweight.errors import InputError, UsageError
from pennyweight.gates.loader import load_policy
from pennyweight.suite.loader import load_suite


@pytest.mark.parametrize("scenarios", [False, True])
def test_what_is_created_can_be_loaded(tmp_path: Path, scenarios: bool) -> None:
    created = init(tmp_path / "new", scenarios=scenarios)
    assert all(path.is_file() for path in created.files)
    assert load_suite(created.suite).tasks
    assert (created.policy is not None) is scenarios
    if created.policy:
        assert load_policy(created.policy).gates


def test_existing_files_are_replaced_only_on_request(tmp_path: Path) -> None:
    suite = init(tmp_path).suite
    suite.write_text("mine")
    with pytest.raises(InputError, match="already exists"):
        init(tmp_path)
    assert suite.read_text() == "mine"
    init(tmp_path, force=True)
    assert suite.read_text() != "mine"


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        init(tmp_path / "file" / "folder")
