"""Files of a difference: headers are told from lines that look like them."""

import difflib

import pytest

from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.behaviour import read_behaviour
from pennyweight.checks.files import changed_files


def diff_of(path, old, new):
    def lines(text):
        return text.splitlines()

    return "\n".join(
        difflib.unified_diff(lines(old), lines(new), f"a/{path}", f"b/{path}", lineterm="")
    )


def verdict(behaviour, diff):
    return read_behaviour(behaviour).verdict(
        AttemptView({"response": "", "work": {"diff": diff}}), {}
    )


@pytest.mark.parametrize("diff", ["", "\n", "nothing of that kind"])
def test_an_agent_that_changed_nothing_made_no_file(diff):
    assert not list(changed_files(diff))
    for check in ({"file_exists": "a.md"}, {"file_contains": {"path": "a.md", "text": "x"}}):
        found = verdict(check, diff)
        assert (found.holds, found.error) == (False, False)


def test_lines_of_a_file_are_no_headers():
    """A removed `-- a/notes.md` reads `--- a/notes.md`; an added `++ b/…` looks alike."""
    old = "-- a/notes.md\nkeep\n-- /dev/null\n"
    new = "++ b/notes.md\nkeep\n++ b/key.pem\n"
    diff = diff_of("plan.sql", old, new) + "\n" + diff_of("other.txt", "a\n", "b\n")
    assert [f.path for f in changed_files(diff)] == ["plan.sql", "other.txt"]
    assert verdict({"file_exists": "notes.md"}, diff).holds is False
    assert verdict({"file_contains": {"path": "plan.sql", "text": "++ b/key.pem"}}, diff).holds


def test_files_of_many_kinds_are_read():
    diff = "\n".join(
        [
            "--- /dev/null", "+++ b/new.txt", "@@ -0,0 +1,2 @@", "+one", "+two",
            "\\ No newline at end of file",
            "--- /dev/null", "+++ b/empty.txt",
            "--- a/gone.txt", "+++ /dev/null", "@@ -1 +0,0 @@", "-x",
            "--- /dev/null", "+++ b/picture.png", "[binary: 0 bytes before, 9 after]",
            "--- /dev/null", "+++ b/long.txt", "@@ -0,0 +1,3 @@", "+one",
            "[… the rest of this file is left out …]",
        ]
    )  # fmt: skip
    found = {f.path: (f.removed, f.whole, f.text) for f in changed_files(diff)}
    assert found == {
        "new.txt": (False, True, "one\ntwo"),
        "empty.txt": (False, True, ""),
        "gone.txt": (True, False, ""),
        "picture.png": (False, False, ""),
        "long.txt": (False, False, "one"),
    }
