"""Diffs: what `patch` makes of them is what the agent left, and hostile files are bounded."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from pennyweight.agent import diff
from pennyweight.agent import line_diff as lines
from pennyweight.agent.diff import Snapshot, compare


@pytest.fixture
def folders(tmp_path):
    """Make a folder as it was, and give a function that compares it with what was made of it."""
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()

    def compared(change):
        shutil.copytree(before, after, symlinks=True)
        snapshot = Snapshot.of(after)
        change(after)
        return compare(before, snapshot, after)

    return before, compared


def test_nothing_changed_is_nothing(folders):
    before, compared = folders
    (before / "a").write_text("x")
    found = compared(lambda after: (after / "a").write_text("x"))
    assert (found.text, found.added, found.changed, found.removed) == ("", 0, 0, 0)


@pytest.mark.parametrize("seed", range(12))
def test_patch_makes_the_same_of_it(folders, tmp_path, seed):
    rng = random.Random(seed)
    before, compared = folders
    for name in ("a", "b", "c"):
        lines = [f"{rng.randint(0, 5)}\n" for _ in range(rng.randint(1, 60))]
        (before / name).write_text("".join(lines))

    def change(after):
        for name in ("a", "b"):
            lines = (after / name).read_text().splitlines(keepends=True)
            for _ in range(rng.randint(1, 8)):
                at = rng.randrange(len(lines) + 1)
                lines[at : at + rng.randint(0, 3)] = [
                    f"new {i}\n" for i in range(rng.randint(0, 3))
                ]
            (after / name).write_text("".join(lines) or "left\n")
        (after / "c").unlink()
        (after / "d").write_text("brand\nnew\n")

    found = compared(change)
    patch = tmp_path / "patch"
    patch.write_text(found.text + "\n")
    subprocess.run(
        ["patch", "-p1", "-s", "-E", "-i", str(patch)], cwd=before, check=True, text=True
    )
    after = tmp_path / "after"
    names = sorted(p.name for p in after.iterdir())
    assert sorted(p.name for p in before.iterdir()) == names
    assert all((before / n).read_text() == (after / n).read_text() for n in names)


def test_a_change_that_keeps_size_and_time_is_seen(folders):
    before, compared = folders
    (before / "a").write_text("one")

    def change(after):
        kept = (after / "a").stat()
        (after / "a").write_text("two")
        os.utime(after / "a", ns=(kept.st_atime_ns, kept.st_mtime_ns))

    assert compared(change).changed == 1


def test_what_is_not_text_is_named(folders):
    before, compared = folders
    (before / "picture").write_bytes(b"\0\1\2")

    def change(after):
        (after / "picture").write_bytes(b"\0\1\2\3")
        (after / "link").symlink_to("/etc/passwd")
        os.mkfifo(after / "pipe")
        (after / "new\nline").write_text("x\n")
        Path(os.fsdecode(os.fsencode(after) + b"/\xff")).write_text("x\n")
        with (after / "large").open("wb") as file:
            file.truncate(5_000_000_000)

    found = compared(change)
    assert "[binary: 3 bytes before, 4 after]" in found.text
    assert "+[a link to /etc/passwd]" in found.text
    assert "+[a special file]" in found.text
    assert "+[a file of 5,000,000,000 bytes]" in found.text
    assert "+++ b/new\\nline" in found.text
    assert found.added == 5
    found.text.encode()


def test_what_would_take_for_ever_does_not(folders):
    before, compared = folders
    (before / "a").write_text("same\n" * 100_000)
    found = compared(lambda after: (after / "a").write_text("other\n" * 150_000))
    assert len(found.text) <= diff.MAX_DIFF_CHARACTERS + 200
    assert found.text.startswith("--- a/a\n+++ b/a\n@@ -1,100000 +1,150000 @@")


def test_many_files_are_counted_but_not_all_shown(folders):
    _, compared = folders

    def change(after):
        for number in range(300):
            (after / f"{number:03}").write_text("x" * 2000 + "\n")

    found = compared(change)
    assert found.added == 300
    assert len(found.text) <= diff.MAX_DIFF_CHARACTERS + 200
    assert "more files are left out" in found.text


def test_git_s_own_files_are_left_out(folders):
    _, compared = folders

    def change(after):
        (after / ".git").mkdir()
        (after / ".git" / "index").write_text("x")
        (after / ".gitignore").write_text("x\n")

    found = compared(change)
    assert found.added == 1
    assert ".gitignore" in found.text


def test_nothing_is_read_through_a_link(folders, tmp_path):
    before, compared = folders
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "credentials").write_text("TOPSECRET\n")
    (before / "old").symlink_to(secret)
    (before / "config").mkdir()
    (before / "config" / "credentials").write_text("placeholder\n")

    def change(after):
        shutil.rmtree(after / "config")
        (after / "config").symlink_to(secret)
        (after / "old").unlink()
        (after / "old").mkdir()
        (after / "old" / "credentials").write_text("mine\n")

    found = compared(change)
    assert "TOPSECRET" not in found.text
    assert f"+[a link to {secret}]" in found.text
    assert "-placeholder" in found.text
    assert (found.added, found.changed, found.removed) == (2, 0, 2)


def test_a_workspace_that_became_a_link_is_not_followed(folders, tmp_path):
    before, compared = folders
    (before / "a").write_text("x\n")

    def change(after):
        shutil.rmtree(after)
        after.symlink_to("/etc")

    found = compared(change)
    assert found.text == "--- a/.\n+++ b/.\n-[a folder]\n+[a folder that cannot be read]"


def test_a_folder_too_deep_hides_nothing_else(folders):
    before, compared = folders
    (before / "src").mkdir()
    (before / "src" / "kept").write_text("x\n")

    def change(after):
        (after / "src" / "new").write_text("evil\n")
        own = os.open(after, os.O_RDONLY)
        for _ in range(30):
            os.mkdir("d" * 200, dir_fd=own)
            below = os.open("d" * 200, os.O_RDONLY, dir_fd=own)
            os.close(own)
            own = below
        os.close(own)

    found = compared(change)
    assert "+evil" in found.text
    assert "+[a folder that cannot be read]" in found.text
    assert (found.added, found.removed) == (2, 0)


LINES = {
    "alternating": (["x", "y"] * 1000, ["y", "x", "x"] * 650),
    "by chance": tuple([random.Random(s).choice("ab") for _ in range(2000)] for s in (1, 2)),
    "blank between": tuple([f"{w}{i}" if i % 2 else "" for i in range(2000)] for w in "ab"),
    "many": (["x", "y"] * 100_000, ["y", "x", "x"] * 90_000),
    "in another order": (
        [str(i) for i in range(60_000)],
        random.Random(3).sample([str(i) for i in range(60_000)], 60_000),
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_the_work_of_a_comparison_is_bounded(name):
    a, b = LINES[name]
    steps = 0

    class Line(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            nonlocal steps
            steps += 1
            return str.__eq__(self, other)

    found = list(lines.changes([Line(x) for x in a], [Line(x) for x in b], lines.Effort()))
    assert _applied(a, b, found) == b
    assert steps < 2 * lines.MAX_STEPS + 4 * (len(a) + len(b))


def test_few_changes_among_equal_lines_are_found():
    a = ["x"] * 3000
    b = [*a[:1000], "y", *a[1000:2000], "y", *a[2001:]]
    assert list(lines.changes(a, b, lines.Effort())) == [
        (1000, 1000, 1000, 1001),
        (2000, 2001, 2001, 2002),
    ]


@pytest.mark.parametrize("seed", range(300))
def test_changes_make_one_text_of_the_other(seed):
    rng = random.Random(seed)
    most = rng.choice([1, 2, 8])
    a, b = ([str(rng.randint(0, most)) for _ in range(rng.randint(0, 14))] for _ in "ab")
    for effort in (lines.Effort(), lines.Effort(rng.randint(0, 60))):
        assert _applied(a, b, lines.changes(a, b, effort)) == b


def _applied(a, b, found):
    made, at = [], 0
    for i0, i1, j0, j1 in found:
        made += [*a[at:i0], *b[j0:j1]]
        at = i1
    return made + a[at:]
