"""What a context supports, by letters, numbers and quotations."""

import pytest

from pennyweight.text.support import Support, overlap, support

CONTEXT = '["The mill on the Tarn opened in 1887 and employed 240 people.", "It burned down."]'


@pytest.mark.parametrize(
    ("answer", "unsupported"),
    [
        ("The mill opened in 1887.", 0),
        ("The mill opened in 1890.", 1),
        ("The mill employed 240 people. It employed 250 people.", 1),
        ('The mill, they write, "opened in 1887".', 0),
        ('The mill "was built by monks" and opened in 1887.', 1),
        ("Quantum chromodynamics explains bananas.", 1),
        ("Yes. No.", 0),
    ],
)
def test_a_sentence_needs_overlap_and_its_numbers_and_quotations(answer, unsupported):
    assert support(CONTEXT, answer).unsupported == unsupported


def test_citations_count_for_the_sentence_they_stand_in():
    answer = "The mill opened in 1887 [1]. It burned down [1]. It employed 240 people."
    assert support(CONTEXT, answer) == Support(3, 0, citations=2, right_citations=1, cited=1)


@pytest.mark.parametrize(
    "answer",
    [
        "The mill opened in 1887.[1] It employed 240 people.[2]",
        "The mill opened in 1887. [1] It employed 240 people. [2]",
        "The mill opened in 1887 [^1]. It employed 240 people 【2】.",
    ],
)
def test_citations_are_known_in_every_common_form(answer):
    context = '["The mill opened in 1887.", "It employed 240 people."]'
    assert support(context, answer) == Support(2, 0, citations=2, right_citations=2, cited=2)


def test_a_range_cites_each_of_its_passages():
    context = '["The mill opened in 1887.", "In 1887 the mill opened."]'
    assert support(context, "The mill opened in 1887 [1-2].").right_citations == 2
    assert support(context, "The mill opened in 1887 [1–999].").citations == 20


def test_a_context_that_is_no_list_of_texts_is_one_passage():
    assert support("[1, 2", "The list is [1, 2").sentences == 1
    assert overlap("", "anything at all") == 0.0
