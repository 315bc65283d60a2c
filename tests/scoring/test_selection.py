import json
from pathlib import Path
from typing import Any

import pytest

from cli.command import pennyweight, refused
from pennyweight.api.compare import compare
from pennyweight.api.export import export
from pennyweight.api.score import score
from pennyweight.errors import InputError, UsageError
from pennyweight.store.store import Store
from store.samples import RUN, record, run

ROWS: list[dict[str, Any]] = [
    {"id": i, "model": f"m{i % 2}", "tier": f"T{i // 2 % 2}",
     "shade": "Dark " if i < 6 else "light", "target": "1", "answer": "1" if i % 3 else "2"}
    for i in range(12)
]  # fmt: skip


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ({"tier": "t1"}, 6),
        ({"subject": "m0"}, 6),
        ({"shade": " dark"}, 6),
        ({"correct": "false"}, 4),
        ({"tier": "T0", "correct": "true"}, 4),
    ],
)
def test_records_are_selected_by_column_and_measure(where: dict[str, str], count: int) -> None:
    found = score(ROWS, where=where, metrics=["accuracy"])
    assert found.groups[0].records == count
    assert "shade" not in found.unused or "shade" not in where


def test_an_unknown_column_and_an_unknown_value_are_refused() -> None:
    with pytest.raises(UsageError, match="Column 'shad' is not known"):
        score(ROWS, where={"shad": "dark"})
    with pytest.raises(InputError, match="There are no records with tier=T9"):
        score(ROWS, where={"tier": "T9"})


def test_both_sides_of_a_comparison_are_selected() -> None:
    rows = [{**row, "id": row["id"] // 4} for row in ROWS]
    found = compare(rows, by="tier", where={"subject": "m1"})
    assert [side.group.records for side in found.sides] == [3, 3]


def test_what_is_left_out_is_in_no_other_file(tmp_path: Path) -> None:
    path, measured = tmp_path / "r.jsonl", tmp_path / "measured.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    options = ("--where", "tier=T1", "--where", "shade=dark")
    done = pennyweight("score", path, *options, "--per-task", measured, "--format", "json")
    assert done.json["groups"][0]["records"] == 2
    assert {json.loads(x)["tier"] for x in measured.read_text().splitlines()} == {"T1"}
    assert "NAME=VALUE" in refused("score", path, "--where", "tier")


def test_a_run_is_exported_in_part(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s.db"))
    rule = {"kind": "exact", "absolute": "0", "relative": "0", "separator": "", "each": "exact"}
    store.add_run(run(settings={"answer": {"kind": "last_line", "value": ""}, "match": rule}))
    rows = [record(f"t{i}", response=str(i), target="3", extra='{"shade": "dark"}' if i else None)
            for i in range(5)]  # fmt: skip
    store.write(rows, [])
    path = tmp_path / "r.jsonl"

    def tasks(**where: str) -> list[str]:
        export(RUN, path, where=where, store=store)
        return [json.loads(line)["task_id"] for line in path.read_text().splitlines()]

    assert tasks(correct="true") == ["t3"]
    assert tasks(passed="false", shade="dark") == ["t1", "t2", "t4"]
    assert tasks(task_id="T2") == ["t2"]
    with pytest.raises(InputError, match="no records with task_id=x"):
        tasks(task_id="x")
    with pytest.raises(UsageError, match="'shad' is not known"):
        tasks(shad="x")
    assert score(RUN, where={"shade": "dark"}, store=store).groups[0].records == 4
    store.close()
