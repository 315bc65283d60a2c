"""What a worker of a subject needs."""

import pytest

from pennyweight.errors import InputError
from pennyweight.suite.loader import load_suite

SUITE = "suite: s\ntasks: [a]\nsubjects: [{model: openai/m, resources: %s}]\n"


def test_resources_are_read_by_the_names_of_ray(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(SUITE % "{cpu: 2, gpu: 0, memory: 100, custom: {disk: 0.5}}")
    (subject,) = load_suite(path).subjects
    assert subject.resources == {"CPU": 2.0, "memory": 100 * 2**20, "disk": 0.5}


def test_unknown_resources_are_refused(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(SUITE % "{cpus: 2, gpu: -1}")
    with pytest.raises(InputError, match=r"(?s)cpu.*gpu|gpu.*cpu"):
        load_suite(path)
