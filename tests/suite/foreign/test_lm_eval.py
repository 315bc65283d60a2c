"""Tasks of lm-evaluation-harness: the suites that are made from them decide as it does."""

from __future__ import annotations

import json
import re
import string
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

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
    assert created.left_out == created.missing == ()
    assert "The filter strict decides; flexible is the score flexible." in created.notes


def test_a_recorded_log_is_decided_as_it_was(tmp_path: Path) -> None:
    folder = fixture("lm_eval")
    task = folder / "tasks" / "gen.yaml"
    with pytest.raises(InputError, match="filter maj: the step majority_vote"):
        init_from(task, tmp_path, model=MODEL)
    created = init_from(task, tmp_path, model=MODEL, partial=True)
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
    task = folder / "tasks" / "mc.yaml"
    with pytest.raises(InputError, match="how likely a model finds each choice"):
        init_from(task, tmp_path, model="local/smollm2-135m")
    created = init_from(task, tmp_path, model="local/smollm2-135m", partial=True)
    suite = load_suite(created.suite)
    asked = conversation(suite.tiers[0], suite.tasks[0])[-1]["content"]
    assert asked.startswith("The capital of France is\nA. Atlantis\nB. Rome\nC. Paris\n")
    assert suite.tasks[0].target == "C. Paris"
    assert "a different measurement" in created.missing[0]


def test_a_data_set_of_the_hub_is_named_and_its_target_made(tmp_path: Path) -> None:
    (tmp_path / "gsm.yaml").write_text(
        "task: g\ndataset_path: openai/gsm8k\ndataset_name: main\ntest_split: test\n"
        "num_fewshot: 5\nprocess_docs: !function utils.f\ndoc_to_text: 'Q: {{question}}'\n"
        "doc_to_target: '{{answer.split(\"####\")[-1].strip()}}'\n"
        "metric_list: [{metric: exact_match, regexes_to_ignore: [',']}]\n"
    )
    with pytest.raises(InputError, match="num_fewshot 5"):
        init_from(tmp_path / "gsm.yaml", tmp_path / "new", model=MODEL)
    created = init_from(tmp_path / "gsm.yaml", tmp_path / "new", model=MODEL, partial=True)
    text = created.suite.read_text()
    assert 'from: "hf:openai/gsm8k"' in text
    rule = yaml.safe_load(text)["match"]
    assert rule == {"any_of": {"match": {"verbatim": {"ignore": [","]}}}}
    assert [one.split(":")[1] for one in created.missing] == ["6", "5"]


class Harness:
    """The scoring of lm-evaluation-harness 0.4.13 in plain Python, apart from ours."""

    def __init__(self, task: str) -> None:
        self.task: dict[str, Any] = yaml.load(task, yaml.BaseLoader)

    def scores(self, gold: Any, reply: str) -> list[bool]:
        """Return the score of a reply by each filter."""
        filters = self.task.get("filter_list") or [{"filter": []}]
        return [self._same(gold, self._filtered(reply, one["filter"])) for one in filters]

    @staticmethod
    def _filtered(reply: str, steps: list[dict[str, Any]]) -> str:
        for step in steps:
            if step["function"] == "remove_whitespace":
                reply = reply.lstrip()
            if step["function"] == "regex":
                found = re.findall(step["regex_pattern"], reply)
                one = found[int(step.get("group_select", 0))] if found else "[invalid]"
                if isinstance(one, tuple):
                    one = next((part for part in one if part), "[invalid]")
                reply = one.strip()
        return reply

    def _same(self, gold: Any, reply: str) -> bool:
        (metric,) = self.task.get("metric_list") or [{"metric": "exact_match"}]

        def plain(text: str) -> str:
            for pattern in metric.get("regexes_to_ignore", []):
                text = re.sub(pattern, "", text)
            if metric.get("ignore_case") == "true":
                text = text.lower()
            if metric.get("ignore_punctuation") == "true":
                text = text.translate(str.maketrans("", "", string.punctuation))
            if metric.get("ignore_numbers") == "true":
                text = text.translate(str.maketrans("", "", string.digits))
            return text

        golds = gold if isinstance(gold, list) else [gold]
        return any(plain(str(one)) == plain(reply) for one in golds)


MODEL = "local/smollm2-135m"
SUMS = r"""
doc_to_text: "Question: {{question}}\nAnswer:"
doc_to_target: "{{answer}}"
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
    ignore_case: true
    ignore_punctuation: false
    regexes_to_ignore: [",", "\\$", "(?s).*#### ", "\\.$"]
generation_kwargs: {until: ["Question:", "</s>", "<|im_end|>"], do_sample: false, temperature: 0.0}
filter_list:
  - name: strict-match
    filter:
      - {function: regex, regex_pattern: "#### (\\-?[0-9\\.\\,]+)"}
      - {function: take_first}
  - name: flexible-extract
    filter:
      - {function: regex, group_select: -1, regex_pattern: "(-?[$0-9.,]{2,})|(-?[0-9]+)"}
      - {function: take_first}
"""
OPEN = r"""
doc_to_text: "Q: {{question}}?\nA:"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["\n", ".", ","]}
filter_list:
  - {name: remove_whitespace, filter: [{function: remove_whitespace}, {function: take_first}]}
metric_list:
  - metric: exact_match
    aggregation: mean
    ignore_case: true
    ignore_punctuation: true
    regexes_to_ignore: ["\\b(?:The |the |An |A |The |a |an )"]
"""
ALIASES = OPEN.replace("{{answer}}", "{{answer.aliases}}")
PLAIN = """
doc_to_text: question
doc_to_target: answer
"""
TASKS: dict[str, tuple[str, list[tuple[Any, list[str]]]]] = {
    "gsm8k": (
        SUMS,
        [
            (
                "3 bags of 400.\n#### 1,200",
                ["#### 1200", "x\n#### 1,200.", "It is $1,200.", "#### 12"],
            ),
            ("2 + 3\n#### 5", ["So 5", "#### 5\n#### 6", "####5", "", "#### $5", "[5]"]),
            ("owes\n#### -7", ["#### -7", "#### 7", "minus 7: -7.", "7-7"]),
        ],
    ),
    "nq_open": (
        OPEN,
        [
            (["Mary Ann", "Ann"], ["The Mary-Ann", " ann", "Ann ", "Anna", "MARY ANN!", "a Ann"]),
            (["the 5 wells"], ["5 Wells", "five wells", "\n5 wells"]),
            ("[Oslo", ["oslo", "Bergen"]),
        ],
    ),
    "triviaqa": (
        ALIASES,
        [
            ({"aliases": ["Ulm", "City of Ulm"]}, ["ulm", "The City of Ulm", "Ulm (Germany)"]),
            ({"aliases": ["O'Neil", 'The "X"']}, ["oneil", "X", "x y"]),
        ],
    ),
    "plain": (
        PLAIN,
        [("[1, 2]", ["[1, 2]", "1", "[1,2]"]), ("Yes", ["Yes", "yes", "Yes.", " Yes"])],
    ),
    "integer": (PLAIN, [(12, ["12", "12.0", "twelve"])]),
    "digits": (
        PLAIN + "metric_list: [{metric: exact_match, ignore_numbers: true}]\n",
        [("a1", ["a2", "a", "b1"])],
    ),
}
"""Tasks of the shapes of the public ones: each target with replies."""


def _converted(
    task: str, cases: list[tuple[Any, list[str]]], folder: Path, **options: Any
) -> tuple[list[dict[str, Any]], Any]:
    """Convert a task, run the suite with its replies, and return the records and its scores."""
    replies = {f"{n}-{k}": r for n, (_, several) in enumerate(cases) for k, r in enumerate(several)}
    rows = [
        {"question": f"{n}-{k}", "answer": gold}
        for n, (gold, several) in enumerate(cases)
        for k, _ in enumerate(several)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    head = "task: t\ndataset_path: json\ndataset_kwargs: {data_files: {test: rows.jsonl}}\n"
    (folder / "t.yaml").write_text(f"{head}test_split: test\n{task}")
    created = init_from(folder / "t.yaml", folder / "new", model=MODEL, **options)

    def said(prompt: str) -> str:
        found = re.search(r"\d+-\d+", prompt)
        assert found
        return replies[found[0]]

    done = run(created.suite, models=[said], store=str(folder / "store.db"))
    records = {row["task_id"]: row for row in done.records().to_dicts()}
    return [records[str(n)] for n in range(1, len(rows) + 1)], done


@pytest.mark.parametrize("name", TASKS)
def test_converted_tasks_score_as_the_harness_does(name: str, tmp_path: Path) -> None:
    task, cases = TASKS[name]
    harness = Harness(task)
    golds = [(gold["aliases"] if isinstance(gold, dict) else gold, r) for gold, r in cases]
    wanted = [harness.scores(gold, reply) for gold, replies in golds for reply in replies]
    records, done = _converted(task, cases, tmp_path)
    assert [row["passed"] for row in records] == [first for first, *_ in wanted]
    assert {True, False} == {first for first, *_ in wanted}
    if len(wanted[0]) > 1:
        rate = sum(second for _, second in wanted) / len(wanted)
        assert done.scores()["flexible_extract"].value == pytest.approx(rate)


CODE = """
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
"""
UNSCORED = {
    "humaneval": "metric_list: [{metric: !function utils.pass_at_k, k: [1]}]\nunsafe_code: true\n"
    "filter_list: [{name: create_test, filter: [{function: custom, filter_fn: !function u.f}]}]\n",
    "ifeval": "process_results: !function utils.process_results\n"
    "metric_list: [{metric: prompt_level_strict_acc, aggregation: mean}]\n",
    "aime": "process_results: !function utils.process_results\n"
    "metric_list: [{metric: exact_match}]\n",
    "translation": "metric_list: [{metric: bleu}, {metric: ter}, {metric: chrf}]\n",
    "squad": "metric_list: [{metric: f1}]\n",
    "voting": "filter_list: [{name: maj, filter: [{function: majority_vote}]}]\n",
    "lookahead": 'filter_list: [{name: r, filter: [{function: regex, regex_pattern: "a(?=b)"}]}]\n',
    "fallback": "filter_list: [{name: r, filter: [{function: regex, fallback: C}]}]\n",
    "lower": "filter_list: [{name: low, filter: [{function: lowercase}]}]\n",
    "second": "filter_list: [{name: r, filter: [{function: regex, group_select: 1}]}]\n",
    "backreference": 'metric_list: [{metric: exact_match, regexes_to_ignore: ["(a)\\\\1"]}]\n',
    "median": "metric_list: [{metric: exact_match, aggregation: median}]\n",
    "index": 'doc_to_choice: ["a", "b"]\n',
}


@pytest.mark.parametrize("name", UNSCORED)
def test_what_cannot_be_scored_the_same_has_no_verdict(name: str, tmp_path: Path) -> None:
    cases: list[tuple[Any, list[str]]] = [("0", ["0", "1"]), ("a", ["a", "b"])]
    with pytest.raises(InputError) as told:
        _converted(CODE + UNSCORED[name], cases, tmp_path)
    assert "--partial" in str(told.value)
    assert not (tmp_path / "new").exists()
    records, done = _converted(CODE + UNSCORED[name], cases, tmp_path, partial=True)
    assert {row["passed"] for row in records} == {None}
    assert (done.scores()["accuracy"].value, done.scores()["pass_rate"].value) == (None, None)
    said = (tmp_path / "new" / "suite.yaml").read_text()
    assert "match: none" in said
    assert "partial:" in said


def test_a_metric_that_is_lost_leaves_the_verdict_of_the_others(tmp_path: Path) -> None:
    task = CODE + "metric_list: [{metric: exact_match}, {metric: bleu}]\n"
    with pytest.raises(InputError, match="metric bleu"):
        _converted(task, [("a", ["a", "b"])], tmp_path)
    records, _ = _converted(task, [("a", ["a", "b"])], tmp_path, partial=True)
    assert [row["passed"] for row in records] == [True, False]


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
