"""`pennyweight audit` as a user meets it: every planted flaw is found, and none is invented."""

import csv
import json
from pathlib import Path

import jsonschema
import pytest

import pennyweight as api
from cli.command import pennyweight, refused

EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL = "openai/gpt-5-mini"
MARKED = '{{ input }}\nEnd with a line "FINAL_ANSWER: <answer>".'
CAPITALS = {"France": "Paris", "Italy": "Rome", "Norway": "Oslo", "Japan": "Tokyo"}
QUESTIONS = [
    {"id": land, "input": f"What is the capital of {land}?", "target": city}
    for land, city in CAPITALS.items()
]


def audited(tasks, **keys):
    """Audit a suite that was built in Python."""
    keys = {"suite": "s", "prompt": MARKED, "subjects": [MODEL], "tasks": tasks, **keys}
    return api.audit(keys)


def flaws(tasks, **keys):
    """Return the probe and the tasks of each flaw."""
    return [(flaw.probe, *flaw.tasks) for flaw in audited(tasks, **keys).flaws]


def with_task(**task):
    return [*QUESTIONS, {"id": "x", "input": "What is asked here?", **task}]


# --- sound suites -------------------------------------------------------------------------------


SUMS = [
    {"id": f"{a}+{b}", "input": f"Ann has {a} pens and gets {b}. How many?", "target": a + b}
    for a, b in ((3, 4), (10, 15), (7, 9), (20, 33), (1, 5), (40, 41))
]
CHOICES = [
    {"input": q, "choices": c, "target": t}
    for q, c, t in (
        ("Which is a metal?", ["wood", "iron", "glass", "wool"], 1),
        ("Which flies?", ["an eagle", "a trout", "a snail", "a horse"], 0),
        ("Which is red?", ["grass", "the sky", "blood", "snow"], 2),
        ("Which is cold?", ["fire", "steam", "the sun", "ice"], 3),
    )
]
LISTED = "{{ input }}\n{% for c in choices %}({{ 'ABCD'[loop.index0] }}) {{ c }}\n{% endfor %}"
LABELLED = [
    {"input": f"Is {n} a prime number?", "target": "yes" if n in {7, 11, 13} else "no"}
    for n in (7, 8, 9, 11, 12, 13)
]
QUOTED = [
    {"input": f"{who} lives in {where} and likes tea. Where does the person live?", "target": where}
    for who, where in (("Ann", "Oslo"), ("Bob", "Madrid"), ("Cem", "Ankara"), ("Dana", "Lisbon"))
]
SOUND = {
    "texts": (QUESTIONS, {}),
    "numbers": (SUMS, {"prompt": "{{ input }}", "answer": "last_number", "match": "numeric"}),
    "tolerance": (
        [{"input": f"Estimate {n}.", "target": t} for n, t in (("a", 100), ("b", 102), ("c", 98))],
        {"match": {"numeric": "5%"}},
    ),
    "choices": (
        CHOICES,
        {"prompt": LISTED + "Answer: ", "answer": {"choice": "A-D"}, "match": "choice"},
    ),
    "labels": (LABELLED, {"prompt": MARKED + " The answer is yes or no."}),
    "quoted": (QUOTED, {}),
    "several": (
        [{"input": f"{q}?", "target": ts} for q, ts in (("a", ["x1", "y1"]), ("b", ["x2", "y2"]))],
        {"match": "any_of"},
    ),
    "patterns": (
        [{"input": f"{q}?", "target": t} for q, t in (("a", r"colou?r"), ("b", r"gr[ae]y"))],
        {"match": "regex"},
    ),
    "json": (QUESTIONS, {"prompt": "{{ input }} Reply as JSON.", "answer": {"json": "$.city"}}),
    "boxed": (SUMS, {"prompt": r"{{ input }} Put it into \boxed{}.", "answer": "boxed"}),
    "own pattern": (
        QUESTIONS,
        {"prompt": "{{ input }} Write: The answer is …", "answer": {"regex": "answer is (.+)"}},
    ),
    "unanswerable": (
        with_task(target="I do not know"),
        {},
    ),
    "worked solutions": (
        [
            {**task, "target": f"{task['id']}={task['target']}\n#### {task['target']}"}
            for task in SUMS
        ],
        {
            "prompt": "{{ input }} End with a line #### and the number.",
            "answer": {"regex": r"#### (\-?[0-9\.\,]+)"},
            "match": {"verbatim": {"ignore": [",", r"(?s).*#### "]}},
        },
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_nothing_is_invented(name):
    tasks, keys = SOUND[name]
    found = audited(tasks, **keys)
    assert found.is_sound, found
    gold = next(probe for probe in found.probes if probe.name == "gold")
    assert (gold.checked, gold.failed, gold.unchecked) == (len(tasks), 0, ())


# --- planted flaws ------------------------------------------------------------------------------


TEXTS = {"prompt": "{{ input }}", "answer": {"regex": "(?s).+"}, "match": "contains"}
FLAWED = {
    "several lines": (with_task(target="Paris\nin France"), {}, ("gold", "x")),
    "a full stop": (with_task(target="It is red."), {}, ("gold", "x")),
    "not a number": (
        [*SUMS, {"id": "x", "input": "How many?", "target": "a dozen"}],
        {"prompt": "{{ input }}", "answer": "last_number", "match": "numeric"},
        ("gold", "x"),
    ),
    "not what the pattern finds": (
        with_task(target="a dozen"),
        {"answer": {"regex": "answer: ([A-Z][a-z]+)$"}},
        ("gold", "x"),
    ),
    "no is in know": (with_task(target="no"), TEXTS, ("refusal", "x")),
    "a number in a number": (
        [{"id": "x", "input": "a?", "target": "41"}, {"id": "y", "input": "b?", "target": "1415"}],
        TEXTS,
        ("other", "x"),
    ),
    "a target that is anything": (
        with_task(target=".*"),
        {**TEXTS, "match": "regex"},
        ("refusal", "x"),
    ),
    "an echo": (
        [*SUMS, {"id": "x", "input": "How many wheels have 2 cars with 4?", "target": "4"}],
        {"prompt": "{{ input }}", "answer": "last_number"},
        ("echo", "x"),
    ),
    "it says the answer": (
        with_task(input="Where is the Louvre? (The answer is Paris, by the way.)", target="Paris"),
        {},
        ("leak", "x"),
    ),
    "it has the answer in it": (
        with_task(input="Think of Reykjavik. Which city is it?", target="Reykjavik"),
        {},
        ("leak", "x"),
    ),
    "a column has the answer": (
        [{**one, "hint": one["target"]} for one in QUESTIONS],
        {"prompt": MARKED + " ({{ hint }})"},
        ("leak", "Italy"),
    ),
    "the same task": (
        with_task(input="What is the  capital of Italy?", target="Rome"),
        {},
        ("duplicate", "x"),
    ),
    "the same question": (
        with_task(input="What is the capital of Italy?", target="Milan"),
        {},
        ("duplicate", "x"),
    ),
    "the same task with its number in another form": (
        [
            *SUMS,
            *({"id": i, "input": "6 * 7?", "target": t} for i, t in (("y", 42), ("x", "42.0"))),
        ],
        {},
        ("duplicate", "x"),
    ),
    "nearly the same task": (
        with_task(input="WHAT is the capital of Italy", target="Rome"),
        {},
        ("duplicate", "x"),
    ),
    "a task in other words": (
        [
            *SUMS,
            {
                "id": "long",
                "input": "A gardener plants twelve red tulips beside the old wooden fence today.",
                "target": 12,
            },
            {
                "id": "x",
                "input": "A gardener plants twelve red tulips near the old wooden fence today.",
                "target": 12,
            },
        ],
        {},
        ("duplicate", "x"),
    ),
    "nobody asks for the marker": (QUESTIONS, {"prompt": "{{ input }}"}, ("prompt",)),
    "every task gets the same prompt": (
        QUESTIONS,
        {"prompt": 'Answer with "FINAL_ANSWER: <answer>".'},
        ("prompt",),
    ),
    "nothing decides": (["a?", "b?"], {}, ("prompt",)),
    "every target is the same": (
        [{"input": f"Is {n} even?", "target": "yes"} for n in (2, 4, 6, 8, 10)],
        {},
        ("shuffled",),
    ),
    "every answer is accepted": (
        [{"input": f"{n}?", "target": n} for n in (100, 200, 300, 400)],
        {"match": {"numeric": "400%"}},
        ("shuffled",),
    ),
    "the must-not is the answer": (
        with_task(target="Paris", must_not=[{"contains": "paris"}]),
        {},
        ("gold", "x"),
    ),
    "the solution has another answer": (
        with_task(target="Paris", solution="I think so.\nFINAL_ANSWER: Rome"),
        {},
        ("gold", "x"),
    ),
}


@pytest.mark.parametrize("name", FLAWED)
def test_every_planted_flaw_is_found(name):
    tasks, keys, flaw = FLAWED[name]
    assert flaw in flaws(tasks, **keys)


# --- scenarios ----------------------------------------------------------------------------------


def scenario(**keys):
    return {"id": "x", "input": "Where is my order?", "category": "happy_path", **keys}


GREETS = {"name": "greets", "contains": "hello"}
SCENARIOS = {
    "half of it is silence": (
        scenario(expected_behaviors=[GREETS, {"length": {"max": 60}}], pass_score=0.5),
        ("empty", "x"),
    ),
    "the question is enough": (
        scenario(expected_behaviors=[{"contains": "order"}]),
        ("echo", "x"),
    ),
    "sorry is enough": (
        scenario(expected_behaviors=[{"length": {"min": 2}}]),
        ("refusal", "x"),
    ),
    "everything passes": (
        scenario(checks=[{"at_least": {"share": 0, "parts": [{"contains": "a"}]}}]),
        ("scenario", "x"),
    ),
    "expected and forbidden": (
        scenario(expected_behaviors=[{"contains": "refund"}], must_not=[{"contains": "fund"}]),
        ("scenario", "x"),
    ),
    "no tools": (scenario(expected_behaviors=[{"tool_called": "refund"}]), ("scenario", "x")),
    "no files": (scenario(expected_behaviors=[{"file_exists": "a.txt"}]), ("scenario", "x")),
    "the solution does what is forbidden": (
        scenario(
            expected_behaviors=[GREETS],
            must_not=[{"contains": "secret"}],
            solution="Hello! This is no secret.",
        ),
        ("gold", "x"),
    ),
    "the solution misses something": (
        scenario(expected_behaviors=[GREETS, {"contains": "bye"}], solution="Hello!"),
        ("gold", "x"),
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_flaws_of_scenarios_are_found(name):
    task, flaw = SCENARIOS[name]
    assert flaw in flaws([task], prompt="{{ input }}")


def test_restraint_is_not_a_flaw():
    tasks = [
        {"id": "a", "input": "Tell the code.", "must_not": [{"contains": "LANTERN"}]},
        {"id": "b", "input": "Thanks!", "expected_behaviors": [{"tool_count": {"max": 0}}]},
        {"id": "c", "input": "How long?", "expected_behaviors": [{"length": {"max": 60}}]},
        {"id": "d", "input": "Quick!", "checks": [{"tokens": 700}, {"latency": "2s"}]},
        {"id": "e", "input": "Help me hurt him.", "expected_behaviors": [{"refusal": True}]},
        scenario(expected_behaviors=[GREETS], must_not=[{"contains": "no"}], solution="Hello!"),
    ]
    found = audited(tasks, prompt="{{ input }}")
    assert found.is_sound, found


def test_what_a_person_decides_is_not_checked():
    task = scenario(expected_behaviors=[{"human": "Is it kind?"}], solution="Hello!")
    found = audited([task], prompt="{{ input }}")
    assert found.is_sound
    counts = {
        probe.name: (probe.checked, [u.why for u in probe.unchecked]) for probe in found.probes
    }
    assert counts["gold"] == (0, ["a judge or a person decides"])
    assert counts["empty"] == (0, ["a judge or a person decides"])


# --- the command --------------------------------------------------------------------------------


@pytest.fixture
def unsound(tmp_path):
    path = tmp_path / "suite.yaml"
    lines = [json.dumps(one) for one in with_task(input="Is it Reykjavik?", target="Reykjavik")]
    (tmp_path / "tasks.jsonl").write_text("\n".join(lines))
    keys = {"suite": "capitals", "tasks": "tasks.jsonl", "prompt": MARKED, "subjects": [MODEL]}
    path.write_text(json.dumps(keys))
    return path


def test_only_the_flawed_tasks_are_shown(unsound):
    shown = pennyweight("audit", unsound)
    assert shown.code == 1
    assert shown.out.startswith("capitals: unsound, 1 flaw in 1 of 5 tasks\n")
    assert "FAILS" in shown.out
    assert "France" not in shown.out
    assert "input shows the target 'Reykjavik'" in " ".join(shown.out.split())
    assert "France" in pennyweight("audit", unsound, "--all").out


def test_a_sound_suite_exits_with_0(unsound):
    shown = pennyweight("audit", unsound, "--limit", "4")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith("capitals: no flaw was found\n")


def test_json_is_the_function(unsound):
    shown = pennyweight("audit", unsound, "--format", "json")
    own = api.audit(str(unsound))
    assert shown.code == own.exit_code == 1
    assert {name: shown.json[name] for name in own.to_dict()} == own.to_dict()
    assert shown.json["sound"] is False
    assert shown.json["results"][-1]["leak"] == "fails"
    assert "unsound" in shown.json["words"][0]
    schema = json.loads((EXAMPLES.parent / "docs/reference/audit.schema.json").read_text())
    jsonschema.validate(shown.json, schema)


def test_csv_has_a_row_for_each_failure(unsound):
    rows = list(csv.DictReader(pennyweight("audit", unsound, "--format", "csv").out.splitlines()))
    assert [(row["task"], row["probe"]) for row in rows] == [("x", "leak")]
    every = pennyweight("audit", unsound, "--format", "csv", "--all").out.splitlines()
    assert len(every) - 1 == api.audit(str(unsound)).to_polars().height


def test_markdown_and_notebooks_show_it(unsound):
    shown = pennyweight("audit", unsound, "--format", "markdown").out
    assert "| x " in shown
    html = api.audit(str(unsound))._repr_html_()
    assert "Reykjavik" in html


def test_mistakes_are_told(unsound, tmp_path):
    assert "no such file" in refused("audit", tmp_path / "none.yaml")
    assert "--fix" in refused("audit", unsound, "--fix")


def test_solutions_are_no_part_of_what_is_asked(tmp_path):
    task = {"id": "a", "input": "2 + 2?", "target": 4}
    for solution in ({}, {"solution": "FINAL_ANSWER: 4"}):
        keys = {"suite": "s", "tasks": [{**task, **solution}], "prompt": MARKED}
        assert "FINAL_ANSWER: 4" not in str(api.audit({**keys, "subjects": [MODEL]}).to_dict())


@pytest.mark.parametrize("name", ["support", "sums", "judged", "agent"])
def test_our_examples_are_sound(name, monkeypatch):
    monkeypatch.chdir(EXAMPLES.parent)
    found = api.audit(EXAMPLES / name / "suite.yaml")
    assert found.is_sound, found


def test_a_file_of_choices_is_sound(tmp_path):
    rows = [
        {"question": f"Which of these comes number {n} in the list of {n * n}?", "answer": n % 4}
        for n in range(16)
    ]
    path = tmp_path / "mmlu.jsonl"
    for n, row in enumerate(rows):
        row["choices"] = [f"{word}{n}" for word in ("oak", "elm", "ash", "fir")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    shown = pennyweight("audit", path, "--format", "json")
    assert [flaw["why"] for flaw in shown.json["flaws"]] == []
    assert "25.0 % of the right replies pass; by chance 25.0 %" in shown.json["words"][-1]


@pytest.mark.parametrize("kind", [(), ("--scenarios",)])
def test_a_first_suite_is_sound(kind, tmp_path):
    assert pennyweight("init", tmp_path, *kind).code == 0
    found = api.audit(tmp_path / "suite.yaml")
    assert found.is_sound, found


def test_many_tasks_take_time_for_each_and_not_for_each_pair():
    """The words of a task are compared with those of a few others: this must end at all."""
    tasks = [
        {"input": f"A farm has {n} cows and buys {n % 89} more from farm {n % 7}. How many now?",
         "target": n + n % 89}
        for n in range(10_000)
    ]  # fmt: skip
    found = audited(tasks, answer="last_number", prompt="{{ input }} Answer with a number.")
    assert len(found.audited) == 10_000
    assert {flaw.probe for flaw in found.flaws} <= {"echo"}


# --- what a run says by itself ------------------------------------------------------------------


def called(prompt):
    return "FINAL_ANSWER: Paris"


def test_a_run_says_what_is_unsound_and_goes_on(unsound, tmp_path):
    function = f"python:{__name__}:called"
    shown = pennyweight(
        "run", unsound, "-m", function, "--store", tmp_path / "s.db", "--format", "json"
    )
    assert shown.code == 0
    assert shown.json["groups"]
    (note,) = [line for line in shown.err.splitlines() if "Unsound" in line]
    assert "input shows the target 'Reykjavik'" in note
    assert f"'pennyweight audit {unsound}' shows all of it." in note
    sound = pennyweight("run", unsound, "-m", function, "--store", tmp_path / "s.db", "--limit", 4)
    assert "Unsound" not in sound.err


def test_a_dry_run_says_it_too(unsound):
    shown = pennyweight("run", unsound, "--dry-run", "--format", "json")
    assert shown.json["tasks"] == 5
    assert shown.err.count("Unsound") == 1


def test_a_run_looks_at_a_sample_of_many_tasks(tmp_path):
    tasks = [{"input": f"How much is {n} + 0?", "target": n} for n in range(1_000)]
    path = tmp_path / "suite.yaml"
    keys = {"suite": "s", "tasks": tasks, "prompt": "{{ input }}", "answer": {"regex": "[0-9]+"}}
    path.write_text(json.dumps({**keys, "subjects": [MODEL]}))
    shown = pennyweight("run", path, "--dry-run")
    (note,) = [line for line in shown.err.splitlines() if "Unsound" in line]
    assert "(task 1 and 199 more) (200 of 1,000 tasks were examined)" in note


def test_a_run_runs_no_code_to_look(tmp_path):
    task = {"id": "x", "input": "?", "checks": [{"command": f"touch {tmp_path / 'made'}"}]}
    path = tmp_path / "suite.yaml"
    path.write_text(json.dumps({"suite": "s", "tasks": [task], "subjects": [MODEL]}))
    assert pennyweight("run", path, "--dry-run").code == 0
    assert not (tmp_path / "made").exists()
    assert pennyweight("audit", path).code == 1
    assert (tmp_path / "made").exists()


# --- agents -------------------------------------------------------------------------------------


@pytest.fixture
def office(tmp_path, monkeypatch):
    """Return a function that audits the work of an agent in a folder; the agent is never run."""
    monkeypatch.setenv("PENNYWEIGHT_WORKSPACES", str(tmp_path / "workspaces"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "sum.sh").write_text("echo 3\n")

    def audited(*tasks, **keys):
        suite = {
            "suite": "office",
            "workspace": "folder",
            "subjects": [{"name": "clerk", "command": ["false"], "sandbox": "none"}],
            "tasks": [{"id": f"t{n}", "input": f"Task {n}: mend sum.sh.", **task}
                      for n, task in enumerate(tasks)],
            **keys,
        }  # fmt: skip
        path = tmp_path / "suite.yaml"
        path.write_text(json.dumps(suite))
        return pennyweight("audit", path, "--format", "json")

    return audited


MENDED = 'test "$(sh sum.sh)" = 4'
PATCH = "--- a/sum.sh\n+++ b/sum.sh\n@@ -1 +1 @@\n-echo 3\n+echo 4\n"


@pytest.mark.parametrize(
    "solution",
    [
        {"files": {"sum.sh": "echo 4\n"}},
        {"command": "echo 'echo 4' > sum.sh"},
        {"patch": PATCH},
        {"files": {"new/part.sh": "echo 4\n"}, "command": [["mv", "new/part.sh", "sum.sh"]]},
    ],
)
def test_a_solution_solves_the_task(office, solution):
    shown = office({"verify": MENDED, "solution": solution})
    assert shown.code == 0, shown.json["flaws"]
    assert shown.json["results"] == [
        {"task": "t0", "duplicate": "ok", "verify": "ok", "gold": "ok", "stable": "ok"}
    ]


def found_in(shown):
    return [(flaw["probe"], *flaw["tasks"]) for flaw in shown.json["flaws"]]


def test_flaws_of_verification_are_found(office):
    shown = office(
        {"verify": "true"},
        {"verify": MENDED, "solution": {"command": "echo 'echo 5' > sum.sh"}},
        {"verify": MENDED, "solution": {"patch": PATCH.replace("echo 3", "echo 7")}},
        {"verify": MENDED, "solution": {"command": "exit 3"}},
        {"verify": MENDED},
        verify_files={"count": "0\n"},
    )
    assert shown.code == 1
    assert found_in(shown) == [("gold", "t1"), ("gold", "t2"), ("gold", "t3"), ("verify", "t0")]
    words = [flaw["why"] for flaw in shown.json["flaws"]]
    assert "does not pass" in words[0]
    assert "cannot be applied" in words[1]
    assert "verify passes where nothing was done" in words[3]
    gold = next(probe for probe in shown.json["probes"] if probe["name"] == "gold")
    assert gold["unchecked"] == [{"why": "no solution", "tasks": 2}]


def test_a_verifier_that_cannot_start_is_found(office):
    shown = office({"verify": "pytestt -q"})
    assert found_in(shown) == [("verify", "t0")]
    assert "pytestt" in shown.json["flaws"][0]["why"]


def test_what_fails_for_every_agent_is_one_flaw(office):
    agents = [
        {"name": name, "command": [name], "sandbox": "none"} for name in ("false", "true", "echo")
    ]
    shown = office({"verify": "pytestt -q"}, subjects=agents)
    assert found_in(shown) == [("verify", "t0")]


def test_a_suite_may_allow_that_it_passes_before(office):
    shown = office({"verify": "true", "verify_before": "any"})
    assert (shown.code, found_in(shown)) == (0, [])
    left = {probe["name"]: probe["unchecked"] for probe in shown.json["probes"]}
    assert left["verify"] == [{"why": "the suite allows that it passes before", "tasks": 1}]


def test_a_verifier_that_decides_by_luck_is_found(office, tmp_path):
    counter = tmp_path / "counter"
    counter.write_text("0")
    luck = f"n=$(cat {counter}); echo $((n + 1)) > {counter}; test $((n % 2)) = 1"
    shown = office({"verify": luck}, {"verify": MENDED})
    assert ("stable", "t0") in found_in(shown)
    assert ("stable", "t1") not in found_in(shown)


def test_a_run_does_not_run_the_commands_to_look(office, tmp_path):
    office({"verify": f"touch {tmp_path / 'made'}"})
    (tmp_path / "made").unlink()
    shown = pennyweight("run", tmp_path / "suite.yaml", "--dry-run")
    assert (shown.code, (tmp_path / "made").exists()) == (0, False)


def test_the_solution_must_also_do_what_a_scenario_expects(office):
    task = {"verify": MENDED, "solution": {"files": {"sum.sh": "echo 4\n"}, "reply": "Done."}}
    expected = {"expected_behaviors": [{"contains": "mended"}]}
    assert found_in(office({**task, **expected})) == [("gold", "t0")]
    task["solution"]["reply"] = "It is mended."
    assert found_in(office({**task, **expected})) == []


# --- judges -------------------------------------------------------------------------------------


def test_judges_are_asked_only_if_that_is_wanted(monkeypatch):
    monkeypatch.chdir(EXAMPLES.parent)
    judged = ("audit", "examples/judged/suite.yaml", "--limit", "2", "--format", "json")
    offline = pennyweight(*judged)
    assert (offline.code, offline.err, offline.json["judging"]) == (0, "", None)
    left = {probe["name"]: probe["unchecked"] for probe in offline.json["probes"]}
    assert left["judge"] == [{"why": "the judges were not asked; --judges does", "tasks": 2}]
    asked = pennyweight(*judged, "--judges")
    assert asked.code == 1
    assert "asked for at least 16 judgments, with no cost limit" in asked.err
    assert asked.json["judging"]["calls"] >= 16
    assert asked.json["judging"]["usd"] > 0
    assert found_in(asked) == [("echo", "typo"), ("echo", "timeout")]
    assert "the judges pass the prompt itself" in asked.json["flaws"][0]["why"]
    assert [one["judge"] for one in asked.json["results"]] == ["ok", "ok"]
