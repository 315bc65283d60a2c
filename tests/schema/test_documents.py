"""Documents: files of YAML or JSON, and what is said about those that cannot be read."""

from pathlib import Path

import pytest

from pennyweight.schema.documents import read_document
from pennyweight.schema.problems import DocumentError
from pennyweight.schema.tree import plain


def test_yaml_json_and_text(tmp_path: Path) -> None:
    for name, text in (("a.yaml", "a: [1]"), ("a.json", '{"a": [1]}')):
        (tmp_path / name).write_text(text)
        document = read_document(tmp_path / name)
        assert (plain(document.root), document.text) == ({"a": [1]}, text)
    assert plain(read_document(tmp_path / "none.yaml", "b: 2").root) == {"b": 2}


def test_problems_that_do_not_prevent_reading_are_collected(tmp_path: Path) -> None:
    document = read_document("a.yaml", "a: 1\na: 2\n")
    assert document.problems.messages() == ["a.yaml, line 2: the key 'a' is already on line 1."]


def test_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "bytes.yaml").write_bytes(b"a: 1\n\xff")
    (tmp_path / "broken.json").write_text("{\n")
    for name, words in (
        ("bytes.yaml", "line 2: bytes that are not UTF-8."),
        ("broken.json", "line 2: not JSON"),
        ("none.yaml", "no such file or folder.\nCreate it."),
    ):
        with pytest.raises(DocumentError) as caught:
            read_document(tmp_path / name, missing_hint="Create it.")
        assert words in str(caught.value)
