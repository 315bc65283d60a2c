"""Tables of tasks in every format."""

import json

import polars as pl
import pytest
import zstandard

from pennyweight.suite.loader import load_suite
from suite.problems import MINIMAL, mistakes


def test_tasks_from_every_kind_of_file(write, tmp_path):
    rows = [
        {"id": "a", "input": "one", "target": "1", "topic": "x"},
        {"id": "b", "input": 'two, "2"', "target": "2", "topic": "y"},
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "t.csv")
    pl.DataFrame(rows).write_parquet(tmp_path / "t.parquet")
    pl.DataFrame(rows).write_ndjson(tmp_path / "t.jsonl")
    (tmp_path / "t.json").write_text(json.dumps(rows, indent=1))
    loaded = [
        load_suite(write(MINIMAL.format(tasks=f"t.{kind}")))
        for kind in ("csv", "parquet", "jsonl", "json")
    ]
    assert [t.id for t in loaded[0].tasks] == ["a", "b"]
    assert loaded[0].tasks[1].extra == {"topic": "y"}
    assert len({s.data_hash for s in loaded}) == 1
    assert len({s.tasks[1].input for s in loaded}) == 1


def test_a_quote_that_is_not_closed_swallows_no_rows(write):
    path = write(
        "suite: s\ntasks: t.csv\nsubjects: [m]\n",
        t_csv='id,input,target\na,"1 + 1?,2\nb,"2 + 2?",4\nc,3?,3\n',
    )
    (mistake,) = mistakes(path)
    assert "t.csv" in mistake
    assert "line 2" in mistake or ":2" in mistake
    assert "a quote is not closed" in mistake


def test_a_hub_data_set_needs_its_package(write, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    path = write(MINIMAL.format(tasks="hf:owner/name"))
    assert "pip install 'pennyweight[datasets]'" in "\n".join(mistakes(path))


def test_a_hub_data_set(write, monkeypatch):
    class Hub:
        @staticmethod
        def get_dataset_split_names(name, config):
            return ["train", "validation"]

        @staticmethod
        def load_dataset(name, config, split):
            return [{"question": f"{name} {split}", "answer": 1}]

    monkeypatch.setitem(__import__("sys").modules, "datasets", Hub)
    suite = load_suite(write(MINIMAL.format(tasks="hf:owner/name")))
    assert suite.tasks[0].input == "owner/name validation"


@pytest.mark.parametrize(
    ("table", "mistake"),
    [
        ("id,input,target,target\na,1?,1,2\n", "t.csv, line 1: the column 'target' appears twice"),
        ("id,input,target\na,1?,1\nb,2?\n\n , \n", "t.csv, line 3: 2 cells, but the header has 3"),
        ("id,input,target\na,1?,1,1\n", "t.csv, line 2: 4 cells, but the header has 3"),
    ],
)
def test_a_table_with_cells_that_belong_nowhere_is_refused(write, table, mistake):
    (found,) = mistakes(write("suite: s\ntasks: t.csv\nsubjects: [m]\n", t_csv=table))
    assert mistake in found


def test_tasks_do_not_come_from_standard_input(write, tmp_path, monkeypatch):
    path = write(MINIMAL.format(tasks='"-"'))
    for folder in (tmp_path, tmp_path.parent):
        monkeypatch.chdir(folder)
        (mistake,) = mistakes(path.relative_to(tmp_path) if folder == tmp_path else path)
        assert "Tasks cannot be read from standard input" in mistake


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("t.jsonl.zst", "line 1: longer than 64 MB"),
        ("t.csv.zst", "more than 256 MB of tasks"),
        ("t.json.zst", "more than 256 MB of tasks"),
    ],
)
def test_a_bomb_of_tasks_is_refused(name, said, write, tmp_path):
    with (tmp_path / name).open("wb") as raw, zstandard.ZstdCompressor(1).stream_writer(raw) as out:
        for _ in range(400):
            out.write(b"a" * (1 << 20))
    (mistake,) = mistakes(write(MINIMAL.format(tasks=name)))
    assert said in mistake


def test_tasks_in_a_yaml_file(write):
    text = "# two tasks\n- question: How much?\n  target: 010\n- just text\n"
    suite = load_suite(write(MINIMAL.format(tasks="t.yaml"), t_yaml=text))
    assert [(t.id, t.input, t.target) for t in suite.tasks] == [
        ("1", "How much?", "010"),
        ("2", "just text", None),
    ]


def test_mistakes_in_a_yaml_file_of_tasks(write):
    def problems(text):
        return mistakes(write(MINIMAL.format(tasks="t.yaml"), t_yaml=text))

    assert problems("a: b\n") == ["t.yaml, line 1: a YAML file of tasks must be a list."]
    assert problems("- a\n\t- b\n") == [
        "t.yaml, line 2: not YAML: a tab cannot indent YAML; use spaces."
    ]
    assert problems("- {id: x}\n")[0].startswith("t.yaml, line 1: task 'x' has no input")


def test_columns_are_made_from_others(write):
    made = (
        "{target: \"{{ solution.split('#')[-1] }}\", choices: '{{ [a, b] }}', input: 'Q: {{ q }}'}"
    )
    rows = '{"q": "x", "solution": "1 # 2", "a": "one", "b": 2}\n'
    text = f"suite: s\ntasks: {{from: t.jsonl, make: {made}}}\nsubjects: [m]\n"
    (task,) = load_suite(write(text, t_jsonl=rows)).tasks
    assert (task.input, task.target, task.extra["choices"]) == ("Q: x", " 2", ["one", 2])
    wrong = write(text.replace("[a, b]", "nothing.x"), t_jsonl=rows)
    (mistake,) = mistakes(wrong)
    assert "t.jsonl, line 1: make: choices: " in mistake
