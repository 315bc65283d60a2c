"""Configurations of promptfoo: the suites that are made from them decide as promptfoo does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pennyweight import run
from pennyweight.api.init import init_from
from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.declaration import CheckResult
from pennyweight.checks.scenario import observe
from pennyweight.errors import InputError
from pennyweight.suite.loader import load_suite
from pennyweight.suite.values import LoadedSuite
from sources.logs.fixtures import fixture
from suite.foreign.rules import copied, serving

CASES = Path(__file__).parent / "promptfoo"
NAMES = sorted(path.name for path in CASES.iterdir())
DIFFERENT = {
    # A pattern with look-ahead is missing, so nothing decides.
    ("patterns", 7): ["open"],
    # A test without assertions passes there; here it has no verdict.
    ("classifier", 3): ["open", "open"],
}
"""Where we decide differently, and say so."""


def decided(folder: Path) -> list[list[str]]:
    """Run a suite; return a row for each task, a column for each subject and tier."""
    done = run(folder / "suite.yaml", store=str(folder / "store.db"))
    said = {True: "pass", False: "fail", None: "open"}
    found = {
        (row["task_id"], row["subject"], row["tier"]): "error"
        if row["status"] == "error"
        else said[row["passed"]]
        for row in done.records().to_dicts()
    }
    suite = load_suite(folder / "suite.yaml")
    sides = [(subject.name, tier.name) for subject in suite.subjects for tier in suite.tiers]
    return [[found[task.id, *side] for side in sides] for task in suite.tasks]


@pytest.mark.parametrize("name", NAMES)
def test_verdicts_are_those_of_promptfoo(name: str, tmp_path: Path) -> None:
    if name == "code" and shutil.which("node") is None:
        pytest.skip("node is not installed")
    with serving(CASES / name) as server:
        copied(CASES / name, tmp_path, server.address)
        options = {"code": name == "code", "partial": name == "patterns"}
        init_from(tmp_path / "promptfooconfig.yaml", tmp_path / "new", **options)
        found = decided(tmp_path / "new")
    expected = json.loads((CASES / name / "verdicts.json").read_text())
    assert found == [DIFFERENT.get((name, i), row) for i, row in enumerate(expected)]


def given(result: Mapping[str, Any], suite: LoadedSuite) -> dict[str, CheckResult]:
    """Return the grader's verdicts in a log as those of our judge."""
    asked = {b.question: b for t in suite.tasks if t.scenario for _, b in t.scenario.leaves()
             if b.key == "judge"}  # fmt: skip
    parts = result["gradingResult"]["componentResults"]
    return {
        asked[part["assertion"]["value"]].mark: CheckResult(part["pass"], "graded")
        for part in parts
        if part["assertion"]["type"] == "llm-rubric"
    }


def test_recorded_replies_are_decided_as_promptfoo_did(tmp_path: Path) -> None:
    """The log of a real run, which has 30 attempts with a verdict."""
    folder = fixture("promptfoo")
    suite = load_suite(init_from(folder / "promptfooconfig.yaml", tmp_path).suite)
    tasks = {task.input: task for task in suite.tasks}
    same = []
    for one in json.loads((folder / "out.json").read_text())["results"]["results"]:
        if one["failureReason"] == 2:
            continue
        scenario = tasks[one["vars"]["question"]].scenario
        row = {
            "response": one["response"]["output"],
            "latency_ms": one["latencyMs"],
            "cost_usd": one.get("cost", 0.0),
        }
        seen = observe(scenario, AttemptView(row), given(one, suite))
        same.append(seen.passed(None, answered=False) == one["success"])
    assert (len(same), all(same)) == (30, True)


HOSTILE = """\
prompts:
  - "Say {{word}} {{env.SECRET_WORD}}"
  - file://../outside.txt
  - file://link.txt
  - exec:./prompt.sh
  - file://prompt.py
providers:
  - {id: "openai:chat:m", config: {apiKey: sk-secret-1, apiBaseUrl: "http://127.0.0.1:9/v1"}}
  - id: openai:chat:n
    config: {apiKey: "{{env.MY_KEY}}", headers: {Authorization: Bearer sk-secret-2}}
  - exec:./agent.sh
  - python:agent.py
  - file://agent.js
tests:
  - vars: {word: hi}
    assert:
      - {type: contains, value: hi}
      - {type: python, value: "file://check.py"}
      - {type: javascript, value: "require('fs').writeFileSync('ran', '1') || true"}
      - {type: contains, value: "{{ ''.__class__.__mro__ }}"}
  - vars: {word: file:///etc/passwd}
    assert: [{type: contains, value: root}]
  - file://tests.py
redteam: {plugins: [harmful]}
nunjucksFilters: {shout: filters.js}
"""


def test_nothing_is_run_or_read_that_lies_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_WORD", "swordfish")
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "outside.txt").write_text("OUTSIDE {{word}}")
    (home / "link.txt").symlink_to(tmp_path / "outside.txt")
    for name in ("prompt.sh", "agent.sh", "prompt.py", "check.py", "tests.py", "agent.js"):
        (home / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    (home / "promptfooconfig.yaml").write_text(HOSTILE)
    created = init_from(home / "promptfooconfig.yaml", tmp_path / "new", partial=True)
    text = created.suite.read_text()
    for secret in ("swordfish", "sk-secret", "OUTSIDE", "root:", "harmful"):
        assert secret not in text
    assert "key_env: MY_KEY" in text
    assert not (tmp_path / "ran").exists()
    assert {path.name for path in created.files} == {"suite.yaml", "suite.schema.json"}
    lines = [
        one.split(": ")[0].removeprefix("promptfooconfig.yaml:")
        for one in (*created.missing, *created.left_out)
    ]
    assert {*map(str, (2, 3, 4, 5, 6, 8, 10, 11, 12, 13, 18, 19, 20, 21, 23, 24, 25))} == {*lines}
    assert [s.name for s in load_suite(created.suite).subjects] == ["openai/m", "openai/n"]


def test_what_is_no_suite_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("a: 1\n")
    with pytest.raises(InputError, match="not recognised"):
        init_from(tmp_path / "x.yaml", tmp_path / "new")
    (tmp_path / "y.yaml").write_text('prompts: ["exec:./a"]\nproviders: [echo]\n')
    with pytest.raises(InputError, match="no prompt can be carried over"):
        init_from(tmp_path / "y.yaml", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_not_of_two_conditions_is_not_both(tmp_path: Path) -> None:
    config = tmp_path / "promptfooconfig.yaml"
    code = "output.includes('a') && output.includes('b')"
    config.write_text(
        "prompts: ['{{q}}']\nproviders: [openai:gpt-4.1-mini]\n"
        f'tests: [{{vars: {{q: x}}, assert: [{{type: not-javascript, value: "{code}"}}]}}]\n'
    )
    init_from(config, tmp_path / "made")
    made = "".join(p.read_text() for p in sorted((tmp_path / "made").rglob("*.yaml")))
    assert "not_at_least" in made
    assert "not_contains" not in made


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai:gpt-4.1-mini", "openai/gpt-4.1-mini"),
        ("openai:chat:gpt-4.1-mini", "openai/gpt-4.1-mini"),
        ("openai:responses:gpt-5.1", "openai-responses/gpt-5.1"),
        ("anthropic:messages:claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("xai:grok-4", "grok/grok-4"),
    ],
)
def test_providers_are_called_in_their_own_format(
    tmp_path: Path, provider: str, model: str
) -> None:
    config = tmp_path / "promptfooconfig.yaml"
    config.write_text(
        f"prompts: ['{{{{q}}}}']\nproviders: ['{provider}']\ntests: [vars: {{q: x}}]\n"
    )
    init_from(config, tmp_path / "made")
    (subject,) = load_suite(tmp_path / "made" / "suite.yaml").subjects
    assert subject.model == model
