"""Providers of promptfoo: what is measured is what is written, or the conversion asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.command import pennyweight
from pennyweight.api.init import CreatedSuite, init_from
from pennyweight.errors import InputError
from pennyweight.suite.loader import load_suite

CHECKED = [{"vars": {"q": "tea"}, "assert": [{"type": "contains", "value": "t"}]}]
FILES = {
    "one.yaml": "id: openai:gpt-4.1\nlabel: one\nconfig: {temperature: 0.5}\n",
    "two.json": '[{"id": "openai:gpt-4.1"}, "anthropic:messages:claude-sonnet-4-5"]',
    "tools.json": '[{"type": "function", "function": {"name": "f", "parameters": {}}}]',
    "agent.py": "print(1)",
}


def convert(folder: Path, table: dict[str, Any], **options: Any) -> CreatedSuite:
    for name, text in FILES.items():
        (folder / name).write_text(text)
    path = folder / "promptfooconfig.yaml"
    path.write_text(yaml.safe_dump({"prompts": ["{{q}}"], "tests": CHECKED, **table}))
    return init_from(path, folder / "new", **options)


MEASURED: dict[str, tuple[Any, list[str]]] = {
    "a name": (["openai:gpt-4.1"], ["openai/gpt-4.1"]),
    "a text": ("openai:chat:gpt-4.1", ["openai/gpt-4.1"]),
    "a label": ([{"id": "openai:gpt-4.1", "label": "ours"}], ["openai/gpt-4.1"]),
    "a key": ([{"openai:gpt-4.1": {"config": {"temperature": 1}}}], ["openai/gpt-4.1"]),
    "several": (
        ["openai:gpt-4.1", "anthropic:messages:claude-sonnet-4-5", "ollama:chat:llama3"],
        ["openai/gpt-4.1", "anthropic/claude-sonnet-4-5", "ollama/llama3"],
    ),
    "a file": (["file://one.yaml"], ["openai/gpt-4.1"]),
    "a file of several": (
        "file://two.json",
        ["openai/gpt-4.1", "anthropic/claude-sonnet-4-5"],
    ),
    "echo": (["echo"], ["python:builtins:str"]),
    "tools in a file": (
        [{"id": "openai:gpt-4.1", "config": {"tools": "file://tools.json"}}],
        ["openai/gpt-4.1"],
    ),
    "a key that is a secret": (
        [{"id": "openai:gpt-4.1", "config": {"apiKey": "sk-1"}}],
        ["openai/gpt-4.1"],
    ),
}


@pytest.mark.parametrize("name", MEASURED)
def test_what_is_measured_is_what_is_written(name: str, tmp_path: Path) -> None:
    providers, models = MEASURED[name]
    created = convert(tmp_path, {"providers": providers})
    assert [one.model for one in load_suite(created.suite).subjects] == models


def test_settings_and_labels_come_along(tmp_path: Path) -> None:
    suite = load_suite(convert(tmp_path, {"providers": ["file://one.yaml"]}).suite)
    assert [(one.name, one.settings["temperature"]) for one in suite.subjects] == [("one", 0.5)]
    config = {"omitDefaults": True, "tools": "file://tools.json"}
    table = {"providers": [{"id": "openai:gpt-4.1", "config": config}]}
    (subject,) = load_suite(convert(tmp_path, table, force=True).suite).subjects
    assert "temperature" not in subject.settings
    assert subject.settings["tools"][0]["function"]["name"] == "f"


ASKED: dict[str, Any] = {
    "a command": "exec:./agent.sh",
    "code": "file://agent.py",
    "python": "python:agent.py",
    "a package": "package:ours:agent",
    "an address": "https://127.0.0.1:1/chat",
    "an address with settings": {"id": "https", "config": {"url": "http://127.0.0.1:1"}},
    "a socket": "ws://127.0.0.1:1",
    "another provider": "watsonx:granite",
    "a completion": "openai:completion:davinci-002",
    "an embedding": "openai:embedding:text-embedding-3-small",
    "an assistant": "openai:assistant:asst_1",
    "a text generation": "huggingface:text-generation:gpt2",
    "a simulated user": "promptfoo:simulated-user",
    "a variable": "openai:{{env.MODEL}}",
    "an address in a variable": {
        "id": "openai:gpt-4.1",
        "config": {"apiBaseUrl": "{{env.GATEWAY}}"},
    },
    "no id": {"label": "x", "config": {}},
    "a missing file": "file://none.yaml",
}


@pytest.mark.parametrize("name", ASKED)
def test_a_model_that_cannot_be_called_is_asked_for(name: str, tmp_path: Path) -> None:
    for options in ({}, {"partial": True}):
        with pytest.raises(InputError) as told:
            convert(tmp_path, {"providers": [ASKED[name]]}, **options)
        assert "promptfooconfig.yaml:" in str(told.value)
        assert "--model" in told.value.hint
        assert not (tmp_path / "new").exists()
    created = convert(tmp_path, {"providers": [ASKED[name]]}, model="openai/gpt-4.1")
    assert [one.model for one in load_suite(created.suite).subjects] == ["openai/gpt-4.1"]
    both = {"providers": [ASKED[name], "openai:gpt-4.1-mini"]}
    with pytest.raises(InputError, match="--partial"):
        convert(tmp_path, both, force=True)
    part = convert(tmp_path, both, force=True, partial=True)
    assert [one.model for one in load_suite(part.suite).subjects] == ["openai/gpt-4.1-mini"]
    assert load_suite(part.suite).partial


def test_no_provider_at_all_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError) as told:
        convert(tmp_path, {})
    assert "--model" in told.value.hint


SETTINGS: dict[str, Any] = {
    "headers": {"headers": {"x-route": "b"}},
    "an unknown setting": {"guardrail": "strict"},
    "instructions": {"instructions": "Be brief."},
    "a variable": {"temperature": "{{env.T}}"},
    "a file of code": {"functionToolCallbacks": {"f": "file://f.js"}},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_that_is_lost_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"provider openai:gpt-4.1: {next(iter(SETTINGS[name]))}"):
        convert(tmp_path, {"providers": [{"id": "openai:gpt-4.1", "config": SETTINGS[name]}]})


ONE = ["openai:gpt-4.1"]
TWO = {"prompts": [{"raw": "{{q}}", "label": "a"}, {"raw": "Say {{q}}", "label": "b"}]}
OTHERWISE: dict[str, tuple[dict[str, Any], str]] = {
    "prompts of a test": (
        {**TWO, "providers": ONE, "tests": [{**CHECKED[0], "prompts": ["a"]}]},
        "test: prompts",
    ),
    "the provider of a test": (
        {"providers": ONE, "tests": [{**CHECKED[0], "provider": "openai:o3"}]},
        "test: provider",
    ),
    "providers of a test": (
        {"providers": ONE, "tests": [{**CHECKED[0], "providers": ["openai:o3"]}]},
        "test: providers",
    ),
    "prompts of a provider": (
        {**TWO, "providers": [{"id": "openai:gpt-4.1", "prompts": ["a"]}]},
        "provider openai:gpt-4.1: prompts",
    ),
    "a transform of a provider": (
        {"providers": [{"id": "openai:gpt-4.1", "transform": "output.trim()"}]},
        "provider openai:gpt-4.1: transform",
    ),
    "a transform of variables": (
        {"providers": ONE, "defaultTest": {"options": {"transformVars": "({q: 1})"}}},
        "options: transformVars",
    ),
    "a transform of all tests": (
        {"providers": ONE, "defaultTest": {"options": {"transform": "JSON.parse(output)"}}},
        "contains 't'",
    ),
    "an old name of transform": (
        {"providers": ONE, "defaultTest": {"options": {"postprocess": "output"}}},
        "options: postprocess",
    ),
    "a prompt of the grader": (
        {"providers": ONE, "defaultTest": {"options": {"rubricPrompt": "x"}}},
        "options: rubricPrompt",
    ),
    "a function that scores": (
        {"providers": ONE, "tests": [{**CHECKED[0], "assertScoringFunction": "file://s.js"}]},
        "test: assertScoringFunction",
    ),
    "a prompt that is code": (
        {"prompts": ["{{q}}", "file://agent.py"], "providers": ONE},
        "prompt file://agent.py",
    ),
    "a prompt with a variable of the shell": (
        {"prompts": ["{{q}} {{env.TOPIC}}"], "providers": ONE},
        "environment variable TOPIC",
    ),
    "tests that are made by code": (
        {"providers": ONE, "tests": [*CHECKED, "file://agent.py"]},
        "tests agent.py: it is code",
    ),
    "tests elsewhere": (
        {"providers": ONE, "tests": [*CHECKED, "https://127.0.0.1:1/tests.csv"]},
        "nothing is fetched",
    ),
    "a variable in a file that is missing": (
        {"providers": ONE, "tests": [{"vars": {"q": "file://none.txt"}}]},
        "variable q: none.txt",
    ),
    "a variable that is code": (
        {"providers": ONE, "tests": [{"vars": {"q": "file://agent.py"}}]},
        "variable q: file://agent.py",
    ),
    "attacks": ({"providers": ONE, "redteam": {"plugins": ["harmful"]}}, "redteam"),
    "filters": ({"providers": ONE, "nunjucksFilters": {"f": "f.js"}}, "nunjucksFilters"),
    "extensions": ({"providers": ONE, "extensions": ["file://agent.py:hook"]}, "extensions"),
    "other metrics": (
        {"providers": ONE, "derivedMetrics": [{"name": "f1", "value": "a / b"}]},
        "derivedMetrics",
    ),
    "an address in the environment": (
        {"providers": ONE, "env": {"OPENAI_BASE_URL": "http://127.0.0.1:1"}},
        "env: OPENAI_BASE_URL",
    ),
    "two graders": (
        {
            "providers": ONE,
            "tests": [
                {"assert": [{"type": "llm-rubric", "value": "x", "provider": "openai:a"}]},
                {"assert": [{"type": "llm-rubric", "value": "x", "provider": "openai:b"}]},
            ],
        },
        "a suite has the same judge for all tasks",
    ),
    "one grader that is named": (
        {
            "providers": ONE,
            "tests": [
                {"assert": [{"type": "llm-rubric", "value": "x"}]},
                {"assert": [{"type": "llm-rubric", "value": "x", "provider": "openai:b"}]},
            ],
        },
        "a suite has the same judge for all tasks",
    ),
    "a grader that is code": (
        {
            "providers": ONE,
            "tests": [{"assert": [{"type": "llm-rubric", "value": "x", "provider": "exec:g"}]}],
        },
        "provider exec:g",
    ),
    "prefixes that differ": (
        {
            "providers": ONE,
            "tests": [{**CHECKED[0], "options": {"prefix": "a"}}, CHECKED[0]],
        },
        "prefix and suffix",
    ),
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_would_be_measured_otherwise_is_named(name: str, tmp_path: Path) -> None:
    table, missing = OTHERWISE[name]
    with pytest.raises(InputError) as told:
        convert(tmp_path, table)
    assert missing in str(told.value)
    assert not (tmp_path / "new").exists()
    created = convert(tmp_path, table, partial=True)
    assert any(missing in one for one in load_suite(created.suite).partial)


def test_what_decides_nothing_is_listed_or_kept(tmp_path: Path) -> None:
    table = {
        "providers": ONE,
        "env": {"OPENAI_API_KEY": "sk-1"},
        "tests": [
            {
                **CHECKED[0],
                "metadata": {"category": "hot", "level": 3},
                "assert": [*CHECKED[0]["assert"], {"type": "cost", "threshold": 1, "weight": 0}],
            }
        ],
    }
    created = convert(tmp_path, table)
    assert [one.split(": ", 1)[1] for one in created.left_out] == [
        "env: OPENAI_API_KEY: set it in your shell",
        "cost: its weight is 0, so it decides nothing",
    ]
    (task,) = load_suite(created.suite).tasks
    assert (task.category, task.extra) == ("hot", {"level": 3})


def test_lists_of_variables_multiply_unless_they_are_one_value(tmp_path: Path) -> None:
    table: dict[str, Any] = {"providers": ONE, "tests": [{"vars": {"q": ["a", "b"]}}]}
    assert len(load_suite(convert(tmp_path, table).suite).tasks) == 2
    table["defaultTest"] = {"options": {"disableVarExpansion": True}}
    assert len(load_suite(convert(tmp_path, table, force=True).suite).tasks) == 1


def test_the_command_asks_for_a_model(tmp_path: Path) -> None:
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text("prompts: ['{{q}}']\nproviders: [exec:./a]\ntests: [{vars: {q: x}}]\n")
    done = pennyweight("init", tmp_path / "new", "--from", path)
    assert (done.code, done.out) == (2, "")
    assert "promptfooconfig.yaml:2: provider exec:./a: it is code" in done.err
    assert "--model PROVIDER/NAME" in done.err


def test_a_grader_is_never_replaced(tmp_path: Path) -> None:
    for first, second, judges in (("exec:g", "exec:g", []), ("openai:a", "openai:b", ["openai/a"])):
        tests = [
            {"assert": [{"type": "llm-rubric", "value": "x", "provider": one}]}
            for one in (first, second)
        ]
        table = {"providers": ONE, "tests": tests}
        suite = load_suite(convert(tmp_path, table, partial=True, force=True).suite)
        asked = [one.model for one in suite.judge.judges] if suite.judge else []
        assert asked == judges
        keys = [b.key for task in suite.tasks if task.scenario for _, b in task.scenario.all()]
        assert keys == [*["judge"] * len(judges), *["undecided"] * (2 - len(judges))]
