"""Events of OpenAI Evals."""

import json
from pathlib import Path

import pytest

import pennyweight
from sources.logs.fixtures import expected, fixture
from sources.logs.reading import notes_of, records

SPEC = {"spec": {"completion_fns": ["mini"], "eval_name": "sums.dev.v0", "run_id": "r1"}}
REPORT = {"final_report": {"accuracy": 0.5}, "run_id": "r1"}


def event(sample: str, kind: str, **data: object) -> dict[str, object]:
    return {"run_id": "r1", "event_id": 0, "sample_id": sample, "type": kind, "data": data}


def sampling(sample: str, asked: str, said: str) -> dict[str, object]:
    chat = [{"role": "system", "content": "Add."}, {"role": "user", "content": asked}]
    usage = {"prompt_tokens": 9, "completion_tokens": 2}
    return event(sample, "sampling", prompt=chat, sampled=[said], usage=usage)


EVENTS = [
    SPEC,
    REPORT,
    sampling("b", "1 + 1", "3"),
    sampling("a", "2 + 2", "4"),
    event("a", "match", correct=True, expected=["4", "four"], picked="4"),
    event("b", "match", correct=False, expected="2", picked=None),
    sampling("a", "Is it right?", "Yes"),
]


def written(folder: Path, *events: object) -> Path:
    path = folder / "events.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in events))
    return path


def test_the_events_of_a_sample_are_one_record(tmp_path: Path) -> None:
    path = written(tmp_path, *EVENTS)
    wrong, right = records(path)
    assert (right["run"], right["subject"], right["suite"]) == ("r1", "mini", "sums.dev.v0")
    assert (right["task_id"], right["input"], right["response"]) == ("a", "2 + 2", "4")
    assert (right["passed"], right["target"]) == (True, '["4","four"]')
    assert (right["prompt_tokens"], right["completion_tokens"]) == (9, 2)
    assert (wrong["passed"], wrong["target"], wrong["answer"]) == (False, "2", None)
    assert notes_of(path) == []


def test_a_difference_from_the_report_and_an_aborted_eval_are_told(tmp_path: Path) -> None:
    other = {"final_report": {"accuracy": 0.75}}
    path = written(tmp_path, SPEC, other, *EVENTS[2:])
    (note,) = notes_of(path)
    assert note.endswith("reports accuracy 0.75; these records give 0.5.")
    assert notes_of(written(tmp_path, SPEC, *EVENTS[2:])) == [
        "events.jsonl: the eval has no final report: it was aborted."
    ]


def test_a_grader_s_choice_is_kept_and_decides_only_with_a_score(tmp_path: Path) -> None:
    graded = [event("a", "metrics", choice="B", score=None), event("b", "metrics", score=1.0)]
    no_score, scored = records(written(tmp_path, SPEC, *EVENTS[3:4], EVENTS[2], *graded))
    assert (no_score["choice"], no_score["passed"]) == ("B", None)
    assert (scored["passed"], scored["impl_rate"]) == (True, 1.0)


def test_a_sample_without_a_reply_is_an_error(tmp_path: Path) -> None:
    (row,) = records(written(tmp_path, SPEC, event("a", "error", message="no route")))
    assert (row["status"], row["error"], row["passed"]) == ("error", "no route", None)


@pytest.mark.parametrize("name", ["sums.jsonl", "incl.jsonl"])
def test_real_logs_give_the_tool_s_accuracy(name: str) -> None:
    path = fixture("openai_evals") / name
    scores = pennyweight.score(path)
    assert scores["pass_rate"].value == pytest.approx(expected("openai_evals")[name]["accuracy"])
    assert notes_of(path) == []


def test_a_real_graded_log_keeps_every_choice() -> None:
    rows = records(fixture("openai_evals") / "fact.jsonl")
    report = expected("openai_evals")["fact.jsonl"]
    choices = [row["choice"] for row in rows]
    assert {f"counts/{c}": choices.count(c) for c in set(choices)}.items() <= report.items()
