"""Sources at a path: records, logs, folders with both."""

from pathlib import Path

import pytest

import pennyweight
from pennyweight.errors import InputError
from pennyweight.sources.discovery import file_sources
from pennyweight.sources.source import FileSource


def test_records_stay_records(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"task_id": "a", "passed": true}')
    (tmp_path / "notes.yaml").write_text("a: 1")
    (source,) = file_sources(tmp_path)
    assert isinstance(source, FileSource)
    assert pennyweight.score(tmp_path)["pass_rate"].value == 1


def test_a_folder_with_a_log_that_is_not_read_is_refused_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"task_id": "a", "passed": true}')
    (tmp_path / "b.json").write_text('{"schema_version": "0.3", "evaluation_results": []}')
    with pytest.raises(InputError, match="this is a log of Every Eval Ever"):
        pennyweight.score(tmp_path)
