"""Results of promptfoo: JSON, YAML and JSONL."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import pennyweight
from pennyweight.errors import InputError, UsageError
from sources.logs.fixtures import expected, fixture
from sources.logs.reading import notes_of, records


def result(question: str = "2 + 2", **more: Any) -> dict[str, Any]:
    return {
        "cost": 0.5,
        "gradingResult": {
            "pass": True,
            "componentResults": [
                {"pass": True, "score": 1, "reason": "fine", "assertion": {"type": "contains"}},
                {"pass": False, "score": 0.25, "reason": "rude",
                 "assertion": {"type": "llm-rubric", "metric": "polite"}},
            ],
        },
        "latencyMs": 20,
        "namedScores": {"polite": 0.25},
        "prompt": {"raw": question, "label": "plain", "config": {"apiKey": "sk-secret"}},
        "promptIdx": 0,
        "provider": {"id": "openai:m", "label": "mini"},
        "response": {"output": {"answer": 4}, "finishReason": "length"},
        "score": 0.75,
        "success": True,
        "testCase": {"description": "a sum", "vars": {"q": question}, "assert": [],
                     "metadata": {"category": "easy"}, "options": {"apiKey": "sk-secret"}},
        "testIdx": 0,
        "tokenUsage": {"prompt": 9, "completion": 0, "cached": 0},
        "failureReason": 0,
        **more,
    }  # fmt: skip


RESULTS = [
    result(),
    result(testIdx=1, success=False, failureReason=1, error="Expected output to contain 4"),
    result("3 + 3", failureReason=2, success=False, error="no reply", gradingResult=None),
    result("3 + 3", provider={"id": "openai:m", "label": ""}, score=-0.014),
]
STATS = {"successes": 2, "failures": 1, "errors": 1}
EXPORT = {"evalId": "eval-1", "results": {"version": 3, "prompts": [{"metrics": {}}],
                                          "results": RESULTS, "stats": STATS}}  # fmt: skip
FORMS = ["indented.json", "compact.json", "x.yaml", "x.jsonl"]


def written(folder: Path, name: str, export: Any = EXPORT) -> Path:
    path = folder / name
    if name.endswith("jsonl"):
        path.write_text("".join(json.dumps(one) + "\n" for one in export["results"]["results"]))
    elif name.endswith("yaml"):
        path.write_text(yaml.safe_dump(export, sort_keys=False))
    else:
        path.write_text(json.dumps(export, indent=2 if name.startswith("indented") else None))
    return path


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_records(form: str, tmp_path: Path) -> None:
    path = written(tmp_path, form)
    rows = records(path)
    names = ("subject", "attempt", "status", "passed", "impl_rate")
    assert [tuple(r[name] for name in names) for r in rows] == [
        ("mini", 1, "ok", True, 0.75),
        ("mini", 2, "ok", False, 0.75),
        ("mini", 1, "error", None, None),
        ("openai:m", 1, "ok", True, None),
    ]  # fmt: skip
    assert len({r["task_id"] for r in rows}) == 2
    first = rows[0]
    assert (first["tier"], first["input"], first["response"]) == ("plain", "2 + 2", '{"answer":4}')
    assert (first["cost_usd"], first["prompt_tokens"], first["completion_tokens"]) == (0.5, 9, None)
    assert first["truncated"] is True
    assert first["category"] == "easy"
    assert rows[1]["error"] is None
    assert rows[2]["error"] == "no reply"
    checks = json.loads(first["checks"])
    assert [(c["name"], c["holds"], c["why"]) for c in checks] == [
        ("contains", True, "fine"), ("polite", False, "rude")]  # fmt: skip
    assert "sk-secret" not in json.dumps(rows)
    assert pennyweight.score(path)["pass_rate"].value == 2 / 3


def test_both_numbers_are_told_and_what_differs(tmp_path: Path) -> None:
    assert notes_of(written(tmp_path, "x.json")) == [
        "x.json: promptfoo counts errors as failures: 2 of 4 passed (50.00 %). Without the 1 "
        "error, 2 of 3 passed (66.67 %); the scores here leave errors out."
    ]
    wrong = {**EXPORT, "results": {**EXPORT["results"], "stats": {**STATS, "successes": 3}}}
    assert notes_of(written(tmp_path, "x.json", wrong))[1] == (
        "x.json: promptfoo reports successes 3; these records give 2."
    )


def test_one_form_of_several_is_read(tmp_path: Path) -> None:
    for name in ("x.json", "x.jsonl", "x.yaml"):
        written(tmp_path, name)
    (tmp_path / "x.html").write_text("<!doctype html><html>promptfoo</html>")
    assert len(records(tmp_path)) == 4
    assert notes_of(tmp_path)[0] == "x: not read: x.yaml, x.jsonl, the same results as x.json."


def test_a_score_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, "x.json")
    named = [(r["passed"], r["impl_rate"]) for r in records(path, scorer="polite")]
    assert named == [(False, 0.25), (False, 0.25), (None, None), (False, 0.25)]
    kind = [r["passed"] for r in records(path, scorer="contains")]
    assert kind == [True, True, None, True]
    with pytest.raises(UsageError, match="'nope' is not known"):
        records(path, scorer="nope")


def test_version_2_without_a_reason_of_failure(tmp_path: Path) -> None:
    old = [{k: v for k, v in one.items() if k != "failureReason"} for one in RESULTS]
    export = {"results": {"version": 2, "table": {}, "results": old, "stats": STATS}}
    path = written(tmp_path, "x.json", export)
    assert [r["status"] for r in records(path)] == ["ok", "ok", "error", "ok"]


@pytest.mark.parametrize("form", FORMS)
def test_a_cut_export_is_told(form: str, tmp_path: Path) -> None:
    path = written(tmp_path, form)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    if form == "x.yaml":  # cut between two lines, it is still YAML
        assert "no summary" in notes_of(path)[0]
        return
    with pytest.raises(InputError):
        pennyweight.score(path)


@pytest.mark.parametrize("name", ["out.json", "out.yaml", "out.jsonl"])
def test_the_real_exports_give_what_promptfoo_reports(name: str) -> None:
    path, theirs = fixture("promptfoo") / name, expected("promptfoo")
    rows, stats = records(path), theirs["stats"]
    assert sum(r["passed"] is True for r in rows) == stats["successes"]
    assert sum(r["passed"] is False for r in rows) == stats["failures"]
    assert sum(r["status"] == "error" for r in rows) == stats["errors"]
    usage = theirs["tokenUsage"]
    assert sum(r["prompt_tokens"] or 0 for r in rows) == usage["prompt"]
    assert sum(r["completion_tokens"] or 0 for r in rows) == usage["completion"]
    for prompt in theirs["prompts"]:
        mine = [
            r for r in rows if (r["subject"], r["tier"]) == (prompt["provider"], prompt["label"])
        ]
        assert sum(r["passed"] is True for r in mine) == prompt["metrics"]["testPassCount"]
        cost = sum(r["cost_usd"] or 0 for r in mine)
        assert cost == pytest.approx(prompt["metrics"]["cost"])
    (both,) = notes_of(path)
    assert f"{theirs['pass_rate_shown_percent']} %" in both


def test_aliases_that_stand_for_gigabytes_are_refused(tmp_path: Path) -> None:
    lines = ["evalId: e", "results:", "  version: 3", "  a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    path = tmp_path / "x.yaml"
    path.write_text("\n".join([*lines, "  results: [*a8]"]))
    with pytest.raises(InputError, match="aliases stand for too much"):
        records(path)
