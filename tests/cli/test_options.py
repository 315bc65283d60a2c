import pytest

from pennyweight.cli.options import names, numbers, pairs, settings
from pennyweight.errors import UsageError


def test_names_are_split_trimmed_and_taken_once() -> None:
    assert names(("a, b", "", ",", "b,c")) == ["a", "b", "c"]


def test_pairs_keep_what_is_behind_the_first_sign() -> None:
    assert pairs("--map", ("a=b=c", "d = e ", "f=")) == {"a": "b=c", "d": "e", "f": ""}
    for wrong in ("a", "=b", ""):
        with pytest.raises(UsageError, match="NAME=VALUE"):
            pairs("--map", (wrong,))


def test_numbers_may_stand_together() -> None:
    assert numbers("--weight", ("a=1,b=2.5", "c=1e-3")) == {"a": 1, "b": 2.5, "c": 0.001}


def test_settings_have_the_type_of_their_option() -> None:
    found = settings(("bins=5", "pass_weight=1", "positive=7", "grades=A:0.9,B:0.5"))
    assert found == {"bins": 5, "pass_weight": 1.0, "positive": "7", "grades": {"A": 0.9, "B": 0.5}}
    assert isinstance(found["bins"], int)
