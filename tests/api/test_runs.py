"""A run in Python: its records, scores, comparisons, verdicts and report."""

from pathlib import Path
from typing import Any, get_type_hints

import pandas
import polars as pl
import pytest

import pennyweight
from pennyweight import Run, Suite
from pennyweight.engine.ending import EndKind
from pennyweight.scoring.estimates import Estimate

TASKS = [{"id": f"t{n}", "input": f"{n} + 2?", "target": n + 2} for n in range(8)]


def right(prompt: str) -> str:
    return str(int(prompt[0]) + 2)


def wrong(prompt: str) -> str:
    if prompt.startswith("7"):
        raise RuntimeError("no seven")
    return "2"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    tiers = {"T0": {}, "T1": {"system": "Think."}}
    return pennyweight.run(Suite(TASKS, [right, wrong], name="sums", tiers=tiers))


def test_a_run_has_its_records_as_a_frame(made: Run) -> None:
    frame = made.records()
    assert isinstance(frame, pl.DataFrame)
    assert frame.height == 32
    assert {"task_id", "subject", "tier", "response", "answer", "correct"} <= set(frame.columns)
    failed = made.failures()
    assert set(failed["subject"]) == {"wrong"}
    assert failed.height == 2 * 7
    assert failed.filter(status="error")["task_id"].unique().to_list() == ["t7"]


def test_groups_and_metrics_are_asked_for_by_name(made: Run) -> None:
    scores = made.scores(by="tier")
    assert scores["T1"]["accuracy"].value == pytest.approx(9 / 15)
    assert made.scores()["right", "T0"]["accuracy"].value == 1
    assert made.scores(by=())["accuracy"].value == pytest.approx(18 / 30)
    with pytest.raises(KeyError, match="There are: 'T0', 'T1'"):
        scores["T2"]
    with pytest.raises(KeyError, match="Did you mean 'accuracy'"):
        scores["T1"]["acuracy"]
    assert "T1" in scores
    assert "T2" not in scores
    assert "accuracy" in scores["T1"]
    assert "acuracy" not in scores["T1"]


def test_scores_go_back_to_their_records(made: Run) -> None:
    for scores in (made.scores(by="tier"), pennyweight.score("latest"), pennyweight.score(made)):
        assert scores.failures().height == 14
        (pair,) = (p for p in scores.compare(by="subject").pairs if p.metric == "accuracy")
        assert pair.to_dict()["difference"] == pytest.approx(-6 / 7)


def test_results_are_tables_of_polars_and_pandas(made: Run) -> None:
    Path("policy.yaml").write_text("thresholds: {blocking: {accuracy: 90%}}\n")
    scores, compared = made.scores(by="tier", metrics="accuracy"), made.compare(by="subject")
    decided = made.gate("policy.yaml", where={"subject": "wrong", "tier": "T0"})
    assert decided.verdict == "fail"
    for result in (scores, compared, decided):
        frame, table = result.to_polars(), result.to_pandas()
        assert isinstance(table, pandas.DataFrame)
        assert list(table.columns) == frame.columns
        assert len(table) == frame.height
        assert result.to_dict()
    assert scores.to_polars()["value"].to_list() == pytest.approx([9 / 15] * 2)
    assert scores.to_pandas()["grade"].isna().all()
    assert compared.to_polars()["metric"][0] == "accuracy"
    assert ("accuracy", "fail") in decided.to_polars().select("metric", "verdict").rows()


def test_a_run_is_loaded_again_with_what_it_came_to(made: Run) -> None:
    (listed,) = pennyweight.runs()
    for again in (listed, pennyweight.load(), pennyweight.load(made.id[:-1])):
        assert (again.id, again.suite, again.status) == (made.id, "sums", "failed")
        assert (again.attempts, again.made, again.missing) == (32, 30, 2)
        assert again.errors == made.errors == {"function": 2}
        assert (again.exit_code, again.ended.kind) == (4, EndKind.INCOMPLETE)
        assert again.retries is None
        assert again.records().equals(made.records())
    assert repr(listed) == f"Run('{made.id}', 'sums', failed, 30 of 32 attempts)"


def test_a_report_is_written(made: Run) -> None:
    made.report("report.html")
    assert "sums" in Path("report.html").read_text("utf-8")


def test_a_run_without_records_says_so(made: Run) -> None:
    empty = pennyweight.load()
    pennyweight.run(Suite(TASKS[:1], {"broken": wrong}))
    assert empty.id == made.id
    for record in (pennyweight.load().records(), pennyweight.load().failures()):
        assert isinstance(record, pl.DataFrame)


def test_pandas_frames_are_scored() -> None:
    frame = pandas.DataFrame({"answer": ["4", 5, None], "target": ["4", "4", "4"]})
    assert pennyweight.score(frame)["accuracy"].value == pytest.approx(1 / 3)


def test_a_number_of_a_metric_needs_no_proof_that_it_is_one() -> None:
    hints = get_type_hints(Estimate)
    assert {hints[name] for name in ("value", "low", "high")} == {float | Any}
