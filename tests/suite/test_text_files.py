"""Prompts and system texts that are in files of their own."""

import pytest

from pennyweight.schema.problems import DocumentError
from pennyweight.schema.user_code import functions_forbidden
from pennyweight.suite.loader import load_suite
from pennyweight.suite.narrowing import Narrowing
from suite.problems import mistakes

SUITE = """suite: s
tasks: [{input: a, hint: b}]
subjects: [local/m]
system: SYSTEM
tiers:
  T0: {}
  T1: {prompt: prompts/think.md, system: null}
"""


@pytest.fixture
def suite(tmp_path):
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "sys.md").write_text("\ufeffYou are careful.\nBe brief.\n", "utf-8")
    (folder / "think.md").write_text("{{ input }}: {{ hint }}")

    def write(system="prompts/sys.md", text=SUITE):
        path = tmp_path / "suite.yaml"
        path.write_text(text.replace("SYSTEM", system))
        return path

    return write


def test_a_path_that_exists_is_read(suite):
    first, second = load_suite(suite()).tiers
    assert (first.system, first.prompt) == ("You are careful.\nBe brief.\n", "{{ input }}")
    assert (second.system, second.prompt) == (None, "{{ input }}: {{ hint }}")
    chosen = Narrowing.of(set={"tiers.T0.prompt": "prompts/think.md"})
    assert load_suite(suite(), narrowing=chosen).tiers[0].prompt == "{{ input }}: {{ hint }}"


@pytest.mark.parametrize("text", [
    *("/no_think", "Read a/b.", "Write to notes.md", "concise/formal"),
    *("~nobody-of-this-name/x", "请" * 200 + "是/否"),  # no user, and too long for a name
])  # fmt: skip
def test_other_texts_are_texts(text, suite):
    assert load_suite(suite(f"'{text}'")).tiers[0].system == text


@pytest.mark.parametrize("name", ["prompts/system.md", "sys.txt", "careful.j2"])
def test_a_file_that_does_not_exist_is_a_mistake(name, suite):
    (found,) = mistakes(suite(name))
    assert found.startswith(f"suite.yaml, line 4: system: {name}: no such file. A text that ends")


def test_mistakes_in_the_file_have_its_lines(suite, tmp_path):
    (tmp_path / "prompts" / "sys.md").write_text("Hello.\n{{ hnit }}\n")
    (found,) = mistakes(suite())
    assert found.startswith("prompts/sys.md, line 2: system: Variable 'hnit' is not known. Did you")
    (tmp_path / "prompts" / "sys.md").write_text("Hello.\n\n{% if %}\n")
    (found,) = mistakes(suite())
    assert found.startswith("prompts/sys.md, line 3: system: not a valid template")


def test_an_upload_reads_no_file(suite):
    with functions_forbidden(), pytest.raises(DocumentError, match="holds its texts itself"):
        load_suite(suite())


@pytest.mark.parametrize("name", ["secret", "a note.md"])
def test_only_what_an_upload_cannot_name_is_read(name, suite, tmp_path):
    """The run of an upload reads its text once more, and by then nothing forbids files."""
    (tmp_path / "prompts" / name).write_text("The key is 42.")
    path = suite(f"'{tmp_path}/prompts/{name}'", SUITE.partition("tiers:")[0])
    with functions_forbidden():
        assert load_suite(path).tiers[0].system == f"{tmp_path}/prompts/{name}"
    (found,) = mistakes(path)
    assert "is a file, but only a name without spaces that ends in .md, .txt or .j2" in found
