"""Suites written into a folder of their own."""

import pytest


@pytest.fixture
def write(tmp_path):
    def written(text, name="suite.yaml", **files):
        for file, content in files.items():
            (tmp_path / file.replace("_", ".")).write_text(content, encoding="utf-8")
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return written
