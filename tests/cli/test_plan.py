"""`pennyweight plan` as a user meets it."""

import csv
from pathlib import Path

import pytest

import pennyweight as api
from cli.command import pennyweight, refused

RECORDS = Path(__file__).parents[2] / "examples" / "records.jsonl"


def planned(*arguments):
    result = pennyweight("plan", *arguments, "--format", "json")
    assert result.code == 0, result.err
    return result.json


def test_the_cheapest_row_is_marked():
    shown = pennyweight("plan", "--rate", "80%", "--difference", "5%", "--cost-per-attempt", "$1")
    assert shown.code == 0
    (marked,) = [line for line in shown.out.splitlines() if "← cheapest" in line]
    runs, tasks, attempts, cost, *_ = marked.split()
    assert (runs, int(attempts.replace(",", ""))) == ("1", 2 * int(tasks))
    assert cost.startswith("$1,1")
    assert "Assumed: pass_rate 80.0 %" in shown.out


def test_it_is_the_function():
    found = planned(RECORDS, "--difference", "10%", "--runs", "1,4")
    own = api.plan(RECORDS, difference="10%", runs=(1, 4)).to_dict()
    assert {name: found[name] for name in own} == own
    assert found["pilot"] == {"tasks": 12, "attempts": 107}
    assert found["best"] == 1
    low, high = found["rows"][0]["likely"]
    assert low < found["rows"][0]["tasks"] < high
    assert found["rows"][0]["usd"] == pytest.approx(
        found["rows"][0]["attempts"] * found["cost_per_attempt"]
    )


def test_scarce_tasks_are_repeated_until_that_does_not_help():
    found = planned("--rate", "0.8", "--difference", "5%", "--tasks", "300")
    assert found["best"] == 5
    too_few = planned("--rate", "0.8", "--difference", "5%", "--tasks", "100")
    assert too_few["best"] is None
    assert too_few["tasks_with_unlimited_runs"] > 100
    assert "however often each is tried" in too_few["words"][0]


def test_a_cost_is_planned_as_a_ratio():
    ten = planned("--mean", "$0.02", "--sd", "0.02", "--difference", "10%")
    amount = planned("--mean", "$0.02", "--sd", "0.02", "--difference", "$0.002")
    assert ten["rows"] == amount["rows"]
    assert ten["relative"]
    assert "10.0 % less" in ten["words"][0]
    seconds = planned(
        "--metric", "latency_mean_ms", "--mean", "2s", "--sd", "2s", "--difference", "10%"
    )
    assert [row["tasks"] for row in seconds["rows"]] == [row["tasks"] for row in ten["rows"]]


def test_what_is_said_replaces_what_the_pilot_shows():
    found = planned(RECORDS, "--difference", "5%", "--rate", "0.9", "--correlation", "0.2")
    (about,) = found["assumptions"]
    assert (about["mean"], about["correlation"]) == (0.9, 0.2)
    assert about["assumed"] == ["mean", "correlation"]


def test_csv_has_a_row_for_each_number_of_attempts():
    result = pennyweight("plan", "--rate", "0.8", "--width", "4%", "--format", "csv")
    rows = list(csv.DictReader(result.out.splitlines()))
    assert [row["runs"] for row in rows] == ["1", "3", "5", "10"]
    assert int(rows[0]["tasks"]) == int(rows[0]["attempts"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--rate 0.8", "Say what the plan is for"),
        ("--width 4%", "There is no pilot"),
        (
            "--width 4% --difference 5% --rate 0.8",
            "--difference and --width are different",
        ),
        ("--rate 1.2 --width 4%", "--rate 1.2: it must be between 0 and 100 %"),
        ("--rate 1 --width 4%", "does not vary"),
        ("--rate 0.8 --difference 0", "no number of tasks shows a difference this small"),
        ("--rate 0.8 --difference x", "--difference x: it must be an amount such as 5%"),
        ("--rate 0.95 --difference 20%", "two sides around 95.0% differ by at most 10.0%"),
        ("--rate 0.8 --width 4% --runs 0", "--runs 0: it must be from 1"),
        ("--rate 0.8 --width 4% --runs a", "--runs a: it must be whole numbers"),
        ("--rate 0.8 --width 4% --power 20%", "--power 20%: it must be at least 50 %"),
        ("--rate 0.8 --width 4% --task-share 120%", "--task-share 120%"),
        ("--rate 0.8 --width 4% --correlation 3", "--correlation 3"),
        ("--rate 0.8 --width 4% --tasks 1", "--tasks 1: how tasks vary"),
        ("--mean 0.02 --difference 10%", "--mean needs --sd"),
        ("--sd 0.02 --difference 10%", "--sd needs --mean"),
        ("--mean 0.02 --sd 0.02 --rate 0.8 --difference 10%", "--rate and --mean are both given"),
        ("--mean 0.02 --sd -1 --difference 10%", "both must be above 0"),
        ("--metric cost_usd_mean --rate 0.8 --width 4%", "is not a rate: give --mean and --sd"),
        ("--metric acuracy --rate 0.8 --width 4%", "Did you mean 'accuracy'"),
        ("--rate 0.8 --task-share 1 --correlation 1 --difference 5%", "Nothing varies"),
        (f"{RECORDS} --metric latency_p95_ms --difference 5%", "is not a mean over records"),
        (f"{RECORDS} --width 5%", "For example: --where tier=T2"),
        (f"{RECORDS} --width 5% --where tier=T9", "no records with tier=T9"),
        (f"{RECORDS} --width 5% --where stage=1", "no record has the column 'stage'"),
    ],
)
def test_mistakes_are_refused_in_plain_words(arguments, message):
    assert message in " ".join(refused("plan", *arguments.split()).split())


def test_a_policy_needs_as_many_tasks_as_its_hardest_gate(tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "on: confident\nthresholds: {accuracy: 60, cost_usd_mean: '< $0.0012', latency_p95: 5s}\n"
    )
    found = planned(RECORDS, "--where", "tier=T1", "--policy", policy, "--runs", "1,3")
    accuracy, cost, latency = found["gates"]
    assert (accuracy["expected"], cost["expected"], latency["expected"]) == ("pass", "pass", None)
    assert "latency_p95_ms is not a mean" in latency["why"]
    hardest = [max(pair) for pair in zip(accuracy["tasks"], cost["tasks"], strict=True)]
    assert [row["tasks"] for row in found["rows"]] == hardest
    assert found["sides"] == 1
    shown = pennyweight("plan", RECORDS, "--where", "tier=T1", "--policy", policy).out
    assert "Not planned: latency_p95_ms" in shown
    assert "Takes the values of the pilot (12 tasks, 36 attempts) for true" in shown


def test_a_policy_on_values_is_refused():
    policy = RECORDS.parent / "gates" / "release.yaml"
    assert "'on: confident'" in refused("plan", "--rate", "0.8", "--policy", policy)


def test_a_value_at_the_threshold_is_never_decided():
    policy = RECORDS.parent / "gates" / "sure.yaml"
    found = planned("--rate", "65%", "--policy", policy)
    assert found["best"] is None
    assert any("at its threshold" in line for line in found["words"])
