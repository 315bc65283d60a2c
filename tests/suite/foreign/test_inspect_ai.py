"""Data sets of Inspect AI."""

from __future__ import annotations

from pathlib import Path

import pytest

from pennyweight import run
from pennyweight.api.init import init_from
from pennyweight.errors import InputError
from pennyweight.suite.loader import load_suite
from pennyweight.suite.plan import conversation

CASES = Path(__file__).parent / "inspect_ai"
MODEL = "local/smollm2-135m"


def test_samples_become_tasks(tmp_path: Path) -> None:
    named = f"{CASES / 'capitals.jsonl'}#includes"
    with pytest.raises(InputError, match=r"capitals\.jsonl:3: sandbox"):
        init_from(named, tmp_path, model=MODEL)
    created = init_from(named, tmp_path, model=MODEL, partial=True)
    suite = load_suite(created.suite)
    first, second, third = suite.tasks
    assert (first.id, first.target, first.category) == ("fr", "Paris", "easy")
    assert first.extra == {"continent": "Europe", "meta_answer": 7}
    assert (second.id, second.target) == ("2", '["Amsterdam", "The Hague"]')
    assert [turn.content for turn in second.before] == ["Be brief."]
    assert third.id == "3"
    assert (suite.match.kind, suite.match.each) == ("any_of", "contains")
    assert [one.split(": ")[:2] for one in created.missing] == [
        ["capitals.jsonl:3", "files"],
        ["capitals.jsonl:3", "sandbox"],
    ]
    assert created.suite.read_text().count("capitals.jsonl:3") == 2


def test_the_scorer_is_named_or_nothing_decides(tmp_path: Path) -> None:
    data = tmp_path / "tea.jsonl"
    data.write_text('{"input": "What boils?", "target": "Water"}\n')
    with pytest.raises(InputError, match="samples: they do not say how replies are scored"):
        init_from(data, tmp_path / "a", model=MODEL)
    replies = {"It is water.": True, "Tea": False}
    for name, options in (("#includes", {}), ("", {"partial": True})):
        made = init_from(f"{data}{name}", tmp_path / f"new{name}", model=MODEL, **options)
        for reply, right in replies.items():
            store = str(tmp_path / "store.db")
            done = run(made.suite, models=[lambda _, said=reply: said], store=store)
            assert done.records()["passed"].to_list() == [right if name else None]
    with pytest.raises(InputError, match="no scorer 'exact'"):
        init_from(f"{data}#exact", tmp_path / "b", model=MODEL)


def test_choices_are_shown_with_letters(tmp_path: Path) -> None:
    created = init_from(CASES / "choices.json", tmp_path, model=MODEL, partial=True)
    suite = load_suite(created.suite)
    assert [task.target for task in suite.tasks] == ["A. A kettle", "B. A lamp"]
    assert "A. A kettle\nB. A lamp\n" in conversation(suite.tiers[0], suite.tasks[0])[0]["content"]
    assert created.missing == ("choices.json:4: a sample: it has several right choices",)


def test_cells_of_a_table_are_texts(tmp_path: Path) -> None:
    suite = load_suite(init_from(f"{CASES / 'table.csv'}#includes", tmp_path, model=MODEL).suite)
    assert [task.target for task in suite.tasks] == ["4", '["red", "blue"]']
    assert suite.tasks[0].extra == {"topic": "sums"}
    (tmp_path / "c.csv").write_text('input,choices,target\nWhich?,"red,blue",B\n')
    (task,) = load_suite(init_from(tmp_path / "c.csv", tmp_path / "c", model=MODEL).suite).tasks
    assert task.target == "B. blue"


def test_a_data_set_without_samples_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"input": "", "target": "x"}\n')
    with pytest.raises(InputError, match="no sample"):
        init_from(tmp_path / "x.jsonl", tmp_path / "new")
