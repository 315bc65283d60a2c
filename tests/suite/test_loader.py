"""Loading suites: what may be written, and every mistake with its line."""

import json
import pickle

import pytest

from pennyweight.engine.execution import open_suite
from pennyweight.engine.limiter import MAX_CALLS
from pennyweight.errors import InputError
from pennyweight.schema.problems import DocumentError
from pennyweight.suite.loader import load_suite
from pennyweight.suite.values import Limits, Price, Subject
from suite.problems import MINIMAL, mistakes

GOOD = """\
suite: word-problems
tasks: tasks.jsonl
prompt: |
  {{ input }}
  End with "FINAL_ANSWER: <answer>".
answer: {marker: "FINAL_ANSWER:"}
match: numeric
subjects:
  - local/smollm2-135m
  - {name: ours, model: openai/our-model, base_url: "http://127.0.0.1:8000/v1",
     key_env: OUR_KEY, temperature: 0, settings: {logit_bias: {}}}
tiers:
  T0: {}
  T1: {system: "You are careful. Number your steps.", temperature: 1}
  T2: {extends: T1, examples: worked.jsonl, top_p: 0.5}
runs: 10
seed: 3
limits: {concurrency: auto, usd: 2.00}
prices:
  ours: {input: 1.5, output: 2}
"""


def good(write, text=GOOD):
    return write(
        text,
        tasks_jsonl='{"id": "a", "input": "2+2?", "target": 4}\n{"id": "b", "question": "x"}\n',
        worked_jsonl='{"input": "1+1?", "output": "FINAL_ANSWER: 2"}\n',
    )


def test_a_suite_as_the_design_writes_it(write):
    suite = load_suite(good(write))
    assert suite.name == "word-problems"
    assert [t.id for t in suite.tasks] == ["a", "b"]
    assert suite.tasks[0].target == "4"
    assert suite.subjects[0] == Subject("local/smollm2-135m", "local/smollm2-135m")
    assert suite.subjects[1].settings == {"temperature": 0.0, "logit_bias": {}}
    assert suite.limits == Limits("auto", usd=2.0)
    assert suite.prices == {"ours": Price(1.5, 2.0)}
    assert [t.name for t in suite.tiers] == ["T0", "T1", "T2"]
    assert suite.tiers[2].system == suite.tiers[1].system
    assert suite.tiers[2].settings == {"temperature": 1.0, "top_p": 0.5}
    assert suite.text == GOOD
    assert pickle.loads(pickle.dumps(suite)) == suite


def test_json_is_a_suite_too(write):
    table = {
        "suite": "s",
        "tasks": [
            {
                "input": "\U0001f600 \t",
                "target": "😀",
            }
        ],
        "subjects": ["local/m"],
    }
    suite = load_suite(write(json.dumps(table, indent="\t"), "suite.json"))
    assert suite.tasks[0].target == "😀"
    assert [t.name for t in suite.tiers] == ["T0"]
    path = write('{\n "suite": "s",\n "taks": [],\n "subjects": ["m",]\n}', "bad.json")
    assert mistakes(path) == ["bad.json, line 4: not JSON: expecting value."]


BAD = """\
suite: x
task: foo.jsonl
tasks:
  - {id: a, input: hi, target: yes}
  - {id: a, input: 2}
  - {id: b}
prompt: |
  {{ input }}
  {{ inptu }} {{ answer }}
system: "{% if %}"
answer: {regex: "(a"}
match: numrice
subjects:
  - {modle: x}
  - {model: openai/x, key_env: sk-secret-1, temperature: hot}
  - openai/y
  - openai/y
tiers:
  T1: {extends: T9}
  T2: {extends: T3}
  T3: {extends: T2, temprature: 1}
limits: {usd: -1, concurrency: many}
prices: {openai/z: {input: 1, output: -2}}
runs: 0
runs: 3
"""


def test_all_mistakes_are_told_at_once_with_their_lines(write):
    found = mistakes(write(BAD))
    expected = [
        (2, "Key 'task' is not known. Did you mean 'tasks'?"),
        (5, "the task id 'a' is already used on line 4."),
        (6, "task 'b' has no input"),
        (9, "Variable 'inptu' is not known. Did you mean 'input'?"),
        (9, "prompts cannot use 'answer'"),
        (10, "system: not a valid template"),
        (11, "answer: '(a' is not a usable regular expression: unclosed group."),
        (12, "Did you mean 'numeric'?"),
        (14, "Did you mean 'model'?"),
        (14, "subjects[1] needs 'model'"),
        (15, "key_env names an environment variable"),
        (15, "subjects[2].temperature must be a number of at least 0, not 'hot'."),
        (17, "the subject 'openai/y' appears twice"),
        (19, "Tier 'T9' is not known."),
        (20, "tiers.T2 extends itself: T2 → T3 → T2."),
        (21, "Did you mean 'temperature'?"),
        (21, "tiers.T3 extends itself"),
        (22, "limits.concurrency must be 'auto' or a whole number from 1 to 1000, not 'many'."),
        (22, "limits.usd must be a number above 0, not -1."),
        (23, "prices.openai/z.output must be a number from 0 to 1e+12, not -2."),
        (23, "'openai/z' is not known. Did you mean 'openai/y'?"),
        (24, "runs must be a whole number of at least 1, not 0."),
        (25, "the key 'runs' is already on line 24."),
    ]
    assert len(found) == len(expected)
    for text, (line, part) in zip(found, expected, strict=True):
        assert text.startswith(f"suite.yaml, line {line}: ")
        assert part in text
    assert "sk-secret-1" not in "\n".join(found)
    with pytest.raises(InputError):
        load_suite(write(BAD))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: a suite is a mapping"),
        ("- a\n", "line 1: a suite is a mapping"),
        ("a: [\n", "not YAML"),
        ("a: *b\n", "*b has no anchor"),
        ("a: &a [*a]\n", "*a has no anchor"),
        ("a: 1\n---\nb: 2\n", "line 2: a second document"),
        ("a: " + "[" * 100_000, "nested more than"),
        ("a: !!python/object:os.system x\n", "is not supported"),
        (
            "suite: s\ntasks: [{id: a, input: x}, {id: a, input: y}]\nsubjects: [local/m]\n",
            "the task id 'a' is already used on line 2",
        ),
        ("suite: s\ntasks: [q]\nsubjects: []\n", "a list of models, not an empty list"),
        ("suite: s\ntasks: []\nsubjects: [m]\n", "there are no tasks"),
        ("suite: s\ntasks: gone.jsonl\nsubjects: [m]\n", "gone.jsonl: no such file"),
        ("suite: s\ntasks: .\nsubjects: [m]\n", "is a folder"),
        ("suite: s\ntasks: [q]\nsubjects: [m]\nmodels: [x]\n", "Did you mean 'subjects'?"),
        (
            "suite: s\ntasks: [q]\nsubjects: [{model: m, api_key: sk-1}]\n",
            "Did you mean 'key_env'?",
        ),
        ("suite: s\ntasks: [q]\nsubjects: [m]\nseed: 010\n", "seed must be a whole number"),
        (
            "suite: s\ntasks: [q]\nsubjects: [m]\nprompt: a\n"
            "messages: [{role: user, content: b}]\n",
            "either 'prompt' or 'messages'",
        ),
    ],
)
def test_one_mistake(write, text, said):
    assert said in "\n".join(mistakes(write(text)))


def test_aliases_cannot_explode(write):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    assert "after its aliases are expanded" in "\n".join(mistakes(write("\n".join(lines))))


def test_a_missing_or_unreadable_file_is_an_error_of_the_user(tmp_path):
    with pytest.raises(DocumentError, match="pennyweight init"):
        load_suite(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"suite: s\ntasks: \xff\n")
    with pytest.raises(DocumentError, match="line 2: bytes that are not UTF-8"):
        load_suite(tmp_path / "bytes.yaml")


def test_answers_stay_as_they_were_written(write):
    text = """\
suite: s
tasks:
  - {input: a, target: yes}
  - {input: b, target: 010}
  - {input: c, target: 1.50}
  - {input: d, target: 2024-01-02}
  - {input: e, target: [x, 2]}
  - {input: f, target: true}
  - {input: g, target: 1:30}
  - plain text
subjects: [local/m]
"""
    tasks = load_suite(write(text)).tasks
    assert [t.target for t in tasks] == [
        "yes", "010", "1.50", "2024-01-02", '["x", 2]', "true", "1:30", None,
    ]  # fmt: skip
    assert [t.id for t in tasks] == list("12345678")


@pytest.mark.parametrize("name", [r"a\u0000b", r"a\ud83d"])
def test_names_that_no_database_takes_are_told_with_their_lines(write, name):
    rows = f'{{"id": "fine", "input": "q"}}\n{{"id": "{name}", "input": "q"}}\n'
    text = f"""{{"suite": "s", "tasks": "tasks.jsonl",
        "subjects": [{{"name": "{name}", "model": "local/m"}}],
        "tiers": {{"{name}": {{}}}}}}"""
    told = mistakes(write(text, "suite.json", tasks_jsonl=rows))
    starts = (
        "suite.json, line 2: subjects[1].name",
        "suite.json, line 3: the name",
        "tasks.jsonl, line 2: the task id",
    )
    assert len(told) == 3
    for start in starts:
        (found,) = [t for t in told if t.startswith(start)]
        assert "no database accepts" in found
        assert found.isprintable()


def test_a_seed_has_64_bits(write):
    most = 2**63 - 1
    suite = load_suite(
        write(MINIMAL.format(tasks="[q]") + f"seed: {most}\nsettings: {{seed: {most}}}\n")
    )
    assert (suite.seed, suite.settings["seed"]) == (most, most)
    with pytest.raises(DocumentError, match=r"seed must be a whole number.*\n.*seed must be"):
        load_suite(
            write(MINIMAL.format(tasks="[q]") + f"seed: {2**63}\nsettings: {{seed: {2**63}}}\n")
        )


def test_merged_mappings(write):
    text = MINIMAL.format(tasks="[q]") + (
        "tiers:\n  T0: &base {system: S, top_p: 1}\n  T1: {<<: *base, system: X}\n"
    )
    tier = load_suite(write(text)).tiers[1]
    assert (tier.system, tier.settings) == ("X", {"top_p": 1.0})


def test_targets_that_are_patterns_are_checked(write):
    text = "suite: s\ntasks: [{id: a, input: x, target: '(b'}]\nsubjects: [m]\nmatch: regex\n"
    assert "the target of task 'a' is not a regular expression" in "\n".join(mistakes(write(text)))


def test_a_subject_can_be_refused_by_the_caller(write):
    path = good(write)
    with pytest.raises(DocumentError, match="line 10: no such provider"):
        load_suite(path, check_subject=lambda s: "no such provider" if s.name == "ours" else None)


def test_the_text_of_an_earlier_run_can_be_loaded(write):
    path = good(write)
    earlier = load_suite(path, text=GOOD.replace("runs: 10", "runs: 2"))
    assert earlier.runs == 2


SETTINGS = """\
suite: s
tasks: [one]
subjects:
  - model: local/m
    settings: {stop: 5, thinking: [low]}
settings:
  max_tokens: lots
  temperature: hot
  extra: {a: 1}
  top_kk: 7
tiers:
  T0:
    settings:
      max_tokens: '10'
      tools: 5
  T1:
    settings: {tools: [5], seed: 1.5, logprobs: maybe, schema: x, extra: 5, stop: [a, 5]}
"""


def test_settings_that_are_known_are_checked_wherever_they_stand(write):
    told = mistakes(write(SETTINGS))
    for line, what in [
        (5, "subjects[1].settings.stop must be text or a list of texts, not 5."),
        (5, "thinking must be a whole number of at least 0 or a level such as low, not a list."),
        (7, "settings.max_tokens must be a whole number of at least 1, not 'lots'."),
        (8, "settings.temperature must be a number of at least 0, not 'hot'."),
        (14, "tiers.T0.settings.max_tokens must be a whole number of at least 1, not '10'."),
        (15, "tiers.T0.settings.tools must be a list of tools, not 5."),
        (17, "tiers.T1.settings.tools[1] must be a mapping (name, description, parameters), not"),
        (17, "tiers.T1.settings.seed must be a whole number from -9.2"),
        (17, "tiers.T1.settings.logprobs must be true or false, not 'maybe'."),
        (17, "tiers.T1.settings.schema must be a mapping, not 'x'."),
        (17, "tiers.T1.settings.extra must be a mapping, not 5."),
        (17, "tiers.T1.settings.stop[2] must be text, not 5."),
    ]:
        found = [t for t in told if t.startswith(f"suite.yaml, line {line}: ") and what in t]
        assert len(found) == 1, (what, told)
    (misspelled,) = (t for t in told if "under 'extra'" in t)
    assert misspelled.startswith("suite.yaml, line 10: Key 'top_kk' is not known in settings.")
    assert len(told) == 13


def test_settings_keep_what_was_written(write):
    text = "suite: s\ntasks: [one]\nsubjects: [local/m]\nsettings: {settings}\n"
    written = {
        "temperature": 0, "stop": "END", "thinking": "low", "max_tokens": None, "top_nn": "7",
        "logit_bias": {"5": -100}, "tools": [{"name": "f"}],
    }  # fmt: skip
    suite = load_suite(write(text.replace("{settings}", json.dumps(written))))
    assert json.dumps(suite.settings) == json.dumps(written)


def test_more_calls_at_once_than_are_made_are_refused(write):
    text = "suite: s\ntasks: [one]\nsubjects: [local/m]\nlimits:\n  concurrency: {most}\n"
    assert load_suite(write(text.replace("{most}", str(MAX_CALLS)))).limits.concurrency == MAX_CALLS
    assert mistakes(write(text.replace("{most}", str(MAX_CALLS + 1)))) == [
        "suite.yaml, line 5: limits.concurrency must be a whole number from 1 to 1000, not 1001."
    ]


def test_a_mistake_of_one_of_two_subjects_has_its_own_line(write):
    text = "suite: s\ntasks: [q]\nsubjects:\n- openai/m\n- {model: openai/m, base_url: nowhere}\n"
    path = write(text)
    with pytest.raises(DocumentError) as caught:
        load_suite(path, check_subject=lambda s: f"at {s.base_url}")
    told = [line.partition("line ")[2] for line in caught.value.problems]
    assert [line.split(":")[0] for line in told] == ["4", "5", "5"]
    assert told[0] == "4: at None"
    assert sum("nowhere" in line for line in told) == 1


def test_a_caller_can_check_all_of_a_suite(write):
    path = good(write)
    places = [(("runs",), "too many"), ((), "no")]
    with pytest.raises(DocumentError) as caught:
        load_suite(path, check=lambda suite: [*places, (suite.subjects[1], "odd")])
    text = "\n".join(caught.value.problems)
    assert f"{path}: no" in text
    assert "line 10: odd" in text
    assert "too many" in text


def test_settings_at_the_top_are_told_where_they_belong(write):
    text = "tmeperature: 0\nmax_tokens: 5\nbase_url: http://x\nsuite: s\ntasks: [a]\n"
    said = mistakes(write(text + "subjects: [local/m]\n"))
    assert said == [
        "suite.yaml, line 1: Key 'tmeperature' is not known in a suite. Did you mean "
        "'temperature'? 'temperature' belongs under 'settings', for all subjects.",
        "suite.yaml, line 2: Key 'max_tokens' is not known in a suite. 'max_tokens' belongs under "
        "'settings', for all subjects.",
        "suite.yaml, line 3: Key 'base_url' is not known in a suite. 'base_url' belongs to a "
        "subject.",
    ]


def test_a_missing_key_hides_no_other_mistake(write, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    path = write("suite: s\nlimits: {usd: 1}\nsubjects: [openai/no-such-model]\n")
    with pytest.raises(DocumentError) as caught:
        open_suite(path)
    said = [problem.split(": ", 1)[1] for problem in caught.value.problems]
    assert said[0].startswith("a suite needs 'tasks'")
    assert said[1].startswith("limits.usd cannot be enforced")
    assert said[2].startswith("openai/no-such-model needs a key")
