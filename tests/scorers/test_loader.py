"""Scorers are found beside the suite, by name, or in installed packages."""

from importlib import metadata

import pytest

from pennyweight.errors import UsageError
from pennyweight.scorers.loader import find_scorers

FILE = "from pennyweight import scorer\n\n\n@scorer\ndef words(response):\n    return %s\n"


def test_all_scorers_of_a_file_are_meant(tmp_path):
    tmp_path.joinpath("mine.py").write_text(FILE % "len(response.split())")
    (found,) = find_scorers(["mine.py"], tmp_path)
    assert found.score({"response": "a b"}) == {"words": 2.0}


def test_a_file_that_changed_is_loaded_again(tmp_path):
    tmp_path.joinpath("mine.py").write_text(FILE % "1")
    (old,) = find_scorers(["mine.py"], tmp_path)
    tmp_path.joinpath("mine.py").write_text(FILE % "1 + 1")
    (new,) = find_scorers(["mine.py"], tmp_path)
    assert (old("x"), new("x")) == (1, 2)


@pytest.mark.parametrize(
    ("text", "named", "problem"),
    [
        ("", "mine.py", "has no scorer: write @scorer"),
        ("import nothing_like_it", "mine.py", "cannot be imported"),
        (FILE % 1, "other.py", "there is no such file"),
        (FILE % 1, "wrods", "Scorer 'wrods' is not known"),
    ],
)
def test_what_cannot_be_found_is_told(tmp_path, text, named, problem):
    tmp_path.joinpath("mine.py").write_text(text)
    with pytest.raises(UsageError, match=problem):
        find_scorers([named], tmp_path)


def test_two_scorers_of_one_name_are_refused(tmp_path):
    for name in ("one.py", "two.py"):
        tmp_path.joinpath(name).write_text(FILE % 1)
    with pytest.raises(UsageError, match="two scorers are called 'words'"):
        find_scorers(["one.py", "two.py"], tmp_path)


def test_functions_are_scorers_in_python():
    def length(response):
        return len(response)

    (found,) = find_scorers([length])
    assert found.score({"response": "abc"}) == {"length": 3.0}


def test_installed_packages_offer_scorers(tmp_path, monkeypatch):
    tmp_path.joinpath("their_scorers.py").write_text(FILE % "7")
    folder = tmp_path / "their_scorers-1.0.dist-info"
    folder.mkdir()
    folder.joinpath("METADATA").write_text("Name: their-scorers\nVersion: 1.0\n")
    folder.joinpath("entry_points.txt").write_text(
        "[pennyweight.scorers]\nseven = their_scorers:words\ntheirs = their_scorers\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "seven" in metadata.entry_points(group="pennyweight.scorers").names
    for name in ("seven", "words"):
        (found,) = find_scorers([name])
        assert found.score({"response": "x"}) == {"words": 7.0}
