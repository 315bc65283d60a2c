"""What `pennyweight run` tells before, during and after a run, with functions as models."""

import csv
import io
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli.command import Result, pennyweight, refused, scores
from pennyweight.api.pages import ended_run
from pennyweight.store import cache
from pennyweight.store.lease import Owner, take_run
from pennyweight.store.store import Store
from store.samples import call

CODE = """
print("on import")

def answer(text):
    print("inside a call")
    if "broken" in text:
        raise ValueError("first line\\n\\x1b[31msecond line")
    return "Paris"
"""
TASKS = (
    "[{id: fr, input: 'France?', target: Paris, hard: no}, "
    "{id: de, input: 'Germany?', target: Berlin, hard: yes}]"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("PENNYWEIGHT_STORE", raising=False)
    (tmp_path / "told_model.py").write_text(CODE)
    yield tmp_path
    sys.modules.pop("told_model", None)


def write(**more: Any) -> None:
    keys = {"tasks": TASKS, "subjects": "['python:told_model:answer']", **more}
    text = "".join(f"{key}: {value}\n" for key, value in keys.items())
    Path("s.yaml").write_text(f"suite: s\n{text}")


def run(*arguments: str, code: int = 0) -> Result:
    result = pennyweight("run", *arguments)
    assert result.code == code, result.err
    assert "Traceback" not in result.err
    return result


def test_what_a_function_prints_stays_out_of_the_results(folder: Path) -> None:
    write(answer="last_line")
    result = run("s.yaml", "--format", "json")
    assert result.json["groups"][0]["metrics"]["accuracy"] == 0.5
    assert "on import" in result.err
    assert result.err.count("inside a call") == 2


def test_each_kind_of_error_has_an_example_on_one_line(folder: Path) -> None:
    write(tasks="[{id: a, input: fine}, {id: b, input: broken}, {id: c, input: broken too}]")
    result = run("s.yaml", code=4)
    assert "Failed attempts: 2 function. For example:" in result.err
    lines = [x for x in result.err.splitlines() if x.startswith("  function, task b: ")]
    assert len(lines) == 1
    said = "failed with ValueError: first line second line (told_model.py, line 7, in answer)"
    assert lines[0].endswith(said)
    assert "\x1b" not in result.err
    shown = pennyweight("show", "latest", "b").out
    assert shown.splitlines()[0].endswith("T0, attempt 1): error")
    assert "\nbroken\n" in shown
    assert "Error (function): python:told_model:answer failed with ValueError" in shown


def test_a_rule_that_finds_no_answer_is_told_before_and_after(folder: Path) -> None:
    write()
    before = run("s.yaml", "--dry-run").err
    assert "marker 'FINAL_ANSWER:', but no prompt of T0 asks for it" in before
    told = "The rule 'marker' (FINAL_ANSWER:) found no answer in 2 of 2 responses"
    assert told in run("s.yaml").err
    again = pennyweight("score", "latest")
    assert told in again.err
    assert "answer: last_line" in again.err
    other = pennyweight("score", "latest", "--answer", "last_line")
    assert "found no answer" not in other.err
    write(prompt="'{{ input }} End with FINAL_ANSWER: and the answer.'")
    assert "asks for it" not in run("s.yaml", "--dry-run").err


def test_a_limit_of_money_needs_the_price_of_a_function_too(folder: Path) -> None:
    write(limits="{usd: 1}")
    for more in ([], ["--dry-run"]):
        said = refused("run", "s.yaml", *more)
        assert "limits.usd cannot be enforced: the price of python:told_model:answer" in said
    write(limits="{usd: 1}", prices="{'python:told_model:answer': {input: 0, output: 0}}")
    run("s.yaml")


def test_a_budget_too_small_for_one_attempt_says_so(folder: Path) -> None:
    write(limits="{tokens: 10}")
    said = run("s.yaml", code=4).err
    assert "tokens, more than limits.tokens (10). Raise the limits in the suite, then: " in said
    assert " --yes\n" in said  # a changed suite is asked about


def test_a_prompt_without_its_task_is_told(folder: Path) -> None:
    write(prompt="What is the capital?")
    assert "The prompt of T0 uses no value of the task" in run("s.yaml", "--dry-run").err
    write(tiers="{T0: {}, T1: {prompt: 'Hello {{ id }}'}}")
    assert "uses no value" not in run("s.yaml", "--dry-run").err


def test_a_target_that_is_no_number_is_told(folder: Path) -> None:
    write(match="numeric")
    said = run("s.yaml", "--dry-run").err
    assert "the target of task 'fr' ('Paris') and 1 more is not a number" in said


def test_groups_are_checked_before_the_first_call_and_may_be_columns_of_tasks(
    folder: Path,
) -> None:
    write(answer="last_line")
    said = refused("run", "s.yaml", "--by", "hrad")
    assert "--by column 'hrad' is not known. Did you mean 'hard'?" in said
    assert pennyweight("runs", "--format", "json").json["runs"] == []
    groups = run("s.yaml", "--by", "hard", "--format", "json").json["groups"]
    found = {g["group"]["hard"]: g["metrics"]["accuracy"] for g in groups}
    assert found == {"no": 1.0, "yes": 0.0}
    scored = pennyweight("score", "latest", "--by", "hard", "--format", "json").json["groups"]
    assert [g["group"] for g in scored] == [g["group"] for g in groups]


def test_a_resumed_run_says_its_new_number_and_where_its_suite_is_from(folder: Path) -> None:
    write(runs=2)
    run("s.yaml")
    write(runs=3)
    result = run("--resume", "--yes")
    assert ": 6 attempts of s." in result.err
    Path("s.yaml").rename("moved.yaml")
    said = refused("run", "--resume")
    assert "s.yaml does not exist; the suite is taken from run" in said
    assert "call the function" in said  # nobody runs code that comes from a store
    assert ": 6 attempts of s." in run("--resume", "--suite", "moved.yaml").err


def test_refusing_a_changed_suite_is_no_lesson_in_usage(folder: Path) -> None:
    write(answer="last_line")
    run("s.yaml")
    write(answer="last_line", prompt="'{{ input }}!'")
    said = refused("run", "--resume")
    assert "was not resumed, because its suite or tasks changed." in " ".join(said.split())
    assert "add --yes" in " ".join(said.split())
    assert "Usage:" not in said


def test_runs_as_csv_are_plain_numbers(folder: Path) -> None:
    write()
    run("s.yaml")
    rows = list(csv.DictReader(io.StringIO(pennyweight("runs", "--format", "csv").out)))
    assert [(r["made"], r["attempts"], r["errors"], r["cost_usd"]) for r in rows] == [
        ("2", "2", "0", "")
    ]


def test_runs_break_no_word_in_a_narrow_terminal(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(answer="last_line")
    path = Path("s.yaml")
    path.write_text(path.read_text().replace("suite: s\n", "suite: questions-of-customers\n"))
    run("s.yaml")
    monkeypatch.setenv("COLUMNS", "80")
    lines = pennyweight("runs").out.splitlines()
    assert lines[0].split() == ["run", "suite", "status", "made", "headline", "cost"]
    monkeypatch.setenv("COLUMNS", "70")
    lines = pennyweight("runs").out.splitlines()
    assert lines[0].split() == ["run", "suite", "made", "headline", "cost"]
    assert max(map(len, lines)) <= 70
    words = " ".join(lines).split()
    assert {"done", "questions-of-cu…", "2/2", "accuracy"} <= {*words}


def test_a_plan_needs_no_keys_and_says_which_a_run_needs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    write(subjects="[openai/gpt-5-mini]", judge="{models: [anthropic/claude-haiku-4-5]}")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    planned = run("s.yaml", "--dry-run")
    assert planned.out.startswith("s: 2 attempts\n")
    assert (
        "openai/gpt-5-mini needs a key: set the environment variable OPENAI_API_KEY." in planned.err
    )
    assert "set the environment variable ANTHROPIC_API_KEY." in planned.err
    said = refused("run", "s.yaml")
    assert "OPENAI_API_KEY" in said
    monkeypatch.setenv("OPENAI_API_KEY", "x" * 20)
    assert "OPENAI_API_KEY" not in run("s.yaml", "--dry-run").err


def test_a_local_model_costs_nothing(folder: Path) -> None:
    write(subjects="[local/smollm2-135m]")
    out = run("s.yaml", "--dry-run").out
    assert "no limit on output, free: it runs on this machine" in out
    assert "Estimated cost: nothing. No model was called." in out
    (side,) = json.loads(run("s.yaml", "--dry-run", "--format", "json").out)["plan"]
    assert (side["cost_usd"], side["price_source"]) == (0.0, "local")


def test_the_plan_counts_as_people_do(folder: Path) -> None:
    write(tasks="[{input: a}]")
    out = run("s.yaml", "--dry-run").out
    assert out.startswith("s: 1 attempt\n1 task × 1 subject × 1 tier × 1 run\n")


def test_no_subject_is_told_as_such(folder: Path) -> None:
    write(subjects="[]")
    assert "subjects must be a list of models, not an empty list." in refused("run", "s.yaml")


def test_nobody_is_led_to_delete(folder: Path) -> None:
    assert "Did you mean 'run'?" in refused("rum")


def test_help_has_the_exit_codes(folder: Path) -> None:
    said = run("--help").out
    assert all(f"{code} " in said.partition("Exit codes:")[2] for code in (0, 2, 4, 130))


def test_all_mistakes_are_told_at_once(folder: Path) -> None:
    write(
        prompt="'{{ inptu }}'",
        subjects="['replay:gone.jsonl', 'python:told_model:answer', "
        "{model: openai/m, base_url: 'http://127.0.0.1:9/v1', settings: {thinking: 5}}]",
        limits="{usd: 1}",
    )
    said = refused("run", "s.yaml", "--by", "nosuch")
    assert "s.yaml, line 3: gone.jsonl cannot be read as a recording" in said
    assert "s.yaml, line 3: openai/m cannot be called in T0: thinking: 5" in said
    assert "s.yaml, line 4: prompt: Variable 'inptu' is not known." in said
    assert "s.yaml, line 5: limits.usd cannot be enforced: the price of " in said
    assert "--by column 'nosuch' is not known." in said


def test_a_suite_elsewhere_finds_its_recording(folder: Path) -> None:
    write(answer="last_line")
    run("s.yaml", "--record", "below/tape.jsonl")
    write(answer="last_line", subjects="['replay:tape.jsonl']")
    Path("s.yaml").rename("below/s.yaml")
    assert run("below/s.yaml", "--format", "json").json["groups"][0]["metrics"]["accuracy"] == 0.5


def test_the_command_that_resumes_names_the_store(folder: Path) -> None:
    write(tasks="[{input: broken}]")
    said = run("s.yaml", "--store", "our store.db", code=4).err
    command = next(x for x in said.splitlines() if "--resume" in x).partition("pennyweight ")[2]
    again = pennyweight(*shlex.split(command))
    assert again.code == 4, again.err
    assert "0 attempts reused, 1 to retry, 0 still to make" in again.err


def test_no_record_is_json_too(folder: Path) -> None:
    write(limits="{tokens: 10}")
    assert run("s.yaml", "--format", "json", code=4).json == {"groups": []}


def test_negative_numbers_score_the_same_from_csv(folder: Path) -> None:
    code = "def answer(text):\n    return '-5'\n"
    Path("told_model.py").write_text(code)
    write(tasks="[{input: a, target: '-5.0'}]", answer="last_line")
    run("s.yaml")
    assert pennyweight("export", "latest", "-o", "n.csv").code == 0
    (group,) = scores("n.csv")
    assert group["metrics"]["accuracy"] == 1.0


def test_a_stated_confidence_is_no_answer(folder: Path) -> None:
    Path("told_model.py").write_text("def answer(text):\n    return '4\\nCONFIDENCE: 80%'\n")
    write(tasks="[{input: a, target: '4'}]", answer="last_number", confidence="stated")
    assert run("s.yaml", "--format", "json").json["groups"][0]["metrics"]["accuracy"] == 1.0
    assert scores("latest")[0]["metrics"]["accuracy"] == 1.0
    assert scores("latest", "--answer", "last_line")[0]["metrics"]["accuracy"] == 1.0
    assert "answer: 4" in pennyweight("show", "latest", "1").out.lower()


def test_a_run_that_nobody_makes_is_no_longer_running(folder: Path) -> None:
    write()
    run("s.yaml")
    with closing(Store()) as store:
        one = store.find("latest")
        store.set_run(one.id, status="running")
        store.write([], [call("fr", one.id, cost_usd=45.0), call("de", one.id)])
        shown = pennyweight("runs").out
        assert "interrupted" in shown
        assert "at least $45" in shown
        assert pennyweight("show", one.id, "--format", "json").json["status"] == "interrupted"
        assert take_run(store, one.id, Owner.here().text)
        assert " running " in pennyweight("runs").out


def test_a_closed_standard_error_is_no_failure(folder: Path) -> None:
    write()
    command = f"exec {sys.executable} -m pennyweight run s.yaml --format json 2>&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
    assert (done.returncode, done.stdout[:1]) == (0, b"{")


@pytest.mark.parametrize(
    "name", ["notes.txt", "s.yaml", "told_model.py", ".pennyweight/pennyweight.db"]
)
def test_no_file_is_recorded_into_but_a_recording(folder: Path, name: str) -> None:
    write()
    Path("notes.txt").write_text("line one\nprecious last line without newline")
    before = Path(name).read_bytes() if Path(name).exists() else None
    said = refused("run", "s.yaml", "--record", name)
    what = (
        "this is the store." if name.startswith(".") else "the file exists and is not a recording;"
    )
    assert f"--record {name}: {what} " in said
    assert before is None or Path(name).read_bytes() == before
    assert "inside a call" not in said
    with closing(Store()) as store:
        assert store.runs() == []


def test_a_server_that_is_not_there_is_told_when_time_is_up(folder: Path) -> None:
    write(
        subjects="[{model: openai/x, base_url: 'http://127.0.0.1:9/v1'}]",
        limits="{seconds: 2}",
    )
    said = run("s.yaml", code=4).err
    assert "retried. The last error: Cannot connect to 127.0.0.1:9" in said
    assert "Time limit reached (2 s). No call was answered. When that is fixed, continue" in said
    assert "Raise the limits" not in said


def test_a_server_that_never_answered_is_told_at_once_and_given_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pennyweight.engine.limiter.UNREACHED", 0.1)
    write(subjects="[{model: openai/x, base_url: 'http://127.0.0.1:9/v1'}]")
    said = run("s.yaml", code=4).err
    first = "First failure: openai/x: Cannot connect to 127.0.0.1:9:"
    hint = "Is http://127.0.0.1:9 right, and is the server running?"
    assert said.index(first) < said.index(hint) < said.index("0 of 2 attempts made")
    assert "\n127.0.0.1:9 (no key) has not answered a single call." in said
    assert "Continue later with: pennyweight run --resume" in said


def test_the_command_that_resumes_records_and_groups_as_before(folder: Path) -> None:
    Path("told_model.py").write_text(
        "from pathlib import Path\n\ndef answer(text):\n"
        "    if 'Germany' in text and not Path('mended').exists():\n"
        "        raise ValueError('not yet')\n"
        "    return 'Paris'\n"
    )
    write(answer="last_line")
    said = run("s.yaml", "--record", "our tape.jsonl", "--by", "hard", code=4).err
    command = next(x for x in said.splitlines() if "--resume" in x).partition("pennyweight ")[2]
    Path("mended").touch()
    again = pennyweight(*shlex.split(command), "--format", "json")
    assert again.code == 0, again.err
    assert [g["group"]["hard"] for g in again.json["groups"]] == ["no", "yes"]
    write(answer="last_line", subjects="['replay:our tape.jsonl']")
    assert "2 of 2 attempts made." in run("s.yaml").err


@pytest.mark.parametrize("address", ["told_model.py", ".", "s.yaml/x.db"])
def test_a_store_that_cannot_be_opened_announces_no_run(folder: Path, address: str) -> None:
    write()
    said = run("s.yaml", "--store", address, code=4).err
    assert f"Error: The store {address} cannot be " in said
    assert said.endswith("Nothing was called; --store names another.\n")
    assert "attempts of s" not in said
    assert "--resume" not in said
    assert Path("told_model.py").read_text() == CODE


def test_a_folder_that_cannot_be_written_is_named(folder: Path) -> None:
    Path("taken").write_text("")
    said = refused("init", "taken/suite")
    assert "Error: taken/suite cannot be written: Not a directory. Name another folder" in said


def test_what_could_not_be_made_does_not_count_as_made(folder: Path) -> None:
    write(tasks="[{input: broken, target: a}, {input: France, target: Paris}]")
    assert "1 of 2 attempts made, 1 failed." in run("s.yaml", code=4).err
    (row,) = csv.DictReader(io.StringIO(pennyweight("runs", "--format", "csv").out))
    assert (row["made"], row["attempts"], row["errors"]) == ("1", "2", "1")
    listed = pennyweight("runs").out
    assert re.search(r"done +1/2 +accuracy 0.0 % ", listed)
    assert " 1 error" in listed
    headline = json.loads(pennyweight("runs", "--format", "json").out)["runs"][0]["headline"]
    assert (headline["metric"], headline["value"], headline["side"]) == ("accuracy", 0.0, None)
    assert headline["low"] is headline["high"] is None  # one record
    assert "| done | 1/2, 1 error |" in pennyweight("runs", "--format", "markdown").out


def test_a_run_with_attempts_missing_is_told_where_it_is_scored(folder: Path) -> None:
    write(tasks="[{input: broken, target: a}, {input: France, target: Paris}]", runs=2)
    run("s.yaml", code=4)
    with closing(Store()) as store:
        id_ = store.find("latest").id
        note = f"Note: run {id_} is incomplete: 2 of 4 attempts made (failed).\n"
    assert note in pennyweight("score", "latest").err
    assert pennyweight("export", "latest", "-o", "r.jsonl").code == 0
    compared = pennyweight("compare", "latest", "r.jsonl")
    assert (compared.code, compared.err.count(note)) == (0, 1)
    write(runs=2)
    run("s.yaml")
    assert "attempts of run" not in pennyweight("score", "latest").err


def test_a_complete_run_has_nothing_left_to_make(folder: Path) -> None:
    write()
    run("s.yaml")
    said = run("--resume").err
    assert "Nothing was left to do. Run " in said
    assert "of 0 attempts" not in said


def test_force_without_resume_is_refused(tmp_path):
    said = refused("run", tmp_path / "suite.yaml", "--force")
    assert "--force requires --resume" in said
    assert not list(tmp_path.iterdir())


def test_numbers_are_there_when_a_run_ends_that_took_long(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(answer="last_line")
    monkeypatch.setattr(ended_run, "MAX_SHARE", 1e9)  # as if it had taken that long
    assert run("s.yaml", "--format", "json").json["groups"]
    with closing(Store()) as store:
        found = cache.state(store, store.find("latest").id)
    assert found is not None
    assert found.digest_stamp == found.stamp
