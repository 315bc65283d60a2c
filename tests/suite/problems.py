"""The problems of a suite."""

import pytest

from pennyweight.schema.problems import DocumentError
from pennyweight.suite.loader import load_suite

MINIMAL = "suite: s\ntasks: {tasks}\nsubjects: [local/m]\n"


def mistakes(path):
    with pytest.raises(DocumentError) as caught:
        load_suite(path)
    return [p.replace(str(path.parent) + "/", "") for p in caught.value.problems]
