"""Code beside suites: each folder has its own, whatever its modules are called."""

import os
import subprocess
import sys
from functools import partial

import pytest

from pennyweight.engine.execution import model_of, open_suite
from pennyweight.errors import UsageError
from pennyweight.schema.user_code import code_mark, load_function, suite_folder


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "own_helper.py").write_text(f"WHO = {name!r}\n")
        (folder / "own_rules.py").write_text(
            "import own_helper\ndef who(_):\n    return own_helper.WHO\n"
        )
        (folder / "s.yaml").write_text(
            "suite: s\nsubjects: ['python:own_rules:who']\ntasks: [{input: q}]\n"
        )
    yield tmp_path
    for name in ("own_helper", "own_rules"):
        sys.modules.pop(name, None)


def test_modules_of_one_name_stay_apart(folders):
    first = load_function("own_rules:who", folders / "a")
    second = load_function("own_rules:who", folders / "b")
    assert (first(None), second(None)) == ("a", "b")
    assert load_function("own_rules:who", folders / "a") is first


def test_a_function_that_answers_is_found_beside_its_suite(folders):
    found = {}
    for name in ("a", "b"):
        (subject,) = open_suite(folders / name / "s.yaml").subjects
        found[name] = model_of(subject)._function(None)
    assert found == {"a": "a", "b": "b"}


def test_a_name_beside_the_suite_goes_before_an_installed_one(folders):
    (folders / "a" / "colorsys.py").write_text("def mine(_):\n    return 'mine'\n")
    import colorsys

    assert load_function("colorsys:mine", folders / "a")(None) == "mine"
    assert sys.modules["colorsys"] is colorsys, "others still find theirs"
    assert load_function("colorsys:rgb_to_hls", folders / "b") is colorsys.rgb_to_hls


def test_packages_and_where_we_are(folders, monkeypatch):
    package = folders / "a" / "own_pack" / "deep"
    package.mkdir(parents=True)
    (package / "code.py").write_text("def f(_):\n    return 1\n")
    assert load_function("own_pack.deep.code:f", folders / "a")(None) == 1
    monkeypatch.chdir(folders / "b")
    assert load_function("own_rules:who")(None) == "b"
    with suite_folder(folders / "a"):
        assert load_function("own_rules:who")(None) == "a"


def test_what_is_not_there_is_told(folders):
    with pytest.raises(UsageError, match="Module 'no_such' cannot be imported"):
        load_function("no_such:f", folders)
    with pytest.raises(UsageError, match="Did you mean 'who'"):
        load_function("own_rules:whom", folders / "a")


NOTEBOOK = """
exec("def check(a):\\n    return [b for b in a if (lambda c: c in {'x', 'y', 'z'})(b)]")
from pennyweight.schema.user_code import code_mark
print(code_mark(check))
"""


def test_code_without_a_file_has_the_same_mark_in_every_process():
    """As in a notebook; otherwise every task would look changed in the next run."""
    marks = {
        subprocess.run(
            [sys.executable, "-c", NOTEBOOK],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(marks) == 1


class _Callable:
    def __call__(self, response):
        return bool(response)


@pytest.mark.parametrize("check", [_Callable(), _Callable, partial(_Callable, 1)])
def test_whatever_can_be_called_has_the_mark_of_its_file(check):
    assert code_mark(check) == code_mark(test_whatever_can_be_called_has_the_mark_of_its_file)
