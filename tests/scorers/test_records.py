"""Scores of any records: measures with a mean, an interval and shares."""

import polars as pl
import pytest

import pennyweight
from pennyweight.errors import UsageError
from pennyweight.scorers.records import GivenScores, give

ROWS = [
    {"task_id": str(i), "response": "word " * (i % 4 + 1), "target": "a", "answer": "a"}
    for i in range(12)
]


@pennyweight.scorer
def words(response):
    return len(response.split())


@pennyweight.scorer
def size(response):
    return "long" if len(response.split()) > 2 else "short"


@pennyweight.scorer
def same(answer, target) -> bool:
    return answer == target


def test_a_number_becomes_a_mean_with_its_interval():
    found = pennyweight.score(ROWS, scorers=words, metrics=["words"])["words"]
    assert found.value == 2.5
    assert found.low < 2.5 < found.high
    assert (found.records, found.skipped) == (12, 0)


def test_true_and_false_become_a_rate_like_accuracy():
    found = pennyweight.score(ROWS, scorers=[same])
    one, other = found["same"], found["accuracy"]
    assert (one.value, one.low, one.high) == (other.value, other.low, other.high)


def test_labels_become_shares():
    found = pennyweight.score(ROWS, scorers=[size])
    assert found["size.long"].value == found["size.short"].value == 0.5
    assert found["size.long"].low > 0.2


def test_records_can_be_grouped_by_a_label_and_measured_one_by_one(tmp_path):
    found = pennyweight.score(ROWS, scorers=[size, words], by="size", metrics="words")
    assert {g.group["size"]: g["words"].value for g in found.groups} == {"long": 3.5, "short": 1.5}
    pennyweight.score(ROWS, scorers=[words], per_task=tmp_path / "each.parquet")
    frame = pl.read_parquet(tmp_path / "each.parquet")
    assert frame["words"].to_list() == [i % 4 + 1 for i in range(12)]


def test_a_scorer_takes_the_place_of_a_screen():
    @pennyweight.scorer
    def usr_rag(response, context):
        return 0.5 if "floors" in response else None if "cat" in response else False

    said = ["It has 3 floors.", "The mill is old.", "I saw a grey cat."]
    rows = [
        {"task_id": str(i), "context": "The mill is old.", "response": text}
        for i, text in enumerate(said)
    ]
    screen = pennyweight.score(rows)
    assert (screen["usr_rag"].value, screen["usr_rag_scored"].value) == (2 / 3, None)
    both = pennyweight.score(rows, scorers=[usr_rag])
    assert both["usr_rag"].value == (0.5 + 0 + 1) / 3  # the third is the screen's
    assert both["usr_rag_scored"].value == 2 / 3
    given = pennyweight.score(rows[:2], scorers=[usr_rag])
    assert (given["usr_rag"].value, given["usr_rag"].records) == (0.25, 2)
    assert given["usr_rag_scored"].value == 1
    assert pennyweight.score(rows)["usr_rag"].value == 2 / 3  # nothing of it stays


@pytest.mark.parametrize("value", [2, -0.1, "high"])
def test_what_takes_the_place_of_a_share_is_a_share(value):
    def usr_rag(response):
        return value

    found = pennyweight.score(ROWS, scorers=[usr_rag])
    assert "usr_rag is a share from 0 to 1" in found.score_errors["usr_rag"][1]
    assert found["usr_rag"].value is None


def test_an_error_is_no_zero_and_is_counted():
    @pennyweight.scorer
    def fragile(response):
        return 1 / (len(response.split()) - 1)

    found = pennyweight.score(ROWS, scorers=[fragile])
    assert found["fragile"].value == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert (found["fragile"].records, found["fragile"].skipped) == (9, 3)
    assert found.score_errors == {"fragile": (3, "ZeroDivisionError: division by zero")}


def test_records_with_an_error_are_not_scored():
    rows = [*ROWS, {"task_id": "x", "status": "error", "error": "no reply"}]
    found = pennyweight.score(rows, scorers=[words])
    assert found["words"].records == 12
    assert found.score_errors == {}


def test_measures_and_foreign_columns_can_be_read():
    @pennyweight.scorer
    def mine(normalized_answer, correct, mood):
        return {"upper": normalized_answer == "a" and correct, "mood_of": mood}

    rows = [{**row, "answer": " A ", "mood": "calm"} for row in ROWS]
    found = pennyweight.score(rows, scorers=[mine])
    assert found["upper"].value == 1
    assert found["mood_of.calm"].value == 1


def test_a_column_that_no_record_has_is_told():
    @pennyweight.scorer
    def mine(respnse):
        return 1

    with pytest.raises(UsageError, match=r"scorer mine: Column 'respnse' .* mean 'response'"):
        pennyweight.score(ROWS, scorers=[mine])


def test_scores_of_others_do_not_show_up_in_these():
    pennyweight.score(ROWS, scorers=[words])
    assert "words" not in pennyweight.score(ROWS).groups[0].estimates


def test_two_scorers_may_not_give_the_same_score():
    @pennyweight.scorer
    def mine(response):
        return {"words": 5}

    found = pennyweight.score(ROWS, scorers=[words, mine])
    assert "'words' is a score of words too" in found.score_errors["mine"][1]


def test_missing_scores_are_left_out_of_the_json():
    assert GivenScores({"a": None, "b": 1.0}).text == '{"b": 1.0}'
    assert give(words, {"response": None}).error.startswith("AttributeError: ")


def test_what_a_scorer_fails_at_is_seen_in_python_too():
    def kinds(response):
        return {"label": "short"}

    found = pennyweight.score([{"task_id": "a", "response": "x"}], scorers=[kinds])
    told = "failed on 1 record"
    assert told in repr(found)
    assert told in found._repr_html_()
    assert "'label' is the name of a measure" in repr(found)
