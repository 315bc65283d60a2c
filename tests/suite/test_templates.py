"""Templates are filled in as Jinja does it, also where Jinja is not asked."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pennyweight.suite.templates import _JINJA, TemplateError, _plain, always_fits, render

TEXT = st.text(alphabet="ab {}%#\n\r\t\\ü'\"-", max_size=12)
NAMES = st.sampled_from(["input", "context", "x_1", "none", "loop", "range", "self"])
VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
)


@given(
    st.lists(st.tuples(TEXT, NAMES, st.sampled_from(["{{ %s }}", "{{%s}}", "{{\t%s }}"]))),
    TEXT,
    st.dictionaries(NAMES, VALUES | st.lists(st.integers())),
)
def test_as_jinja_does(parts, last, values):
    source = "".join(text + form % name for text, name, form in parts) + last
    assume("{" in source)  # what holds no template is a text, and stays as it is
    try:
        expected = _JINJA.from_string(source).render(values)
    except Exception:
        with pytest.raises(TemplateError):
            render(source, values)
    else:
        assert render(source, values) == expected


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("{{ input }}", True),
        ("Q: {{ input }}\n{{context}}\n", True),
        ("{{ input | upper }}", False),
        ("{% if input %}x{% endif %}", False),
        ("{{ input }} {# a note #}", False),
        ("{{- input }}", False),
        ("{{ range }}", False),
    ],
)
def test_only_what_names_variables_and_nothing_else_is_filled_in_without_it(source, plain):
    assert (_plain(source) is not None) is plain


def test_what_always_fits():
    assert always_fits("{{ input }}", ["input"])
    assert not always_fits("{{ input }}{{ own }}", ["input"])
    assert not always_fits("{{ input[3] }}", ["input"])


def test_a_variable_that_is_not_there():
    with pytest.raises(TemplateError, match=r"'own' is undefined.*{% if own is defined %}"):
        render("{{ own }}", {"input": "x"})
    with pytest.raises(TemplateError, match=r"no attribute 'own'\.$"):
        render("{{ input.own }}", {"input": "x"})
