import pytest

from pennyweight.errors import DeclarationError, InputError, PennyweightError, UsageError, unknown


def test_every_error_is_the_users_to_mend() -> None:
    for kind in (UsageError, InputError, DeclarationError):
        assert issubclass(kind, PennyweightError)
        assert kind.exit_code == 2


def test_all_problems_are_kept_and_the_first_twenty_told() -> None:
    error = InputError([f"problem {i}" for i in range(1, 31)], hint="Do this.")
    lines = str(error).splitlines()
    assert lines[:20] == [f"problem {i}" for i in range(1, 21)]
    assert lines[20:] == ["… and 10 more problems.", "Do this."]
    assert len(error.problems) == 30


def test_a_total_may_be_larger_than_what_was_kept() -> None:
    assert str(InputError(["a"], total=1234)).splitlines() == ["a", "… and 1,233 more problems."]
    assert str(InputError(["a"])) == "a"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("acuracy", "Metric 'acuracy' is not known. Did you mean 'accuracy'? Look."),
        ("zzz", "Metric 'zzz' is not known. Look."),
        ("", "Metric '' is not known. Look."),
    ],
)
def test_an_unknown_name_comes_with_the_nearest_known(name: str, told: str) -> None:
    assert unknown("Metric", name, ["accuracy", "ece"], "Look.") == told
