"""Every known log is recognised by its content, whatever its name, and never read as records."""

import importlib.metadata
import io
import json
import math
import random
import re
import shutil
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pennyweight
from pennyweight.errors import InputError, PennyweightError, UsageError
from pennyweight.sources.discovery import file_sources
from pennyweight.sources.log_format import LogFormat
from pennyweight.sources.log_source import LogSource
from pennyweight.sources.logs import registry
from pennyweight.sources.logs.registry import format_of, formats
from pennyweight.sources.peek import Peek
from sources.logs.fixtures import fixture
from sources.logs.reading import records


def archive(**members: Any) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, value in members.items():
            file.writestr(name.replace("__", "/") + ".json", json.dumps(value))
    return made.getvalue()


def table(**columns: Any) -> bytes:
    made = io.BytesIO()
    pl.DataFrame({name: [value] for name, value in columns.items()}).write_parquet(made)
    return made.getvalue()


LOGS: dict[str, list[Any]] = {
    "inspect": [
        archive(header={"version": 2}),
        archive(_journal__start={"version": 2}),
        {"version": 2, "eval": {"task": "sums", "model": "m"}, "samples": []},
    ],
    "lm_eval": [
        {"doc_id": 0, "doc": {}, "resps": [["4"]], "filtered_resps": ["4"]},
        {"results": {"a": {"acc,none": 1}}, "configs": {}, "versions": {}},
        [{"doc_id": 0, "doc": {}, "resps": [["4"]], "filtered_resps": ["4"]}],
    ],
    "promptfoo": [
        {"evalId": "e", "results": {"version": 3, "results": []}},
        {"results": {"version": 2, "results": [], "table": {}}, "config": {}},
        {"promptIdx": 0, "testIdx": 0, "success": True, "gradingResult": None},
        b"evalId: e\nresults:\n  version: 3\n",
        b"config: {}\nresults:\n  version: 3\nevalId: e\n",
        b"q,[mini] plain,Status,Score,Named Scores,Grader Reason\n1,2,PASS,1,,\n",
        b"<promptfoo>\n  <evalId>e</evalId>\n</promptfoo>",
        b"<!doctype html><html><title>promptfoo</title></html>",
    ],
    "otel": [
        {"resourceSpans": [{"scopeSpans": []}]},
        {"resourceLogs": [{"scopeLogs": []}]},
        {"name": "chat", "context": {"trace_id": "0x1", "span_id": "0x2"}, "attributes": {}},
    ],
    "harbor": [
        {"task_name": "a", "trial_name": "a__1", "agent_info": {}},
        {"schema_version": "ATIF-v1.8", "steps": []},
        {"id": "j", "started_at": "2026-01-02", "n_total_trials": 3, "stats": {}},
    ],
    "scylla": [{"run_number": 1, "token_stats": {}, "judge_score": 0.5, "cost_usd": 1}],
    "helm": [
        {"name": "s", "scenario_spec": {}, "adapter_spec": {}},
        {"adapter_spec": {}, "request_states": []},
        [{"instance_id": "id1", "train_trial_index": 0, "stats": []}],
        [{"name": {"name": "exact_match"}, "count": 1, "sum": 1, "sum_squared": 1}],
    ],
    "lighteval": [
        table(doc={"id": "1"}, metric={"em": 1}, model_response={"text": ["4"]}),
        {"config_general": {"lighteval_sha": "?"}, "results": {}},
    ],
    "deepeval": [
        {"testCases": [], "testPassed": 0},
        {"testRunData": {"testCases": [{"name": "a", "actualOutput": "4"}]}},
    ],
    "openai_evals": [
        {"spec": {"completion_fns": ["m"], "eval_name": "e"}},
        {"run_id": "r", "event_id": 0, "sample_id": "s", "type": "match", "data": {}},
    ],
    "pydantic_evals": [{"name": "r", "cases": [], "failures": [], "analyses": []}],
    "swe_bench": [
        {"resolved_ids": [], "submitted_ids": [], "total_instances": 1},
        {"instance_id": "a", "model_patch": "", "model_name_or_path": "m"},
        {"lab__shop-1": {"patch_successfully_applied": True, "resolved": True}},
    ],
    "tau_bench": [[{"task_id": 0, "reward": 1.0, "info": {}, "traj": [], "trial": 0}]],
    "tau2_bench": [{"info": {"agent_info": {}}, "tasks": [], "simulations": []}],
    "mlflow": [
        {"trace_id": "t", "exact/value": True},
        b"trace_id,exact/value\nt,True\n",
    ],
    "ragas": [
        {"user_input": "q", "response": "4", "reference": "4"},
        b"user_input,retrieved_contexts,response,reference\nq,[],4,4\n",
    ],
    "hal": [{"config": {"benchmark_name": "b"}, "results": {}, "raw_eval_results": {}}],
    "agentlab": [{"n_steps": 3, "cum_reward": 1.0, "err_msg": None}],
    "codex": [{"timestamp": "t", "type": "session_meta", "payload": {}}],
    "claude_code": [{"sessionId": "s", "uuid": "u", "type": "user", "message": {}}],
    "every_eval_ever": [{"schema_version": "0.3.0", "evaluation_results": [], "model_info": {}}],
}
CASES = [(name, number) for name, logs in LOGS.items() for number in range(len(logs))]
BYTES = {b"P": ".parquet", b"<": ".html", b"e": ".yaml"}


def written(log: Any, folder: Path) -> Path:
    """Write a log under a name that tells nothing; values as indented JSON."""
    if isinstance(log, bytes):
        path = folder / f"x{BYTES.get(log[:1], '.csv')}"
        path.write_bytes(log)
        return path if not log.startswith(b"PK") else path.rename(folder / "x.eval")
    path = folder / "x.json"
    path.write_text(json.dumps(log, indent=2))
    return path


@pytest.mark.parametrize(("name", "number"), CASES)
def test_a_log_is_recognised_and_never_read_as_records(
    name: str, number: int, tmp_path: Path
) -> None:
    path = written(LOGS[name][number], tmp_path)
    found = format_of(Peek.of(path))
    assert found is not None
    assert found.name == name
    if found.read is None:
        for place in (path, tmp_path):
            with pytest.raises(InputError, match=f"this is a log of {found}") as error:
                pennyweight.score(place)
            assert str(error.value).count("\n") == 0
    else:
        (source,) = file_sources(path)
        assert isinstance(source, LogSource)


@pytest.mark.parametrize("name", [n for n, logs in LOGS.items() if isinstance(logs[0], dict)])
def test_lines_are_recognised_as_well_as_indented_objects(name: str, tmp_path: Path) -> None:
    line = json.dumps(LOGS[name][0])
    path = tmp_path / "x.jsonl"
    path.write_text(f"{line}\n{line}\n")
    found = format_of(Peek.of(path))
    assert found is not None
    assert found.name == name


DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(
    "format_", [one for one in formats() if one.read], ids=lambda one: one.name
)
def test_every_format_has_a_page_that_says_what_is_not_read(format_: LogFormat) -> None:
    pages = [path for path in DOCS.glob("coming-from-*.md") if format_.title in path.read_text()]
    texts = [" ".join(path.read_text().split()) for path in pages]
    assert any(format_.lost in text for text in texts), format_.lost
    overview = (DOCS / "logs.md").read_text()
    assert any(f"({path.name})" in overview for path in pages)


def test_every_format_is_tried() -> None:
    assert {one.name for one in formats()} == set(LOGS)


@pytest.mark.parametrize(
    "record",
    [
        {"task_id": "a", "answer": "4", "target": "4"},
        {"task_id": "a", "attempt": 1, "passed": True, "cost_usd": 0.1},
        {"id": 1, "model": "m", "prompt": "q", "completion": "4", "label": "4"},
        {"question": "q", "response": "4", "reference": "4"},
        {"run": "r", "trace_id": "t", "passed": True},
    ],
)
def test_records_are_no_log(record: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps(record))
    assert format_of(Peek.of(path)) is None


@pytest.mark.parametrize(
    "name", ["inspect", "lm_eval", "promptfoo", "otel", "harbor", "scylla", "helm", "lighteval",
             "deepeval", "openai_evals", "pydantic_evals", "swe_bench", "tau_bench", "tau2_bench",
             "mlflow", "ragas", "hal", "agentlab", "codex", "claude_code"],
)  # fmt: skip
def test_the_real_logs_are_recognised(name: str) -> None:
    """`expected.json`, configurations and data sets are no logs; all that a tool reports is one."""
    folder = fixture(name)
    files = [p for p in folder.rglob("*") if p.is_file()]
    found = {path: format_of(Peek.of(path)) for path in files}
    assert {one.name for one in found.values() if one} == {name}
    assert found[folder / "expected.json"] is None


def test_a_log_on_standard_input_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = json.dumps({"promptIdx": 0, "testIdx": 0, "success": True}).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line)))
    with pytest.raises(InputError, match="Standard input is a log of promptfoo"):
        pennyweight.score("-", map={"passed": "success"})


OURS = LogFormat(
    "ours",
    "Our tool",
    lambda peek: peek.has("ours"),
    lambda log: iter([{"task_id": log.path.name, "passed": True}]),
)


def installed(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    point = importlib.metadata.EntryPoint("ours", value, registry.ENTRY_POINTS)
    monkeypatch.setattr(registry, "points", lambda _: [point])
    registry.formats.cache_clear()


@pytest.fixture
def _restored() -> Any:
    yield
    registry.formats.cache_clear()


@pytest.mark.usefixtures("_restored")
def test_a_format_of_another_package_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    installed(monkeypatch, f"{__name__}:OURS")
    path = written({"ours": 1, "task_id": "other"}, tmp_path)
    (source,) = file_sources(path)
    assert isinstance(source, LogSource)
    assert source.format is OURS


@pytest.mark.usefixtures("_restored")
@pytest.mark.parametrize("value", [f"{__name__}:LOGS", "no_such_package:FORMAT"])
def test_a_wrong_entry_point_is_told(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, value)
    with pytest.raises(UsageError, match="The log format 'ours'"):
        formats()


EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "logs").iterdir())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_a_choice_that_a_log_does_not_have_is_refused(path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--scorer: (there are no scores|\w+ 'Nope' is not)"):
        pennyweight.score(path, scorer="Nope")
    with pytest.raises(UsageError, match=r"^--filter: (there are no filters|.* no filter 'nope')"):
        pennyweight.score(path, filter="nope")


NUMBER = re.compile(rb"(?<=[:\[,\s])-?\d+(?:\.\d+)?(?=[,\]}\s])")
TEXT = re.compile(rb'"(?:[^"\\\n]|\\.){1,80}"(?!\s*:)')


def replaced(pattern: re.Pattern[bytes], by: bytes, data: bytes, rng: random.Random) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return by + data
    one = rng.choice(found)
    return data[: one.start()] + by + data[one.end() :]


DAMAGE: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "cut": lambda data, rng: data[: rng.randrange(len(data))],
    "bytes": lambda data, rng: replaced(re.compile(rb"."), b"\xff\xed\xa0\x80", data, rng),
    "NaN": partial(replaced, NUMBER, b"NaN"),
    "infinite": partial(replaced, NUMBER, b"-1e999"),
    "large": partial(replaced, NUMBER, b"9" * 400),
    "deep": partial(replaced, TEXT, b"[" * 50_000 + b"]" * 50_000),
    "list": partial(replaced, TEXT, b"[[null]]"),
    "object": partial(replaced, TEXT, b'{"a": "\\ud800"}'),
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_no_damage_to_a_log_is_more_than_an_error(path: Path, tmp_path: Path) -> None:
    rng = random.Random(path.name)
    whole = len(records(path))
    for number, (kind, damaged) in enumerate(DAMAGE.items()):
        copy = tmp_path / str(number) / path.name
        copy.parent.mkdir()
        (shutil.copytree if path.is_dir() else shutil.copy)(path, copy)
        files = [one for one in (copy, *copy.rglob("*")) if one.is_file()]
        file = rng.choice(files)
        file.write_bytes(damaged(file.read_bytes(), rng))
        with suppress(PennyweightError):
            rows = records(copy, skip_bad=True)
            assert len(rows) <= whole or kind != "cut"
            values = [v for row in rows for v in row.values() if isinstance(v, float)]
            assert all(map(math.isfinite, values))
