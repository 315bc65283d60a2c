"""Several addresses of one model in a suite."""

import pytest

from pennyweight.engine.execution import model_of, open_suite
from pennyweight.errors import InputError
from pennyweight.models.servers.replicas import ReplicatedModel


def test_a_suite_names_several_addresses(tmp_path):
    path = tmp_path / "s.yaml"
    subject = "{name: m, model: openai/m, base_url: %s}"
    text = "suite: s\ntasks: [a]\nsubjects: [%s]\n"
    path.write_text(text % (subject % "['http://127.0.0.1:1/v1', 'http://127.0.0.1:2/v1']"))
    (found,) = open_suite(path).subjects
    assert (found.base_url, found.more_urls) == (
        "http://127.0.0.1:1/v1",
        ("http://127.0.0.1:2/v1",),
    )
    assert isinstance(model_of(found), ReplicatedModel)
    for wrong in ("['http://127.0.0.1:1/v1', 'ftp://x']", "['dns+http://a/v1', 'http://b/v1']"):
        path.write_text(text % (subject % wrong))
        with pytest.raises(InputError, match="base_url"):
            open_suite(path)
    path.write_text(text % (subject % "'dns+https://a/v1'"))
    with pytest.raises(InputError, match=r"certificates .* Use dns"):
        open_suite(path)
