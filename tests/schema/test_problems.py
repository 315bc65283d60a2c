"""Problems of a document and of the files it names."""

import pytest

from pennyweight.schema.problems import MAX_SHOWN_PER_TABLE, DocumentError, Problems


def test_they_are_in_the_order_of_their_places_and_the_document_is_first() -> None:
    problems = Problems("suite.yaml")
    table = problems.within("a.csv", "row")
    table.add(2, "second.")
    table.at(1, "task 'x': ").add(0, "first.")
    problems.add(7, "late.")
    problems.add(0, "whole.")
    assert problems.messages() == [
        "suite.yaml: whole.",
        "suite.yaml, line 7: late.",
        "a.csv, row 1: task 'x': first.",
        "a.csv, row 2: second.",
    ]


def test_a_table_shows_some_and_counts_the_rest() -> None:
    problems = Problems("suite.yaml")
    problems.stop()
    for line in range(1, MAX_SHOWN_PER_TABLE + 4):
        problems.within("a.csv").add(line, "wrong.")
    with pytest.raises(DocumentError) as caught:
        problems.stop()
    assert caught.value.problems[-1] == "a.csv: … and 3 more problems."
    assert caught.value.total == MAX_SHOWN_PER_TABLE + 3
