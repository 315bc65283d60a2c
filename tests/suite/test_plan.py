from collections import Counter
from dataclasses import replace

import pytest

from pennyweight.suite import plan
from pennyweight.suite.loader import load_suite

TEXT = """\
suite: s
tasks:
  - {id: a, input: one, target: SECRET, context: C, hint: h}
  - {id: b, input: two, hint: i, context: D}
  - {id: c, input: three, hint: j, context: E}
prompt: |
  {{ context }}: {{ input }} ({{ hint }})
subjects:
  - local/m
  - {model: local/n, max_tokens: 10}
settings: {temperature: 0.5}
tiers:
  T0: {}
  T1: {system: "Careful with {{ id }}.", temperature: 1}
  T2: {extends: T1, examples: [{input: zero, output: "0", context: Z, hint: y}]}
  T3: {prompt: "{% for e in examples %}{{ e.input }}={{ e.output }} {% endfor %}{{ input }}",
       examples: [{question: zero, answer: 0}]}
  T4: {messages: [{role: user, content: hi}, {role: assistant, content: yes},
                  {role: user, content: "{{ input }}"}]}
runs: 2
seed: 1
"""


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "suite.yaml"
    path.write_text(TEXT)
    return load_suite(path)


def of(suite, tier, task="a"):
    return next(a for a in plan.attempts(suite) if a.tier.name == tier and a.task.id == task)


def talk(attempt):
    return plan.conversation(attempt.tier, attempt.task)


def said(suite, tier):
    return [(m["role"], m["content"]) for m in talk(of(suite, tier))]


def test_every_attempt_is_there_once_and_always_in_the_same_order(suite):
    made = list(plan.attempts(suite))
    keys = [(a.task.id, a.subject.name, a.tier.name, a.number) for a in made]
    assert len(keys) == len(set(keys)) == plan.count(suite) == 3 * 2 * 5 * 2
    assert made == list(plan.attempts(suite))


def test_wherever_a_run_is_stopped_its_tiers_are_balanced(suite):
    made = list(plan.attempts(suite))
    for stop in range(1, len(made)):
        counts = Counter((a.subject.name, a.tier.name) for a in made[:stop])
        assert max(counts.values()) - min(counts.get(k, 0) for k in counts) <= 1


def test_seeds_belong_to_task_and_number(suite):
    seeds = {(a.task.id, a.number): a.seed for a in plan.attempts(suite)}
    assert all(a.seed == seeds[a.task.id, a.number] for a in plan.attempts(suite))
    assert len(set(seeds.values())) == 6
    more = replace(suite, runs=5)
    later = {(a.task.id, a.number): a.seed for a in plan.attempts(more)}
    assert seeds.items() <= later.items()
    assert all(a.seed is None for a in plan.attempts(replace(suite, seed=None)))


def test_messages(suite):
    user = ("user", "C: one (h)")
    assert said(suite, "T0") == [user]
    assert said(suite, "T1") == [("system", "Careful with a."), user]
    assert said(suite, "T2") == [
        ("system", "Careful with a."), ("user", "Z: zero (y)"), ("assistant", "0"), user,
    ]  # fmt: skip
    assert said(suite, "T3") == [("user", "zero=0 one")]
    assert said(suite, "T4") == [("user", "hi"), ("assistant", "yes"), ("user", "one")]


def test_no_prompt_shows_the_target(suite):
    for attempt in plan.attempts(suite):
        assert "SECRET" not in str(talk(attempt))


def test_settings_of_a_tier_go_over_the_subjects_over_the_suites(suite):
    made = {(a.subject.name, a.tier.name): plan.settings(suite, a) for a in plan.attempts(suite)}
    assert made["local/m", "T0"] == {"temperature": 0.5}
    assert made["local/n", "T1"] == {"temperature": 1.0, "max_tokens": 10}


def test_a_fingerprint_changes_with_what_is_called_and_with_nothing_else(suite):
    attempt = of(suite, "T1")
    same = plan.fingerprint(suite, attempt)
    assert len({plan.fingerprint(suite, a) for a in plan.attempts(suite)}) == plan.count(suite)
    unchanged = [
        replace(attempt, task=replace(attempt.task, target="x", category="y")),
        replace(attempt, tier=replace(attempt.tier, name="other")),
        replace(attempt, subject=replace(attempt.subject, name="other", key_env="K")),
        replace(attempt, number=9),
    ]
    assert {plan.fingerprint(suite, a) for a in unchanged} == {same}
    changed = [
        replace(attempt, task=replace(attempt.task, input="x")),
        replace(attempt, tier=replace(attempt.tier, system="x")),
        replace(attempt, tier=replace(attempt.tier, settings={"top_p": 1})),
        replace(attempt, subject=replace(attempt.subject, model="x")),
        replace(attempt, subject=replace(attempt.subject, base_url="http://x")),
        replace(attempt, seed=9),
    ]
    prints = {plan.fingerprint(suite, a) for a in changed}
    assert len(prints) == len(changed)
    assert same not in prints


def test_estimates(suite):
    found = {(e.subject.name, e.tier.name): e for e in plan.estimates(suite)}
    assert len(found) == 10
    one = found["local/n", "T0"]
    assert (one.attempts, one.output_tokens) == (6, 60)
    turns = [talk(of(suite, "T0", t)) for t in "abc"]
    assert one.prompt_tokens == 2 * sum(map(plan.tokens_of, turns))
    assert found["local/m", "T0"].output_tokens is None
    assert one.example == turns[0]
