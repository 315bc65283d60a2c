"""Metrics in plain words."""

from pennyweight.catalogue import METRICS, standard
from pennyweight.render.page.metric_titles import metric_title


def test_titles_are_plain_words_that_differ():
    titles = [METRICS[name].title for name in standard()]
    assert len(set(titles)) == len(titles)
    assert not any("_" in title for title in titles)


def test_a_title_names_the_metric_where_it_hides_it():
    assert str(metric_title("ece")) == "calibration error (ece)"
    assert str(metric_title("accuracy")) == "accuracy"
    assert metric_title("ece").help.endswith("Lower is better.")
    assert str(metric_title("my_own")) == "my own"
