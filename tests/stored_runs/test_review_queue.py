"""Queues are drawn as they say, and labels are compared with the automatic verdicts."""

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

import pennyweight
from cli.command import pennyweight as run_command
from pennyweight.api.gate import gate_state
from pennyweight.api.pages.digest_cache import compute
from pennyweight.api.pages.records import remark_on_record
from pennyweight.api.review import answered, review_queue
from pennyweight.cli.review import command
from pennyweight.errors import InputError, UsageError
from pennyweight.render.page.people import people_lines
from pennyweight.render.report import html
from pennyweight.scoring.labelled import Label, label_frame
from pennyweight.stats.labels import corrected_share
from pennyweight.store.store import Store
from store.samples import RUN, record, run

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "docs/reference/scores.schema.json").read_text("utf-8")
)
TASKS, TIERS = 120, ("T0", "T1")


def truth(task, tier):
    """What a person says: the rule is wrong on each tenth task."""
    right = (task * 7 + (tier == "T1")) % 3 > 0
    return right if task % 10 else not right


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    made = Store(str(tmp_path_factory.mktemp("labels") / "pennyweight.db"))
    settings = {"seed": None, "subjects": ["m"], "tiers": [*TIERS]}
    made.add_run(run(status="done", attempts=TASKS * 2, settings=settings))
    rows = []
    for task in range(TASKS):
        for tier in TIERS:
            right = (task * 7 + (tier == "T1")) % 3 > 0
            values = {"input": f"{task}?", "target": "1", "response": f"FINAL_ANSWER: {2 - right}"}
            rows.append(record(f"t{task:03}", tier=tier, **values))
    rows.append(record("broken", status="error", error="no", error_kind="timeout"))
    made.write(rows, [])
    yield made
    made.close()


def review(store, *arguments, given=""):
    """Run the command with what a person types."""
    typed = [RUN, *map(str, arguments), "--store", store.address]
    done = CliRunner().invoke(command, typed, input=given, catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return done


def said(key):
    return "right" if truth(int(key.task_id[1:]), key.tier) else "wrong"


def test_a_queue_is_the_same_for_the_same_seed_and_grows_in_order(store):
    first = review_queue(RUN, size=20, seed=3, store=store)
    assert len(set(first)) == 20
    assert review_queue(RUN, size=50, seed=3, store=store)[:20] == first
    assert review_queue(RUN, size=20, seed=4, store=store) != first
    every = review_queue(RUN, size=1000, store=store)
    assert len(every) == TASKS * 2  # what failed has no verdict to compare with
    with pytest.raises(UsageError, match="random or disagreement"):
        review_queue(RUN, draw="worst", store=store)
    with pytest.raises(UsageError, match="1 to"):
        review_queue(RUN, size=0, store=store)


def test_disagreement_comes_first(store):
    drawn = review_queue(RUN, draw="disagreement", size=1000, store=store)
    split = [len({(t * 7) % 3 > 0, (t * 7 + 1) % 3 > 0}) == 2 for t in range(TASKS)]
    order = [split[int(key.task_id[1:])] for key in drawn]
    assert order == sorted(order, reverse=True)
    assert 0 < sum(order) < len(order)


def test_every_record_is_drawn_as_often(store):
    counts = dict.fromkeys(review_queue(RUN, size=1000, store=store), 0)
    for seed in range(60):
        for key in review_queue(RUN, size=60, seed=seed, store=store):
            counts[key] += 1
    mean, spread = np.mean([*counts.values()]), np.std([*counts.values()])
    assert mean == 15
    assert spread < 1.3 * np.sqrt(60 * 0.25 * 0.75)


def test_labels_correct_the_metric_of_each_side(store):
    assert not pennyweight.agreement(RUN, store=store).metrics
    by_hand = review_queue(RUN, draw="disagreement", size=3, store=store)
    for key in by_hand:
        remark_on_record(store, key, who="Ada", verdict="right", draw="disagreement")
    found = pennyweight.agreement(RUN, store=store)
    assert (found.labelled, found.drawn) == (3, 0)
    assert found.metrics[0].sides == ()
    assert "not drawn at random" in " ".join(people_lines(found))
    keys = review_queue(RUN, size=80, seed=1, store=store)
    for key in keys:
        remark_on_record(store, key, who="Ada", verdict=said(key), draw="random")
    remark_on_record(store, keys[0], who="Bob", verdict="unsure")
    assert answered(RUN, "Bob", store) == {keys[0]: "unsure"}
    found = pennyweight.agreement(RUN, store=store)
    assert (found.people, found.drawn) == (("Ada", "Bob"), 80)
    (metric,) = found.metrics
    assert metric.metric == "accuracy"
    agreed = sum(int(key.task_id[1:]) % 10 > 0 for key in keys) / 80
    assert metric.agreement.share == pytest.approx(agreed)
    for side, tier in zip(metric.sides, TIERS, strict=True):
        assert side.side == tier
        rule = np.array([(t * 7 + (tier == "T1")) % 3 > 0 for t in range(TASKS)], float)
        given = np.full(TASKS, np.nan)
        for key in keys:
            if key.tier == tier:
                given[int(key.task_id[1:])] = said(key) == "right"
        assert side.share == corrected_share(rule, given, np.arange(TASKS), 0.95)
    lines = [*people_lines(found)]
    assert lines[0].startswith("2 people labelled")
    assert any("would halve" in line or "would not halve" in line for line in lines)
    score, at = ("score", RUN, "--store", store.address), ("--format", "json")
    assert "\n".join(lines) in run_command(*score).out
    printed = run_command(*score, *at).json
    jsonschema.validate(printed, SCHEMA)
    assert printed["people"] == [json.loads(json.dumps(found.to_dict()))]
    del printed["people"][0]["metrics"][0]["sides"][0]["share"]["value"]
    with pytest.raises(jsonschema.ValidationError, match="'value' is a required property"):
        jsonschema.validate(printed, SCHEMA)
    assert pennyweight.score(RUN, store=store).people == (found,)
    chosen = (*score, "--where", "tier=T0")
    assert "labelled" not in run_command(*chosen).out
    assert "people" not in run_command(*chosen, *at).json
    written = Path(store.address).with_name("report.md")
    pennyweight.report(RUN, written, store=store)
    assert "## People's verdicts" in written.read_text("utf-8")
    html(pennyweight.report(RUN, store=store)).index("People&#39;s verdicts")
    done = review(store, "--agreement", "--format", "json")
    assert json.loads(done.stdout) == json.loads(json.dumps(found.to_dict()))


def test_the_corrected_metric_is_gated_and_shown_as_the_sentence_says(store, tmp_path):
    """The store has the labels of the test before."""
    found = pennyweight.agreement(RUN, store=store, confidence=0.9)
    shares = [side.share for side in found.metrics[0].sides]
    name = "judge_pass_rate_corrected"
    scores = pennyweight.score(RUN, by="tier", confidence=0.9, store=store)
    for share, tier in zip(shares, TIERS, strict=True):
        e = scores[tier][name]
        assert (e.value, e.low, e.high) == pytest.approx((share.value, *share.interval))
        assert e.value != pytest.approx(share.judged, abs=0.01)
    share, policy = shares[1], tmp_path / "policy.yaml"  # T0 has an error, which may change it
    between = (share.value + share.judged) / 2
    policy.write_text(f"gates:\n  - {{metric: {name}, threshold: {between}}}\n", "utf-8")
    asked = ("--policy", policy, "--where", "tier=T1", "--store", store.address)
    gate = run_command("gate", RUN, *asked, "--format", "json")
    (decided,) = (one for one in gate.json["gates"] if one["metric"] == name)
    assert decided["verdict"] == ("pass" if share.value > share.judged else "fail")
    assert decided["value"] == pytest.approx(share.value)
    assert decided["interval"] == pytest.approx(share.interval)
    close = f"gates:\n  - {{metric: {name}, threshold: {share.value - 0.02}, on: confident}}\n"
    policy.write_text(close, "utf-8")
    printed = run_command("gate", RUN, *asked).out
    assert "both sides" in printed
    assert "Further labels narrow it" in printed
    assert "more attempts" not in printed  # labels would narrow it, attempts would not
    assert name in run_command("score", RUN, "--store", store.address).out
    versus = ("--by", "tier", "--metric", name, "--store", store.address)
    assert "None of the chosen metrics is a mean" in run_command("compare", RUN, *versus).out
    path = tmp_path / "records.jsonl"
    pennyweight.export(RUN, path, store=store)
    again = pennyweight.score(path, by="tier", confidence=0.9)
    assert again["T0"][name].value == pytest.approx(shares[0].value)


def test_nothing_that_is_cached_has_a_correction_by_old_labels(store, tmp_path):
    """The store has the labels of the tests before."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("gates: [{metric: judge_pass_rate_corrected, threshold: 50%}]\n", "utf-8")
    before = gate_state(store, store.find(RUN), policy)
    key = review_queue(RUN, size=1, seed=77, store=store)[0]
    remark_on_record(store, key, who="Eve", verdict="unsure", draw="random")
    assert gate_state(store, store.find(RUN), policy) != before
    whole = compute(store, store.find(RUN))["whole"]
    assert whole["estimates"]["judge_pass_rate_corrected"][0] is None


def test_a_tie_and_doubt_are_no_label():
    key = ("m", "T0", "a", 1)
    one, two = Label(key, "A", "right", ()), Label(key, "B", "wrong", {"random"})
    assert label_frame([one, two])["label"].to_list() == [None]
    assert label_frame([one, two, Label(key, "C", "wrong", ())])["label"].to_list() == [0.0]
    assert label_frame([one, two])["drawn"].to_list() == [True]


def test_a_queue_on_the_terminal(store):
    blind = ("--queue", "random", "--size", 3, "--seed", 9, "--blind", "--as", "Eve")
    done = review(store, *blind, given="r\n\nw\nno\n")
    assert "T0" not in done.stdout
    assert "2 verdicts saved, 2 of 3 records labelled" in done.stderr
    done = review(store, *blind, given="u\n\n")
    assert "3 of 3: task" in done.stdout
    assert "1 of 3: task" not in done.stdout
    assert "3 of 3 records labelled" in done.stderr


def test_verdicts_are_exported(store, tmp_path):
    path = tmp_path / "records.jsonl"
    pennyweight.export(RUN, path, store=store)
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    labelled = [row for row in rows if row["person_verdict"]]
    assert labelled
    assert all("Ada: " in row["person_notes"] or "Eve" in row["person_notes"] for row in labelled)
    before, after = (pennyweight.score(one, store=store) for one in (RUN, path))
    value = [one.groups[0]["accuracy"].value for one in (before, after)]
    assert value[0] == value[1]


def test_labels_from_elsewhere_are_asked_again_in_a_random_queue(store):
    """Else the random sample would lack the records that somebody had a reason to look at."""
    keys = review_queue(RUN, size=40, seed=2, store=store)
    for key in review_queue(RUN, draw="disagreement", size=30, seed=2, store=store):
        remark_on_record(store, key, who="Ida", verdict=said(key), draw="disagreement")
    before = answered(RUN, "Ida", store)
    assert {*before} & {*keys}
    assert not {*answered(RUN, "Ida", store, queue="random")} & {*keys}
    asked = ("--queue", "random", "--size", 40, "--seed", 2, "--blind", "--as", "Ida")
    done = review(store, *asked, given="".join(f"{said(key)[0]}\n\n" for key in keys))
    assert "40 verdicts saved, 40 of 40 records labelled" in done.stderr
    remark_on_record(store, keys[0], who="Ida", verdict=said(keys[0]), draw="disagreement")
    assert {*answered(RUN, "Ida", store, queue="random")} == {*keys}
    more = ("--queue", "disagreement", "--size", 30, "--seed", 2, "--as", "Ida")
    assert "0 verdicts saved, 30 of 30" in review(store, *more).stderr


def test_labels_are_imported_once_and_mistakes_have_lines(tmp_path):
    made = Store(str(tmp_path / "pennyweight.db"))
    settings = {"seed": None, "subjects": ["m"], "tiers": [*TIERS]}
    made.add_run(run(status="done", attempts=80, settings=settings))
    replies = ({"target": "1", "response": f"FINAL_ANSWER: {1 + (i % 3 > 0)}"} for i in range(80))
    made.write(
        [record(f"t{i // 2:03}", tier=TIERS[i % 2], **one) for i, one in enumerate(replies)], []
    )
    lines = [f"t{i:03},T{i % 2},{'right' if i % 4 else 'fail'},Ada,note {i}" for i in range(20)]
    path = tmp_path / "labels.csv"
    path.write_text("task_id,tier,verdict,reviewer,notes\n" + "\n".join(lines), "utf-8-sig")
    bad = tmp_path / "bad.csv"
    bad.write_text("task_id,tier,verdict\nt000,,right\nt001,T1,maybe\nt999,T0,right\n", "utf-8")
    asked = [RUN, "--store", made.address, "--as", "Eve", "--import"]
    failed = CliRunner().invoke(command, [*asked, str(bad)])
    with pytest.raises(InputError) as told:
        raise failed.exception
    assert [one.removeprefix(f"{bad}, line ") for one in told.value.problems] == [
        "2: task 't000' has 2 records; add tier.",
        "3: the verdict is 'maybe'; it must be right, wrong or unsure.",
        f"4: run {RUN} has no record of task 't999'.",
    ]
    assert not pennyweight.agreement(RUN, store=made).labelled
    chosen = review(made, "--import", path)
    assert "20 labels saved.\nThey count as chosen" in chosen.stderr
    assert pennyweight.agreement(RUN, store=made).drawn == 0
    queue = ("--import", path, "--queue", "random")
    assert "20 labels saved.\n" in review(made, *queue).stderr
    assert "0 labels saved, 20 were there already." in review(made, *queue).stderr
    found = pennyweight.agreement(RUN, store=made)
    assert (found.people, found.labelled, found.drawn) == (("Ada",), 20, 20)
    assert pennyweight.score(RUN, store=made).groups[0]["judge_pass_rate_corrected"].value > 0.5
    rows = [{"task_id": "t030", "tier": "T0", "verdict": "right"}]
    (tmp_path / "more.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    assert (
        "1 label saved." in review(made, "--as", "Eve", "--import", tmp_path / "more.jsonl").stderr
    )
    assert pennyweight.agreement(RUN, store=made).people == ("Ada", "Eve")
    (tmp_path / "none.csv").write_text("id,said\na,b\n", "utf-8")
    failed = CliRunner().invoke(command, [*asked, str(tmp_path / "none.csv")])
    assert "line 1: no column task_id or verdict. Columns: id, said." in str(failed.exception)
    made.close()
