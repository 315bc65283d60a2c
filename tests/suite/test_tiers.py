"""Tiers, what they extend, and their prompts."""

import json

import pytest

from pennyweight.schema.problems import DocumentError
from pennyweight.suite.loader import load_suite
from pennyweight.suite.plan import conversation
from suite.problems import MINIMAL, mistakes


def test_tiers_take_over_and_take_away(write):
    text = MINIMAL.format(tasks="[q]") + (
        "system: S\nprompt: 'P {{ input }}'\n"
        "tiers:\n  T0:\n  T1: {system: null}\n  T2: {extends: T1, prompt: Q}\n"
        "  T3: {messages: [{role: user, content: M}]}\n  T4: {extends: T3, prompt: R}\n"
    )
    tiers = load_suite(write(text)).tiers
    assert [(t.system, t.prompt if not t.messages else "") for t in tiers] == [
        ("S", "P {{ input }}"), (None, "P {{ input }}"), (None, "Q"), ("S", ""), ("S", "R"),
    ]  # fmt: skip


def test_a_prompt_that_fails_for_some_tasks_names_them(write):
    text = (
        "suite: s\ntasks:\n  - {id: a, input: x, hint: h}\n  - {id: b, input: y}\nsubjects: [m]\n"
    )
    found = mistakes(write(text + "prompt: |\n  {{ input }} {{ hint }}\n"))
    assert found == [
        "suite.yaml, line 6: the prompt of task 'b' cannot be rendered: 'hint' is undefined. "
        "If only some tasks have it, write '{% if hint is defined %}…{% endif %}'."
    ]
    assert (
        "'{% if hint is defined %}" in mistakes(write(text + "prompt: \"{{ hint or '' }}\"\n"))[0]
    )
    load_suite(write(text + "prompt: '{{ input }}{% if hint is defined %}{{ hint }}{% endif %}'\n"))


@pytest.mark.parametrize(
    "prompt",
    [
        "{{ input.__class__.__mro__ }}",
        "{{ ''.__class__.__subclasses__() }}",
        "{{ cycler.__init__.__globals__ }}",
        "{% include 'x' %}",
        "{{ range(10**9) | list }}",
        "{{ target }}",
    ],
)
def test_prompts_are_sandboxed(write, prompt):
    assert mistakes(write(MINIMAL.format(tasks="[q]") + f'prompt: "{prompt}"\n'))


def test_a_column_that_became_the_input_stays_usable_under_its_name(write):
    suite = load_suite(
        write(
            "suite: s\ntasks: t.csv\nsubjects: [local/m]\n"
            "prompt: 'Q: {{ question }} ({{ title }})'\nexamples: e.jsonl\n",
            t_csv="question,title,answer\nWhat?,Easy,4\n",
            e_jsonl='{"question": "1+1?", "title": "x", "output": "2"}\n',
        )
    )
    turns = [turn["content"] for turn in conversation(suite.tiers[0], suite.tasks[0])]
    assert turns[-1] == "Q: What? (Easy)"
    assert suite.tasks[0].extra == {}, "the text is held once"


def test_the_column_of_the_target_stays_hidden_under_its_name(write):
    path = write(
        "suite: s\ntasks: t.csv\nsubjects: [local/m]\nprompt: '{{ question }} {{ answer }}'\n",
        t_csv="question,answer\nWhat?,4\n",
    )
    assert mistakes(path) == [
        "suite.yaml, line 4: prompt: prompts cannot use 'answer', which would give the answer away."
    ]


def test_tasks_that_cannot_be_read_leave_no_variable_unknown(tmp_path):
    tmp_path.joinpath("tasks.yaml").write_text("- {id: a, question: x}\n- {id: b\n")
    suite = {"suite": "s", "tasks": "tasks.yaml", "prompt": "{{ question }}", "subjects": ["a/b"]}
    tmp_path.joinpath("suite.json").write_text(json.dumps(suite))
    with pytest.raises(DocumentError) as told:
        load_suite(tmp_path / "suite.json")
    assert "not YAML" in str(told.value)
    assert "Variable" not in str(told.value)
