import pytest

from cli.command import strict_json
from pennyweight.catalogue import MEASURES, METRICS
from pennyweight.define import Metric
from pennyweight.render.catalogue import facts, named, page, render


@pytest.mark.parametrize("name", sorted({*METRICS, *MEASURES}))
def test_the_page_about_a_number_says_what_is_known_of_it(name: str) -> None:
    for one in named(name):
        text = page(one)
        assert text.startswith(f"## `{name}`")
        assert one.summary in text
        assert one.example in text
        assert one.spec in text
        if isinstance(one, Metric):
            assert one.formula in text
            assert f"Interval: {facts(one)['interval']}" in text


def test_a_name_of_both_kinds_gives_both() -> None:
    assert set(strict_json(render("cost_of_pass", "json"))) == {"metric", "measure"}
