"""Formulas become MathML of known elements and attributes only."""

from xml.etree import ElementTree

import pytest

from pennyweight.render.transcript.maths import FormulaError, mathml


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (r"\frac{1}{2} + \sqrt[3]{x}", "12+x3"),
        (r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "a=bc=d"),
        (r"\begin{cases} 1 & x > 0 \\ 0 & \text{else} \end{cases}", "{1x>00else"),
        (r"\sum_{i=1}^n \left( \frac{a}{b} \right)^i", "∑i=1n(ab)i"),
        (r"\cancel{y} \boxed{7}", "y7"),
        (r"a < b \& c", "a<b&c"),
    ],
)
def test_formulas_are_well_formed_and_complete(formula, text):
    root = ElementTree.fromstring(mathml(formula, display=True))
    assert root.tag == "math"
    assert "".join(root.itertext()).replace("\u2009", "") == text


def test_sizes_stay_small():
    assert "999" not in mathml(r"\hspace{999em} x")
    assert "width" not in mathml(r"\hspace{-9999cm} x")


@pytest.mark.parametrize(
    "formula",
    ["{" * 100 + "}" * 100, "x" * 3_000, "_" * 1_000, r"\left(" * 50, r"\frac{1}", "&" * 5_000],
)
def test_what_cannot_be_read_is_an_error(formula):
    with pytest.raises(FormulaError):
        mathml(formula)
