"""Narrowing a suite for one run: which tasks, subjects and tiers are left, and what is refused."""

import pytest

from pennyweight.errors import UsageError
from pennyweight.suite.loader import load_suite
from pennyweight.suite.narrowing import (
    Narrowing,
    change_words,
    fewer_words,
    option_words,
    part_words,
)

SUITE = """\
suite: s
tasks: [{id: a1, input: x}, {id: a2, input: y}, {id: b1, input: z}, {id: "c[1]", input: z}]
subjects: [local/m, {name: ours, model: openai/m, base_url: "http://127.0.0.1:1/v1"}]
tiers: {T0: {}, T1: {extends: T0, system: hi}}
runs: 3
prices: {ours: {input: 1, output: 2}}
"""


@pytest.fixture
def narrowed(write):
    path = write(SUITE)
    return lambda **options: load_suite(path, narrowing=Narrowing.of(**options))


def ids(suite):
    return [task.id for task in suite.tasks]


def test_tasks_are_chosen_by_id_pattern_and_number(narrowed):
    assert ids(narrowed(limit=2)) == ["a1", "a2"]
    assert ids(narrowed(limit=9)) == ["a1", "a2", "b1", "c[1]"]
    assert ids(narrowed(tasks=["b1", "a*"])) == ["a1", "a2", "b1"]
    assert ids(narrowed(tasks=["c[1]"])) == ["c[1]"], "an id is never a pattern"
    assert ids(narrowed(tasks=["a*"], limit=1)) == ["a1"]


def test_a_sample_depends_on_its_seed_and_on_nothing_else(write):
    def drawn(seed, names):
        tasks = ", ".join(f"{{id: t{n}, input: x}}" for n in names)
        path = write(f"suite: s\ntasks: [{tasks}]\nsubjects: [local/m]\n")
        return ids(load_suite(path, narrowing=Narrowing.of(sample=20, seed=seed)))

    first = drawn(1, range(100))
    assert len(first) == 20
    assert first == drawn(1, range(100))
    assert first != drawn(2, range(100))
    assert set(first) == set(drawn(1, reversed(range(100)))), "the order of the file is no matter"
    more = set(drawn(1, range(110)))
    assert len(more & set(first)) >= 15, "tasks that are added replace only a few"


def test_every_task_is_as_likely_to_be_drawn(narrowed):
    counts = dict.fromkeys(["a1", "a2", "b1", "c[1]"], 0)
    for seed in range(200):
        for task in ids(narrowed(sample=2, seed=seed)):
            counts[task] += 1
    assert all(75 <= count <= 125 for count in counts.values()), counts


def test_subjects_and_tiers_are_chosen_by_name(narrowed):
    suite = narrowed(subjects=["ours"], tiers=["T1"])
    assert [s.name for s in suite.subjects] == ["ours"]
    assert [(t.name, t.system) for t in suite.tiers] == [("T1", "hi")]


def test_a_subject_that_is_left_out_is_not_checked(write):
    def problem(subject):
        return "it has no key" if subject.name == "ours" else None

    path = write(SUITE)
    assert load_suite(path, None, problem, narrowing=Narrowing.of(subjects="local/m"))


def test_models_take_the_place_of_subjects_and_listed_ones_keep_their_settings(narrowed):
    suite = narrowed(models=["openai/m", "local/n"])
    assert [(s.name, s.base_url) for s in suite.subjects] == [
        ("ours", "http://127.0.0.1:1/v1"),
        ("local/n", None),
    ]
    assert [s.name for s in narrowed(models=["local/n"]).subjects] == ["local/n"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": ["a3"]}, "Task 'a3' is not known. The suite has: "),
        ({"tasks": ["z*"]}, r"Task 'z\*' is not known"),
        ({"subjects": ["our"]}, "Subject 'our' is not known. Did you mean 'ours'"),
        ({"tiers": ["T2"]}, "Tier 'T2' is not known"),
        ({"tasks": []}, "nothing to run"),
        ({"limit": 0}, "limit 0: it must be a whole number of at least 1"),
        ({"limit": "3"}, "limit '3': it must be a whole number"),
        ({"subjects": []}, "'subjects' names no subject, so there is nothing to run"),
        ({"models": []}, "'models' names no model"),
        ({"tasks": [1]}, "Task '1' is not known"),
        ({"limit": 1, "sample": 1}, "use one of them"),
        ({"seed": 1}, "'seed' is the seed of 'sample'"),
        ({"set": {"tasks.limit": 1}}, "use 'limit'"),
    ],
)
def test_what_does_not_fit_is_refused(options, message, narrowed):
    with pytest.raises(UsageError, match=message):
        narrowed(**options)


def test_a_run_stores_what_it_was_narrowed_to(narrowed):
    options = {"tasks": ["a*"], "models": ["local/n"], "runs": 1, "temperature": 0.5}
    made = narrowed(**options).narrowing
    assert Narrowing.stored({"narrowing": made.plain()}) == made
    assert made.options == Narrowing.of(**options)
    assert (made.of_tasks, made.of_runs) == (4, 3)
    assert Narrowing.stored({}) == Narrowing()
    assert not Narrowing()


def test_a_run_of_other_tasks_is_not_whole(narrowed):
    suite = narrowed(set={"tasks": [{"id": "own", "input": "1"}]})
    settings = {"tasks": 1, "runs": 3, "narrowing": suite.narrowing.plain()}
    assert fewer_words(settings) == "other tasks than its suite's file"
    assert suite.narrowing.is_part(len(suite.tasks), suite.runs)


def test_the_words_for_it(narrowed):
    def settings(suite):
        options = suite.narrowing.plain()
        return {"tasks": len(suite.tasks), "runs": suite.runs, "narrowing": options}

    suite = narrowed(limit=2, runs=1, tiers=["T1"], models=["local/n"], temperature=0)
    words = "the first 2 of 4 tasks, 1 of 3 attempts at each task"
    assert fewer_words(settings(suite)) == words
    assert part_words(settings(suite)) == f"{words}, only tier T1"
    assert change_words(settings(suite)) == "model local/n, runs=1, temperature=0"
    assert option_words(suite.narrowing) == [
        *("--limit", "2", "--tier", "T1", "-m", "local/n"),
        *("--set", "runs=1", "--set", "temperature=0"),
    ]
    assert part_words(settings(narrowed(sample=1, seed=7))) == (
        "1 of 4 tasks drawn at random (seed 7)"
    )
    assert part_words(settings(narrowed(tasks=["a*"]))) == "2 of 4 tasks (a*)"
    assert part_words(settings(narrowed(limit=9, runs=5))) == "", "it has all that is asked for"
