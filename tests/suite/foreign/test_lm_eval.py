"""Tasks of lm-evaluation-harness: the suites that are made from them decide as it does."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from pennyweight import run
from pennyweight.api.init import init_from
from pennyweight.errors import InputError
from pennyweight.suite.loader import load_suite
from pennyweight.suite.plan import conversation
from pennyweight.text.extraction import answer
from pennyweight.text.matching import matches
from sources.logs.fixtures import fixture
from suite.foreign.rules import serving

CASES = Path(__file__).parent / "lm_eval"
VERDICTS: dict[str, list[bool]] = json.loads((CASES / "verdicts.json").read_text())
"""What lm-eval 0.4.13 itself decided, with --apply_chat_template and --fewshot_as_multiturn."""


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts_are_those_of_the_harness(name: str, tmp_path: Path) -> None:
    created = init_from(CASES / f"{name}.yaml", tmp_path, model="openai/m")
    with serving(CASES) as server:
        subject = f"subjects: [{{model: openai/m, base_url: {server.address}}}]"
        text = created.suite.read_text().replace("subjects: [openai/m]", subject)
        created.suite.write_text(text)
        done = run(created.suite, store=str(tmp_path / "store.db"))
    found = {row["task_id"]: row["passed"] for row in done.records().to_dicts()}
    assert [found[str(n)] for n in range(1, len(found) + 1)] == VERDICTS[name]


def test_prompts_are_what_the_harness_sends(tmp_path: Path) -> None:
    created = init_from(CASES / "strict.yaml", tmp_path, model="local/smollm2-135m")
    suite = load_suite(created.suite)
    assert conversation(suite.tiers[0], suite.tasks[0]) == [
        {"role": "system", "content": "You add numbers."},
        {"role": "user", "content": "Q: What is 1 + 1?\nA:"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "Q: What is 2 + 3?\nA:"},
    ]
    assert suite.settings == {"temperature": 0.0, "max_tokens": 50, "stop": ["\n\n"]}
    assert created.left_out == (
        "strict.yaml:14: filter flexible: a suite has one rule for answers; strict is used",
    )


def test_a_recorded_log_is_decided_as_it_was(tmp_path: Path) -> None:
    folder = fixture("lm_eval")
    created = init_from(folder / "tasks" / "gen.yaml", tmp_path, model="local/smollm2-135m")
    suite = load_suite(created.suite)
    log = next((folder / "fake-1").glob("samples_lab_sums_a*"))
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    rows = [row for row in rows if row["filter"] == "strict-match"]
    frame = pl.DataFrame(
        {"said": [r["resps"][0][0] for r in rows], "target": [r["target"] for r in rows]}
    )
    found = frame.select(
        a=matches(answer(pl.col("said"), suite.answer), pl.col("target"), suite.match)
    )
    assert found["a"].to_list() == [bool(row["exact_match"]) for row in rows]
    assert [task.target for task in suite.tasks] == [row["target"] for row in rows]


def test_multiple_choice_is_asked_with_letters(tmp_path: Path) -> None:
    folder = fixture("lm_eval")
    created = init_from(folder / "tasks" / "mc.yaml", tmp_path, model="local/smollm2-135m")
    suite = load_suite(created.suite)
    asked = conversation(suite.tiers[0], suite.tasks[0])[-1]["content"]
    assert asked.startswith("The capital of France is\nA. Atlantis\nB. Rome\nC. Paris\n")
    assert suite.tasks[0].target == "C. Paris"
    assert "a different measurement" in created.notes[0]


def test_a_data_set_of_the_hub_is_named_and_its_target_made(tmp_path: Path) -> None:
    (tmp_path / "gsm.yaml").write_text(
        "task: g\ndataset_path: openai/gsm8k\ndataset_name: main\ntest_split: test\n"
        "num_fewshot: 5\nprocess_docs: !function utils.f\ndoc_to_text: 'Q: {{question}}'\n"
        "doc_to_target: '{{answer.split(\"####\")[-1].strip()}}'\n"
        "metric_list: [{metric: exact_match, regexes_to_ignore: [',']}]\n"
    )
    created = init_from(tmp_path / "gsm.yaml", tmp_path / "new", model="local/smollm2-135m")
    text = created.suite.read_text()
    assert 'from: "hf:openai/gsm8k"' in text
    assert "match: numeric" in text
    assert [one.split(":")[1] for one in created.left_out] == ["6", "5"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("task: t\ndoc_to_text: !function utils.f\ndoc_to_target: x\n", ":2: doc_to_text: .*code"),
        ("task: t\noutput_type: loglikelihood\ndoc_to_text: a\n", "likelihood"),
        ("task: [a, b]\ninclude: x.yaml\n", "group"),
        ("task: t\ndoc_to_text: '{% include \"/etc/passwd\" %}'\ndoc_to_target: x\n", "include"),
        (
            "task: t\ndataset_path: json\ndataset_kwargs: {data_files: ../x.json}\n"
            "doc_to_text: a\ndoc_to_target: b\n",
            "outside of the folder",
        ),
    ],
)
def test_what_cannot_be_converted_is_refused(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(text)
    with pytest.raises(InputError, match=why):
        init_from(tmp_path / "t.yaml", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_broken_data_is_named(tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text('[{"q": "1+1"')
    task = tmp_path / "sums.yaml"
    task.write_text(
        "task: sums\ndataset_path: json\ndataset_kwargs: {data_files: {test: data.json}}\n"
        "test_split: test\noutput_type: generate_until\ndoc_to_text: '{{q}}'\ndoc_to_target: '2'\n"
    )
    with pytest.raises(InputError, match=r"data\.json.*not valid JSON"):
        init_from(task, tmp_path / "made")
