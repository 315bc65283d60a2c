"""Missing results decide nothing: errors and verdicts that are not there."""

import json
import random

import polars as pl
import pytest

import pennyweight
from pennyweight.api.pages.digest import digest
from pennyweight.api.sources import resolve
from pennyweight.errors import UsageError
from pennyweight.render.comparison import as_table, words
from pennyweight.render.files import write_tables
from pennyweight.render.page.conclusion import conclusion
from pennyweight.render.page.leaderboard import leaderboard
from pennyweight.render.scores import caution_lines
from pennyweight.scoring.comparison import Comparison

TASKS = 150


def attempt(name, task, rng, rate=0.6, fate=None):
    """Make a record of a side; `fate` is what may become of an attempt that does not pass."""
    passed = rng.random() < rate
    row = {"subject": name, "task_id": f"t{task}", "passed": passed, "status": "ok"}
    if not passed and fate and rng.random() < 0.5:
        row |= fate
    return row


ERROR = {"status": "error", "passed": None}
NO_VERDICT = {"passed": None}
TIMEOUT = {"status": "timeout"}


def false_verdicts(fate, sides=("A", "B"), data_sets=60, **asked):
    """Return how often equal sides are told apart, with and without what could change it."""
    shown = alone = 0
    for seed in range(data_sets):
        rng = random.Random(f"{seed} {fate} {sides}")
        fates = {sides[-1]: fate}
        rows = [
            attempt(name, task, rng, fate=fates.get(name))
            for task in range(TASKS)
            for name in sides
        ]
        found = pennyweight.compare(rows, metrics="pass_rate", **asked)
        ranked = found.ranking.sides if found.ranking else ()
        told = [pair.shown(found.level) for pair in found.pairs]
        shown += any(told) or any(side.low > 1 for side in ranked)
        alone += any((pair.p_adjusted or 1) <= found.level for pair in found.pairs)
    return shown / data_sets, alone / data_sets


def test_two_equal_sides_are_not_told_apart_by_failures_that_became_errors():
    shown, alone = false_verdicts(ERROR)
    assert alone > 0.5  # what leaving them out would show
    assert shown <= 0.05


@pytest.mark.parametrize(("fate", "sides"), [(NO_VERDICT, "AB"), (ERROR, "ABC")])
def test_nor_by_verdicts_that_are_missing_nor_among_three(fate, sides):
    shown, _ = false_verdicts(fate, sides=tuple(sides), data_sets=20, all_pairs=True)
    assert shown <= 0.05


def test_timeouts_are_failures_and_not_missing():
    rng = random.Random(5)
    rows = [attempt(name, task, rng, fate=TIMEOUT) for task in range(TASKS) for name in "AB"]
    (found,) = pennyweight.compare(rows, metrics="pass_rate").pairs
    (same,) = pennyweight.compare(
        [row | {"status": "ok"} for row in rows], metrics="pass_rate"
    ).pairs
    assert found == same
    assert found.missing is None


def test_a_difference_that_missing_results_cannot_undo_is_shown():
    rng = random.Random(3)
    rows = [
        row
        for task in range(TASKS)
        for row in (attempt("A", task, rng, 0.9), attempt("B", task, rng, 0.3))
    ]
    rows[1] |= ERROR
    found = pennyweight.compare(rows, metrics="pass_rate")
    (pair,) = found.pairs
    assert pair.shown(0.05)
    assert not pair.errors_decide(0.05)
    assert (pair.missing.a, pair.missing.b, pair.missing.errors) == (0, 1, 1)
    assert pair.missing.low < pair.difference < pair.missing.high
    assert pair.missing.high - pair.missing.low == pytest.approx(1 / TASKS)
    assert "errors decide" not in as_table(found)
    plain = [dict(row) for row in rows if row["status"] == "ok"]
    (alone,) = pennyweight.compare(plain, metrics="pass_rate").pairs
    assert (alone.missing, alone.difference, alone.p) == (None, pair.difference, pair.p)


def undecided_rows():
    """Equal sides; half of what B failed is an error, and what errors cost is known."""
    rng = random.Random(2)
    rows = []
    for task in range(TASKS):
        for name in "AB":
            row = {"cost_usd": 0.02, **attempt(name, task, rng)}
            if name == "B" and not row["passed"] and task % 4:
                row |= {**ERROR, "cost_usd": 0.04}
            rows.append(row)
    return rows


def test_the_sentences_say_that_errors_decide():
    found = pennyweight.compare(undecided_rows())
    text = " ".join(words(found))
    assert text.startswith("No verdict: errors decide. Without them, B passes ")
    lacks = found.pairs[0].missing.b
    assert f"{lacks} results of B are missing. Counted for and against each side," in text
    shown = found.to_dict()["pairs"][0]
    assert shown["errors_decide"] is True
    assert shown["missing"]["bounds"] == [found.pairs[0].missing.low, found.pairs[0].missing.high]
    assert shown["p_adjusted"] < 0.05 < shown["missing"]["p_adjusted"]


def test_a_column_has_the_errors_as_soon_as_one_side_has_some():
    found = pennyweight.compare(undecided_rows())
    errors = found["B"].group.errors
    table = [line.split() for line in as_table(found).splitlines()]
    place = next(n for n, line in enumerate(table) if line[:1] == ["subject"])
    assert table[place][:3] == ["subject", "records", "errors"]
    assert [line[:3] for line in table[place:] if line[:1] in (["A"], ["B"])][:2] == [
        ["A", str(TASKS), "0"],
        ["B", str(TASKS), str(errors)],
    ]
    clean = pennyweight.compare([row for row in undecided_rows() if row["status"] == "ok"])
    assert "errors" not in as_table(clean)


def test_missing_verdicts_are_called_so():
    rows = [row | {"status": "ok"} for row in undecided_rows()]
    found = pennyweight.compare(rows, metrics="pass_rate")
    assert words(found)[0].startswith("No verdict: missing verdicts decide.")


def test_tasks_that_nothing_can_decide_do_not_count_as_missing():
    rows = [
        {"subject": name, "task_id": f"t{task}", "answer": "1" if task % 2 else "2", **target}
        for task in range(20)
        for name in "AB"
        for target in ({"target": "1"} if task < 10 else {},)
    ]
    (pair,) = pennyweight.compare(rows, metrics="accuracy").pairs
    assert (pair.tasks, pair.missing) == (10, None)
    rows[0] |= {"status": "error"}
    (pair,) = pennyweight.compare(rows, metrics="accuracy").pairs
    assert (pair.missing.a, pair.missing.b) == (1, 0)


def test_amounts_count_as_the_least_and_the_largest_that_the_sides_have():
    rows = [
        {"subject": name, "task_id": f"t{task}", "cost_usd": cost + task / 1000, "passed": True}
        for task in range(20)
        for name, cost in (("A", 1.0), ("B", 1.2))
    ]
    rows += [
        {"subject": "B", "task_id": f"u{task}", "status": "error", "cost_usd": 0.0}
        for task in range(20)
    ]
    rows += [
        {"subject": "A", "task_id": f"u{task}", "cost_usd": 1.0, "passed": True}
        for task in range(20)
    ]
    found = pennyweight.compare(rows, metrics="cost_usd_mean")
    (pair,) = found.pairs
    assert pair.difference == pytest.approx(0.2)
    assert (pair.missing.low, pair.missing.high) == (pytest.approx(0.1), pytest.approx(0.2095))
    none = [row for row in rows if row["task_id"][0] == "t" or row["subject"] == "A"]
    (other,) = pennyweight.compare(none, metrics="cost_usd_mean").pairs
    assert other.missing is None  # tasks that one side never tried are left out, and counted


def test_margins_hold_whatever_is_missing():
    rows = [
        {"subject": name, "task_id": f"t{task}", "passed": task % 4 > 0}
        for task in range(400)
        for name in "AB"
    ]
    (sure,) = pennyweight.compare(rows, metrics="pass_rate", margin=0.05).pairs
    assert sure.held.equivalent
    assert sure.held.no_worse
    for row in rows[1:201:2]:
        if row["task_id"][-1] in "13579":
            row.update(ERROR)
    (unsure,) = pennyweight.compare(rows, metrics="pass_rate", margin=0.05).pairs
    assert unsure.missing.b == 50
    assert not unsure.held.equivalent
    assert not unsure.held.no_worse


def test_many_records_on_disk_give_the_same(monkeypatch):
    rows = undecided_rows()
    frame = pl.DataFrame(rows)
    plain = pennyweight.compare(frame).to_dict()
    monkeypatch.setattr("pennyweight.scoring.large.spill.IN_MEMORY", 0)
    assert pennyweight.compare(frame).to_dict() == plain


def test_ranks_stay_open_where_errors_decide():
    rng = random.Random(2)
    rows = [
        attempt(name, task, rng, fate=ERROR if name == "C" else None)
        for task in range(300)
        for name in "ABC"
    ]
    found = pennyweight.compare(rows, metrics="pass_rate")
    assert isinstance(found, Comparison)
    assert [side.low for side in found.ranking.sides] == [1, 1, 1]
    plain = [row for row in rows if row["status"] == "ok"]
    alone = pennyweight.compare(plain, metrics="pass_rate").ranking
    assert alone["A"].low > 1  # what leaving the errors out would show


def board_rows():
    """A passes more often on the tasks that both tried; B has a higher value over all of its."""
    rng = random.Random(4)
    rows = []
    for task in range(100):
        for number in range(3):
            hard = task >= 50
            key = {"task_id": f"t{task:03}", "attempt": number + 1}
            first = {"subject": "A", "passed": rng.random() < (0.7 if hard else 0.98)}
            second = {"subject": "B", "passed": rng.random() < (0.5 if hard else 0.98)}
            if hard and rng.random() < 0.84:
                second |= ERROR
            rows += [{**key, **first}, {**key, **second}]
    return rows


def test_board_headline_and_tables_name_the_same_side(tmp_path):
    found = digest(resolve(board_rows()))
    values = {side["name"]: side["estimates"]["pass_rate"][0] for side in found["sides"]}
    assert values["B"] > values["A"]
    view = leaderboard(found)
    assert [(row.name, row.rank, row.baseline) for row in view.rows] == [
        ("A", "1–2", True),
        ("B", "1–2", False),
    ]
    assert not view.rows[1].gap.shown
    assert view.rows[1].gap.words.startswith("No verdict, because missing results decide")
    said = conclusion(found)
    assert str(said).startswith("No verdict: errors decide. Without them, A is ahead by ")
    errors = found["sides"][1]["errors"]
    assert any(f"{errors} of 300 attempts of B" in note for note in said.notes)
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, board_rows())))
    pennyweight.report(str(path), tmp_path / "report.md")
    write_tables(found, tmp_path / "tables")
    text = (tmp_path / "report.md").read_text()
    assert "No verdict: errors decide." in text
    assert f"| {errors} of 300 |" in text
    assert " & errors " in (tmp_path / "tables" / "leaderboard.tex").read_text()
    assert "errors decide" in (tmp_path / "tables" / "pairs.tex").read_text()
    head, first, *_ = (tmp_path / "tables" / "pairs.csv").read_text().splitlines()
    assert head.endswith("missing_a,missing_b,errors_decide")
    assert first.lower().endswith(f"0,{errors},true")


def test_errors_can_count_as_failures():
    rows = undecided_rows()
    found = pennyweight.compare(rows, errors="failures")
    errors = found["B"].group.errors
    assert errors
    assert found.pairs[0].missing is None
    assert found["B"]["pass_rate"].value == pytest.approx(
        sum(bool(row["passed"]) for row in rows if row["subject"] == "B") / TASKS
    )
    assert "Errors count as failures (--errors failures)." in as_table(found)
    assert found.to_dict()["errors"] == "failures"
    plain = pennyweight.compare(rows)
    assert plain.to_dict()["errors"] == "exclude"
    assert "Errors are left out; --errors failures counts them as failures." in " ".join(
        as_table(plain).split()
    )
    answers = [
        {"task_id": f"t{n}", "target": "4", "answer": "4", **({} if n else {"status": "error"})}
        for n in range(10)
    ]
    scores = pennyweight.score(answers, errors="failures")
    assert scores["accuracy"].value == scores["pass_rate"].value == 0.9
    assert (scores.groups[0].errors, scores["attempt_error_rate"].value) == (1, 0.1)
    assert pennyweight.score(answers)["accuracy"].value == 1.0
    with pytest.raises(UsageError, match="neither exclude nor failures"):
        pennyweight.score(answers, errors="leave")


def test_a_side_of_errors_alone_changes_no_other_interval():
    rng = random.Random("wide")
    rows = [
        attempt(name, t, rng, rate) for t in range(60) for name, rate in (("A", 0.9), ("B", 0.4))
    ]
    broken = [{"subject": "C", "task_id": f"t{t}", **ERROR} for t in range(60)]
    alone, both = (pennyweight.compare(r, metrics="pass_rate") for r in (rows, rows + broken))
    assert both.pair("B", "pass_rate").interval == alone.pair("B", "pass_rate").interval
    assert "pass_rate is one comparison" in " ".join(as_table(both).split())


def test_sides_without_a_common_task_have_the_baseline_ahead():
    rows = [
        {"subject": n, "task_id": f"{n}{t}", "passed": n == "B"} for n in "AB" for t in range(3)
    ]
    found = pennyweight.compare(rows, metrics="pass_rate")
    broken = [{**row, **ERROR} for row in rows if row["subject"] == "B"]
    alone = pennyweight.compare([*rows[:3], *broken], metrics="pass_rate")
    assert (found.leader, alone.leader, alone.pairs) == ("A", "A", ())


def test_errors_alone_can_count_as_failures():
    rows = [{"task_id": f"t{t}", "target": "1", "status": "error"} for t in range(4)]
    (group,) = pennyweight.score(rows, errors="failures").groups
    assert group["accuracy"].value == 0
    rows.append({"task_id": "t9", "target": "1", "reply_text": "1"})
    with pytest.raises(UsageError, match="have targets but no answers"):
        pennyweight.score(rows, errors="failures")


@pytest.mark.parametrize(("broken", "shown"), [(30, False), (3, True)])
def test_a_side_is_cheaper_only_if_it_stays_so_whatever_the_errors_were(tmp_path, broken, shown):
    rows = []
    for t in range(60):
        row = {"task_id": f"t{t}", "cost_usd": 0.01}
        rows.append({**row, "subject": "A", "passed": t % 6 < 4})
        rows.append({**row, "subject": "B", "passed": t % 3 == 0} | (ERROR if t < broken else {}))
    found = pennyweight.compare(rows)
    text = " ".join(words(found))
    assert ("A costs least: $0.015 per pass" in text) is shown
    assert ("instead of $0.015" in text) is shown
    assert ("(missing results decide)" in text) is not shown
    pennyweight.report(rows, str(tmp_path / "r.md"))
    report = (tmp_path / "r.md").read_text("utf-8")
    assert ("as much per pass" in report or "less per pass" in report) is shown


def half_decided(count=40, decided=20):
    """Make records with answers and targets; the first ones also have a verdict."""
    for n in range(count):
        row = {"task_id": f"t{n}", "answer": "a", "target": "a" if n % 4 else "b"}
        yield row | {"passed": n % 3 == 0 if n < decided else None}


def table_of(kind, rows, folder):
    """Return records as a source of some kind."""
    path = folder / f"records.{kind}"
    match kind:
        case "rows":
            return rows
        case "frame":
            return pl.DataFrame(rows)
        case "jsonl":
            path.write_text("\n".join(map(json.dumps, rows)))
        case "csv":
            pl.DataFrame(rows).write_csv(path)
        case "parquet":
            pl.DataFrame(rows).write_parquet(path)
    return path


@pytest.mark.parametrize("kind", ["rows", "frame", "jsonl", "csv", "parquet"])
def test_a_missing_verdict_is_not_made_of_an_answer_where_others_have_one(kind, tmp_path):
    scores = pennyweight.score(table_of(kind, [*half_decided()], tmp_path), metrics="pass_rate")
    (group,) = scores.groups
    rate = group["pass_rate"]
    assert (rate.value, rate.records, rate.skipped) == (0.35, 20, 20)
    said = "20 of 40 records have no verdict and are left out of pass_rate."
    assert said in caution_lines(scores, ["pass_rate"])


@pytest.mark.parametrize("kind", ["rows", "frame", "jsonl", "csv", "parquet"])
def test_answers_decide_where_no_record_has_a_verdict(kind, tmp_path):
    rows = [*half_decided(decided=0)]
    (group,) = pennyweight.score(table_of(kind, rows, tmp_path), metrics="pass_rate").groups
    assert (group["pass_rate"].value, group["pass_rate"].skipped) == (0.75, 0)


def test_a_source_without_verdicts_is_decided_by_answers_beside_one_with_verdicts(tmp_path):
    given, plain = tmp_path / "given.jsonl", tmp_path / "plain.jsonl"
    for path, decided in ((given, 20), (plain, 0)):
        rows = ({**row, "tier": path.stem} for row in half_decided(decided=decided))
        path.write_text("\n".join(map(json.dumps, rows)))
    scores = pennyweight.score([given, plain], by="tier", metrics="pass_rate")
    found = {g.name: (g["pass_rate"].value, g["pass_rate"].skipped) for g in scores.groups}
    assert found == {"tier=given": (0.35, 20), "tier=plain": (0.75, 0)}


@pytest.mark.parametrize("in_memory", [2_000_000, 0])
def test_one_verdict_in_the_last_chunk_decides_for_all_chunks(in_memory, tmp_path, monkeypatch):
    monkeypatch.setattr("pennyweight.sources.chunks.CHUNK", 400)
    monkeypatch.setattr("pennyweight.scoring.large.spill.IN_MEMORY", in_memory)
    rows = [*half_decided(decided=0)]
    rows[-1]["passed"] = True
    path = table_of("jsonl", rows, tmp_path)
    (group,) = pennyweight.score(path, metrics="pass_rate").groups
    assert (group["pass_rate"].records, group["pass_rate"].skipped) == (1, 39)


def test_a_missing_verdict_under_a_mapped_name_stays_missing(tmp_path):
    rows = [{**row, "ok": {"yes": row.pop("passed")}} for row in half_decided()]
    path = table_of("jsonl", rows, tmp_path)
    (group,) = pennyweight.score(path, metrics="pass_rate", map={"passed": "ok.yes"}).groups
    assert (group["pass_rate"].records, group["pass_rate"].skipped) == (20, 20)


def test_a_missing_verdict_stays_missing_on_standard_input_and_in_an_imported_run(
    tmp_path, monkeypatch
):
    path = table_of("jsonl", [*half_decided()], tmp_path)
    store = str(tmp_path / "runs.db")
    made = pennyweight.import_logs(path, store=store)
    with path.open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        sources = "-", made.run_id
        found = [pennyweight.score(one, metrics="pass_rate", store=store) for one in sources]
    assert [one.groups[0]["pass_rate"].skipped for one in found] == [20, 20]


def test_a_report_says_what_errors_count_as(tmp_path):
    rows = [
        {"subject": name, "task_id": f"t{t}", "passed": t % 3 > 0}
        for t in range(30)
        for name in "AB"
    ]
    rows = [
        row | (ERROR if row["subject"] == "B" and row["task_id"] < "t15" else {}) for row in rows
    ]
    texts = {}
    for errors in ("exclude", "failures"):
        path = tmp_path / f"{errors}.md"
        pennyweight.report(rows, str(path), errors=errors, policy=[policy_file(tmp_path)])
        texts[errors] = path.read_text("utf-8")
    failed = sum(row.get("status") == "error" for row in rows)
    said = f"{failed} of 30 attempts of B."
    assert f"Left out because they ended in an error: {said}" in texts["exclude"]
    assert f"Errors count as failures (--errors failures): {said}" in texts["failures"]
    assert "Left out because" not in texts["failures"]
    assert f"including {failed} errors counted as failures" in texts["failures"]  # the verdict on B


def policy_file(folder):
    path = folder / "policy.yaml"
    path.write_text("errors: 90%\nthresholds: {pass_rate: 10%}\n")
    return path


def test_scorers_score_records_without_verdicts():
    rows = [{"task_id": f"t{n}", "answer": "a", "target": "a"} for n in range(4)]

    @pennyweight.scorer
    def is_short(answer):
        return len(answer) < 3

    (group,) = pennyweight.score(rows, scorers=[is_short]).groups
    assert (group["is_short"].value, group["pass_rate"].value) == (1, 1)
