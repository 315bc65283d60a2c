"""Sources at a path: records, logs, folders with both."""

import json
from pathlib import Path

import pytest

import pennyweight
from pennyweight.errors import InputError
from pennyweight.sources.discovery import file_sources
from pennyweight.sources.source import FileSource
from sources.logs.reading import records


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


def test_a_value_that_the_tool_never_writes_is_an_error_in_words(tmp_path: Path) -> None:
    """A list in place of a text, an infinite count: in any format, and in a user's own."""
    lines = [
        {"spec": {"eval_name": "sums", "completion_fns": ["m"]}},
        {"run_id": "1", "event_id": 0, "sample_id": {"a": 1}, "type": "match"},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError, match=r"a\.jsonl: not a log as OpenAI Evals writes it"):
        pennyweight.score(tmp_path / "a.jsonl")


def test_a_name_that_is_a_list_is_read_as_text(tmp_path: Path) -> None:
    case = {"name": ["a", 1], "actualOutput": "2", "success": True, "metricsData": []}
    run = {"testCases": [case], "testPassed": 1}
    (tmp_path / "run.json").write_text(json.dumps(run))
    (record,) = records(tmp_path / "run.json")
    assert record["task_id"] == '["a",1]'


def test_a_suite_is_not_taken_for_records(tmp_path):
    path = tmp_path / "suite.yaml"
    path.write_text("name: sums\ntasks: tasks.jsonl\n")
    with pytest.raises(InputError, match=r"this is a suite\. 'pennyweight run .*suite\.yaml' runs"):
        file_sources(path)
