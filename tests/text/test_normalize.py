"""The normal form of answers: exact for numbers, and nothing else is taken for one."""

from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennyweight.text.normalize import normalize
from reference import normalize as plain

LONG = "1234567890123456789012345678901234567890"


def normal(*texts):
    return (
        pl.DataFrame({"a": texts}, schema={"a": pl.String})
        .select(normalize(pl.col("a")))["a"]
        .to_list()
    )


@pytest.mark.parametrize(
    "same",
    [
        ["1000", "1,000", "1000.0", "1e3", "+1000", " 1000 ", "1E+3", "001000", "1000.", "10e2"],
        ["0", "-0", "0.0", "+0.000", ".0", "0e9", "-0e-9"],
        ["0.5", ".5", "0.50", "5e-1", "+.5"],
        ["-1234567.25", "-1,234,567.25", "-1234567.250"],
        [LONG, LONG + ".0", LONG[:-3] + "890", LONG + "e0"],
        ["1e400", "10e399", "1" + "0" * 400, "0.1e401"],
        ["1e401", "1" + "0" * 401, "10e400"],
        ["1e-400", "0." + "0" * 399 + "1"],
        ["yes", " YES\n", "Yes"],
    ],
)
def test_the_same_value_has_one_form(same):
    assert len(set(normal(*same))) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("9007199254740993", "9007199254740992"),
        (LONG, LONG[:-1] + "1"),
        ("1e400", "1e401"),
        ("0.1", "0.10000000000000001"),
        ("1,00", "100"),
        ("12 apples", "12"),
        ("1,0000", "10000"),
        ("nan", "0"),
        ("inf", "1e400"),
        ("1e9999999999999999999", "1e9999999999999999998"),
        ("½", "0.5"),
        ("٣", "3"),
        ("- 1", "-1"),
        ("1 000", "1000"),
    ],
)
def test_what_differs_stays_apart(one, other):
    assert len(set(normal(one, other))) == 2


def test_what_is_no_plain_number_stays_text():
    texts = ["nan", "inf", "-inf", "1,00", "12 apples", "1e", "e5", ".", "+", "0x10", "1_000", "$5"]
    assert normal(*texts) == texts


def test_huge_exponents_cost_nothing():
    assert normal("1e999999999999999999", "1e-999999999999999999") == [
        "1e999999999999999999",
        "1e-999999999999999999",
    ]
    assert normal("7e" + "0" * 6000 + "2") == ["700"]
    assert len(normal("3" * 100_000 + ".0")[0]) == 100_000


def test_missing_stays_missing():
    assert normal(None, "a") == [None, "a"]


numberish = st.from_regex(r"\A[+-]?[0-9]{0,6}(,[0-9]{3})?\.?[0-9]{0,4}(e[+-]?[0-9]{1,3})?\Z")


@given(st.lists(numberish | st.text(alphabet="0123456789.,eE+- ", max_size=9), min_size=1))
def test_numbers_agree_with_the_reference(texts):
    assert normal(*texts) == [plain(t) for t in texts]


@given(
    st.lists(st.text(alphabet=st.characters(max_codepoint=0x2FFF, exclude_categories=["Cs", "Cn"])))
)
def test_any_text_agrees_with_the_reference(texts):
    assert normal(*texts) == [plain(t) for t in texts]


@given(st.fractions(), st.integers(-30, 30))
def test_the_form_has_the_value_of_the_number(fraction, power):
    text = f"{fraction.numerator}e{power}"
    assert Fraction(normal(text)[0]) == fraction.numerator * Fraction(10) ** power


@given(numberish)
def test_a_normal_form_is_its_own_normal_form(text):
    (once,) = normal(text)
    assert normal(once) == [once]
