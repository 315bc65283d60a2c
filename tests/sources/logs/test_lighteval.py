"""Details and results of lighteval."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pennyweight
from pennyweight.errors import InputError, UsageError
from sources.logs.fixtures import expected, fixture
from sources.logs.reading import notes_of, records

TIME = "2026-01-02T03-04-05.000001"


def document(number: int, score: float, said: str) -> dict[str, Any]:
    doc = {"id": str(number), "query": f"{number} + 1", "choices": ["x", str(number + 1)],
           "gold_index": 1, "task_name": "sums|0", "specific": {"level": "hard"}}  # fmt: skip
    chat = [{"role": "user", "content": f"{number} + 1"}]
    reply = {"input": chat, "text": [f"It is {said}"], "text_post_processed": [said]}
    return {"doc": doc, "metric": {"em": score, "other": 0.5}, "model_response": reply}


def written(folder: Path, em: float = 0.5) -> Path:
    details = folder / f"details/lab/mini/{TIME}"
    results = folder / "results/lab/mini"
    details.mkdir(parents=True)
    results.mkdir(parents=True)
    rows = [document(1, 1.0, "2"), document(2, 0.0, "9")]
    pl.DataFrame(rows).write_parquet(details / f"details_sums|0_{TIME}.parquet")
    model = {"model_name": "lab/mini", "api_key": "sk-secret"}
    config = {"lighteval_sha": "?", "model_config": model}
    whole = {"config_general": config, "results": {"sums|0": {"em": em}, "all": {"em": em}}}
    (results / f"results_{TIME}.json").write_text(json.dumps(whole))
    return folder


def test_a_document_is_a_record_and_no_key_is_copied(tmp_path: Path) -> None:
    rows = records(written(tmp_path))
    right, wrong = rows
    assert (right["subject"], right["suite"], right["task_id"]) == (
        "lab/mini",
        "sums|0",
        "sums|0/1",
    )
    assert (right["input"], right["target"], right["answer"]) == ("1 + 1", "2", "2")
    assert (right["response"], right["passed"], wrong["passed"]) == ("It is 2", True, False)
    assert right["specific.level"] == "hard"
    assert "sk-secret" not in json.dumps(rows)
    assert notes_of(tmp_path) == []


def test_a_difference_is_told_and_a_metric_can_be_chosen(tmp_path: Path) -> None:
    path = written(tmp_path, em=0.75)
    (note,) = notes_of(path)
    assert note.endswith("reports em of sums|0 0.75; these records give 0.5.")
    assert [row["impl_rate"] for row in records(path, scorer="other")] == [0.5, 0.5]
    with pytest.raises(UsageError, match="The log has em, other"):
        records(path, scorer="f1")


def test_results_without_details_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    with pytest.raises(InputError, match="it has no details"):
        records(path / f"results/lab/mini/results_{TIME}.json")


def test_damaged_details_are_told(tmp_path: Path) -> None:
    (file,) = written(tmp_path).rglob("*.parquet")
    whole = file.read_bytes()
    for damaged in (whole[:-1], whole[: len(whole) // 2], whole[:-8] + b"\xff\xff\xff\x7fPAR1"):
        file.write_bytes(damaged)
        with pytest.raises(InputError, match=r"details_sums\|0_.* is cut off or damaged"):
            records(tmp_path)
    bare = pl.DataFrame({"doc": [None, 1], "metric": [1, 1], "model_response": [1, 1]})
    bare.write_parquet(file)
    assert records(tmp_path, skip_bad=True) == []


def test_a_real_log_gives_the_tool_s_number() -> None:
    scores = pennyweight.score(fixture("lighteval"))
    assert scores["pass_rate"].value == expected("lighteval")["labsums|0"]["em"]
    assert notes_of(fixture("lighteval")) == []
