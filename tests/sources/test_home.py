"""The folder `.pennyweight`: git sees its baselines and nothing else."""

import subprocess

from pennyweight.gates.baseline import FOLDER
from pennyweight.store.connection import create_private_folder


def test_git_sees_baselines_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    create_private_folder(FOLDER)
    home = tmp_path / ".pennyweight"
    (home / "store.db").touch()
    (FOLDER / "main.parquet").touch()
    subprocess.run(["git", "init", "-q"], check=True)
    shown = subprocess.run(
        ["git", "status", "--short", "--untracked-files=all"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert shown.splitlines() == [
        "?? .pennyweight/.gitignore",
        "?? .pennyweight/baselines/main.parquet",
    ]


def test_a_gitignore_of_ones_own_stays(tmp_path):
    home = tmp_path / ".pennyweight"
    home.mkdir()
    (home / ".gitignore").write_text("mine")
    create_private_folder(home / "uploads")
    assert (home / ".gitignore").read_text() == "mine"
