"""Samples of lm-evaluation-harness."""

import json
from pathlib import Path
from typing import Any

import pytest

import pennyweight
from pennyweight.errors import InputError, UsageError
from sources.logs.fixtures import expected, fixture
from sources.logs.reading import notes_of, records

TIME = "2026-01-02T03-04-05.6"


def sample(doc: int, **more: Any) -> dict[str, Any]:
    return {
        "doc_id": doc,
        "doc": {"q": "2 + 2"},
        "target": "4",
        "arguments": {"gen_args_0": {"arg_0": "2 + 2 =", "arg_1": {"until": []}}},
        "resps": [[" It is 4.", " 5"]],
        "filtered_resps": ["4"],
        "filter": "strict",
        "metrics": ["exact_match", "near"],
        "exact_match": 1.0,
        "near": 0.5,
        **more,
    }


SUMS = [
    sample(0),
    sample(1, filtered_resps=["[invalid]"], exact_match=0.0),
    sample(0, filter="loose", exact_match=0.0),
    sample(1, filter="loose"),
]
CHOICES = [
    sample(0, target="1", metrics=["acc"], acc=1.0, filter="none",
           arguments={f"gen_args_{n}": {"arg_0": "Capital?", "arg_1": f" {city}"}
                      for n, city in enumerate(("Rome", "Paris"))},
           resps=[[["-4.5", "False"]], [["-0.1", "True"]]],
           filtered_resps=[["-4.5", "False"], ["-0.1", "True"]]),
]  # fmt: skip
ROLLING = [sample(0, metrics=["ppl"], ppl=[-17.2, 6], filtered_resps=["-17.2"], filter="none")]
CHAT = '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2 + 2?"}]'


def log(folder: Path, scores: dict[str, Any] | None = None, **tasks: Any) -> Path:
    for task, samples in tasks.items():
        lines = "".join(json.dumps(one) + "\n" for one in samples)
        (folder / f"samples_{task}_{TIME}.jsonl").write_text(lines)
    results = {"results": scores or {}, "configs": {}, "versions": {}, "model_name": "lab/m"}
    (folder / f"results_{TIME}.json").write_text(json.dumps(results))
    return folder


def test_samples_of_several_tasks(tmp_path: Path) -> None:
    rows = records(log(tmp_path, sums=SUMS, choices=CHOICES, rolling=ROLLING))
    assert [(r["task_id"], r["suite"], r["answer"], r["response"], r["passed"]) for r in rows] == [
        ("choices/0", "choices", "1", " Paris", True),
        ("rolling/0", "rolling", None, None, None),
        ("sums/0", "sums", "4", " It is 4.", True),
        ("sums/1", "sums", None, " It is 4.", False),
    ]
    assert {r["subject"] for r in rows} == {"lab/m"}
    assert [r["target"] for r in rows] == ["1", None, "4", "4"]
    assert rows[1]["logprob"] == -17.2
    assert rows[2]["responses"] == [" It is 4.", " 5"]
    assert pennyweight.score(tmp_path)["pass_rate"].value == 2 / 3


def test_a_filter_and_a_metric_are_chosen(tmp_path: Path) -> None:
    path = log(tmp_path, sums=SUMS, choices=CHOICES)
    loose = [(r["task_id"], r["passed"]) for r in records(path, filter="loose")]
    assert loose == [("sums/0", False), ("sums/1", True)]
    one = path / f"samples_sums_{TIME}.jsonl"
    assert records(one, scorer="loose") == records(one, filter="loose")
    assert [r["impl_rate"] for r in records(one, scorer="near")] == [0.5, 0.5]
    assert [r["impl_rate"] for r in records(one, scorer="exact_match,loose")] == [0, 1]
    with pytest.raises(UsageError, match="sums has no filter 'nope', only strict, loose"):
        records(one, filter="nope")
    with pytest.raises(UsageError, match="The log has exact_match, near"):
        records(one, scorer="nope", filter="strict")


def test_what_differs_from_the_results_is_told(tmp_path: Path) -> None:
    right = {"sums": {"exact_match,strict": 0.5, "exact_match,loose": 0.5}}
    assert notes_of(log(tmp_path, right, sums=SUMS)) == []
    wrong = {"sums": {"exact_match,strict": 0.6}}
    (told,) = notes_of(log(tmp_path, wrong, sums=SUMS))
    assert told.endswith("exact_match,strict of sums 0.6; these records give 0.5.")


def test_the_results_stand_for_their_samples(tmp_path: Path) -> None:
    log(tmp_path, sums=SUMS)
    assert len(records(tmp_path / f"results_{TIME}.json")) == 2
    (tmp_path / f"samples_sums_{TIME}.jsonl").unlink()
    with pytest.raises(InputError, match="--log_samples"):
        pennyweight.score(tmp_path)


def test_old_logs_and_chats(tmp_path: Path) -> None:
    """Up to 0.4.2 one array, arguments as lists; up to 0.4.5 no names of filters and metrics."""
    folder = tmp_path / "lab__old"
    folder.mkdir()
    old = [{k: v for k, v in one.items() if k not in {"filter", "metrics", "near"}} for one in SUMS]
    old = [{**one, "arguments": [["2 + 2 =", {"until": []}]]} for one in old]
    (folder / "sums.jsonl").write_text(json.dumps(old, indent=4))
    rows = records(folder)
    assert [(r["task_id"], r["passed"], r["input"]) for r in rows] == [
        ("sums/0", True, "2 + 2 ="), ("sums/1", False, "2 + 2 =")]  # fmt: skip
    assert {r["subject"] for r in rows} == {"lab/old"}
    chat = tmp_path / "chat"
    chat.mkdir()
    asked = {"gen_args_0": {"arg_0": [CHAT], "arg_1": {}}}
    (row,) = records(log(chat, sums=[sample(0, arguments=asked, metrics=["bypass"], bypass=999)]))
    assert (row["input"], row["passed"], row["impl_rate"]) == ("2 + 2?", None, None)
    assert [one["role"] for one in json.loads(row["messages"])] == ["system", "user"]
    assert pennyweight.score(chat)["accuracy"].value is None


def test_a_broken_line_is_told(tmp_path: Path) -> None:
    path = log(tmp_path, sums=SUMS[:1]) / f"samples_sums_{TIME}.jsonl"
    path.write_text(path.read_text() + '{"doc_id": 1, "res')
    with pytest.raises(InputError, match="line 2: not JSON"):
        pennyweight.score(tmp_path)
    assert len(records(tmp_path, skip_bad=True)) == 1


def test_the_real_logs_give_what_lm_eval_reports() -> None:
    for name, theirs in expected("lm_eval").items():
        folder = (fixture("lm_eval") / name).parent
        rows = records(folder)
        assert {r["subject"] for r in rows} == {theirs["model"]}
        for task, count in theirs["n-samples"].items():
            mine = [r for r in rows if r["suite"] == task]
            assert len(mine) == count["effective"]
            for key, value in theirs["results"][task].items():
                metric, _, filter_ = key.partition(",")
                if not filter_ or "stderr" in metric or value in {"N/A", 999} or value > 1.04:
                    continue
                (path,) = folder.glob(f"samples_{task}_*")
                scored = pennyweight.score(path, scorer=metric, filter=filter_)
                assert scored["impl_rate_mean"].value == pytest.approx(value)
                assert not notes_of(path, key)
