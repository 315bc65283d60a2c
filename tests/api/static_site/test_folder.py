"""The folder of a site: it replaces its own files, and touches no others."""

import pytest

from pennyweight.api.static_site.folder import MANIFEST, SiteFolder
from pennyweight.errors import UsageError


def written(folder, **files):
    site = SiteFolder(folder)
    for name, text in files.items():
        site.write(name.replace("__", "/"), text)
    site.finish()
    return site


def held(folder):
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()} - {MANIFEST}


def test_a_second_site_replaces_the_first_and_leaves_other_files(tmp_path):
    folder = tmp_path / "site"
    written(folder, index="a", runs__a="a", runs__b__c="c")
    (folder / "CNAME").write_text("mine")
    (folder / "runs" / "note").write_text("mine")
    again = written(folder, index="b", runs__a="b")
    assert held(folder) == {"index", "runs/a", "CNAME", "runs/note"}
    assert (folder / "index").read_text() == "b"
    assert not (folder / "runs" / "b").exists()
    assert (again.files, again.bytes) == (2, 2)


def test_what_a_crash_leaves_is_removed_by_the_next_site(tmp_path):
    written(tmp_path, index="a", old="a")
    broken = SiteFolder(tmp_path)
    broken.write("runs/new", "n")  # and no finish
    written(tmp_path, index="b")
    assert held(tmp_path) == {"index"}


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="has other files in it"):
        SiteFolder(tmp_path)
    with pytest.raises(UsageError, match="this is a file"):
        SiteFolder(tmp_path / "thesis.txt")


def test_a_file_of_somebody_else_is_not_overwritten(tmp_path):
    written(tmp_path, index="a")
    (tmp_path / "style").write_text("mine")
    with pytest.raises(UsageError, match="style was not written by"):
        written(tmp_path, index="b", style="s")
    assert (tmp_path / "style").read_text() == "mine"


@pytest.mark.parametrize("line", ["../thesis.txt", "/etc/passwd", "a/../../b", "a//b", ".x", ""])
def test_a_list_that_names_files_elsewhere_is_refused(tmp_path, line):
    folder = tmp_path / "site"
    (tmp_path / "thesis.txt").write_text("mine")
    written(folder, index="a")
    (folder / MANIFEST).write_text(f"pennyweight site 1\n{line}\nindex\n")
    with pytest.raises(UsageError, match="does not list a site"):
        SiteFolder(folder)


def test_links_are_not_followed(tmp_path):
    folder, other = tmp_path / "site", tmp_path / "other"
    other.mkdir()
    (other / "a").write_text("mine")
    written(folder, index="a", runs__a="a")
    (folder / "index").unlink()
    (folder / "index").symlink_to(other / "a")
    written(folder, index="b")  # the link itself is replaced
    assert (other / "a").read_text() == "mine"
    (folder / "runs").symlink_to(other)
    with pytest.raises(UsageError, match="is a link"):
        written(folder, index="b", runs__b="a")
    written(folder, index="b")
    assert (other / "a").read_text() == "mine"
    (folder / MANIFEST).unlink()
    (folder / MANIFEST).symlink_to(other / "a")
    with pytest.raises(UsageError, match="does not list a site"):
        SiteFolder(folder)
