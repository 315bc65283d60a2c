"""Logs that are kept as runs: same scores, with steps, messages and checks."""

import json
from pathlib import Path

import pytest

import pennyweight
from pennyweight.api.log_import import import_logs, import_once
from pennyweight.api.pages import records
from pennyweight.api.pages.digest_cache import compute
from pennyweight.api.runs import all_runs
from pennyweight.errors import InputError, UsageError
from pennyweight.record import AttemptKey
from pennyweight.store.store import Store
from sources.logs import test_inspect_ai as inspect
from sources.logs import test_lm_eval as lm_eval
from sources.logs import test_promptfoo as promptfoo


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store.db"))


def test_a_run_has_the_scores_of_its_log(tmp_path: Path, store: Store) -> None:
    slow = inspect.sample("slow", limit={"type": "time"}, target=["4", "four"])
    path = inspect.log(tmp_path, samples=[*inspect.SAMPLES, slow])
    made = import_logs(path, "sums-1", store=store)
    assert (made.run_id, made.records, made.errors) == ("sums-1", 5, 0)
    assert made.notes[0].startswith("log.eval: Inspect AI reports samples 4")
    for options in ({}, {"answer": "last_number"}, {"match": "contains"}):
        ours = pennyweight.score("sums-1", store=store, **options)
        theirs = pennyweight.score(path, **options)
        for name, estimate in theirs.groups[0].estimates.items():
            assert ours[name].value == estimate.value, name
    assert pennyweight.score("sums-1", by="suite", store=store).groups[0].group == {"suite": "sums"}


def test_the_page_shows_messages_steps_and_checks(tmp_path: Path, store: Store) -> None:
    import_logs(inspect.log(tmp_path), "r", store=store)
    shown = records.detail(store, store.find("r"), AttemptKey("r", "lab/m", "T0", "b/ c", 2))
    assert [turn["role"] for turn in json.loads(shown.row["messages"])] == ["user"]
    assert shown.steps == [("assistant", '[calls add({"x": 1})]'), ("tool add", "4")]
    assert [(c.name, c.good, c.why) for c in shown.checks] == [("match", False, "as said")]
    assert (shown.measures["passed"], shown.measures["correct"]) == (False, False)
    assert shown.measures["answer"] == "4"


def test_several_logs_are_one_run_and_equal_attempts_are_further_ones(
    tmp_path: Path, store: Store
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    paths = [inspect.log(tmp_path / "a"), inspect.log(tmp_path / "b", "indented")]
    assert import_logs(paths, "both", store=store).records == 8
    attempts = sorted(key.attempt for key in store.attempts("both") if key.task_id.endswith("a"))
    assert attempts == [1, 2, 3, 4]


def test_other_tools_and_records(tmp_path: Path, store: Store) -> None:
    log = promptfoo.written(tmp_path, "x.json")
    assert import_logs(log, store=store).errors == 1
    assert pennyweight.score("latest", store=store)["pass_rate"].value == 2 / 3
    (tmp_path / "lm").mkdir()
    folder = lm_eval.log(tmp_path / "lm", sums=lm_eval.SUMS)
    import_logs(folder, "lm", filter="loose", store=store)
    assert pennyweight.score("lm", store=store)["accuracy"].value == 0.5
    plain = tmp_path / "plain.jsonl"
    plain.write_text(
        '{"question": "2+2", "answer": "4", "target": "4"}\n{"answer": "5", "target": "4"}'
    )
    import_logs(plain, "plain", store=store)
    assert pennyweight.score("plain", store=store)["accuracy"].value == 0.5
    assert "sk-secret" not in Path(store.address).read_bytes().decode("latin-1")


def test_plain_files_are_named_by_their_files_and_have_their_cost(
    tmp_path: Path, store: Store
) -> None:
    rows = [{"task_id": str(k), "answer": "4", "target": "4", "cost_usd": 0.25} for k in range(3)]
    for name, own in (("mmlu.v2.jsonl", rows), ("gsm8k.jsonl", [dict(rows[0], cost_usd=None)])):
        text = "".join(json.dumps(row) + "\n" for row in own)
        (tmp_path / name).write_text(text, "utf-8")
    import_logs(tmp_path / "mmlu.v2.jsonl", "one", store=store)
    import_logs([tmp_path / "mmlu.v2.jsonl", tmp_path / "gsm8k.jsonl"], "both", store=store)
    import_logs(tmp_path / "gsm8k.jsonl", "free", store=store)
    found = {one.run.id: one for one in all_runs(store)[0]}
    assert {name: one.run.suite for name, one in found.items()} == {
        "one": "mmlu", "both": "mmlu, gsm8k", "free": "gsm8k",
    }  # fmt: skip
    costs = {name: one.spent["usd"] for name, one in found.items()}
    assert costs == {"one": 0.75, "both": 0.75, "free": None}
    assert compute(store, store.find("one"))["spent"]["usd"] == 0.75


def test_texts_with_null_characters_are_equal_in_the_file_and_in_the_run(
    tmp_path: Path, store_address: str
) -> None:
    either = Store(store_address)
    pairs = [("a\0b", "a\0b"), ("a\0b", ["a\0b"]), ("a\0b", "ab"), ("\\u0000", "\\u0000")]
    rows = [
        {"task_id": f"t{n}", "attempt": k, "answer": answer, "target": target, "context": "a\0b"}
        for n, (answer, target) in enumerate(pairs)
        for k in (1, 2)
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    import_logs(file, "r", store=either)
    ours, theirs = pennyweight.score("r", store=either), pennyweight.score(file)
    assert ours["accuracy"].value == theirs["accuracy"].value == 0.75
    key = AttemptKey("r", "unknown", "T0", "t0", 1)
    shown = records.detail(either, either.find("r"), key)
    assert shown.row["target"] == shown.measures["answer"] == "a\ufffdb"
    assert compute(either, either.find("r"))["whole"]["records"] == 8


def test_kinds_of_errors_that_limits_gave_can_be_filtered_by_and_are_no_errors(
    tmp_path: Path, store: Store
) -> None:
    ended = [("a", "error", "auth"), ("b", "timeout", "time_limit"), ("c", "error", None)]
    rows = [dict(zip(("task_id", "status", "error_kind"), row, strict=True)) for row in ended]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    import_logs(tmp_path / "r.jsonl", "r", store=store)
    found = compute(store, store.find("r"))
    assert found["error_kinds"] == {"auth": 1}
    assert found["filter_kinds"] == ["auth", "time_limit"]


def test_an_export_scores_alike(tmp_path: Path, store: Store) -> None:
    import_logs(inspect.log(tmp_path), "r", store=store)
    pennyweight.export("r", tmp_path / "r.jsonl", store=store)
    assert pennyweight.score(tmp_path / "r.jsonl")["accuracy"].value == 0.75


@pytest.mark.parametrize("name", ["latest", "a b", "../x", "", "x" * 81])
def test_a_name_that_is_none_is_refused(name: str, tmp_path: Path, store: Store) -> None:
    with pytest.raises(UsageError, match="a name has up to 80"):
        import_logs(inspect.log(tmp_path), name, store=store)


def test_a_name_is_given_once_and_a_failure_leaves_nothing(tmp_path: Path, store: Store) -> None:
    import_logs(inspect.log(tmp_path), "r", store=store)
    with pytest.raises(UsageError, match="there is a run of this name"):
        import_logs(inspect.log(tmp_path), "r", store=store)
    broken = [*inspect.members(inspect.SAMPLES), ("samples/z_epoch_1.json", b"{")]
    path = inspect.zipped(tmp_path / "broken.eval", broken)
    with pytest.raises(InputError, match="skip-bad"):
        import_logs(path, "s", store=store)
    assert [run.id for run in store.runs()] == ["r"]
    assert import_logs(path, "s", skip_bad=True, store=store).left_out == 1


def test_an_imported_run_has_no_suite(tmp_path: Path, store: Store) -> None:
    import_logs(inspect.log(tmp_path), "r", store=store)
    for verb in (pennyweight.resume, pennyweight.judge):
        with pytest.raises(UsageError, match="was imported from a log, so it has no suite"):
            verb("r", store=store)
    with pytest.raises(UsageError, match="'pennyweight export' writes it"):
        import_logs("r", "again", store=store)


def test_a_log_that_is_served_is_kept_once_and_again_if_it_changed(
    tmp_path: Path, store: Store
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "suites").mkdir()
    suite = tmp_path / "suites" / "suite.yaml"
    suite.write_text("tasks: [{id: a, input: b}]\n")
    path = inspect.log(tmp_path / "logs")
    folders, made = import_once([suite, suite.parent, path, path.parent], store)
    assert folders == [suite, suite.parent]
    assert [one.records for one in made.values() if one] == [4, 4]
    assert [name[:4] for name in made] == ["log-", "logs"]
    assert list(import_once([path], store)[1].values()) == [None]
    inspect.log(tmp_path / "logs", samples=[*inspect.SAMPLES, inspect.sample("more")])
    ((name, again),) = import_once([path], store)[1].items()
    assert again is not None
    assert name not in made
    assert again.records == 5


def test_a_folder_with_suites_beside_logs_is_a_folder_of_suites(
    tmp_path: Path, store: Store
) -> None:
    inspect.log(tmp_path)
    (tmp_path / "suite.yaml").write_text("tasks: [{id: a, input: b}]\n")
    assert import_once([tmp_path], store) == ([tmp_path], {})
