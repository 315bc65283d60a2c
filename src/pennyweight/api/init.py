"""Create a first suite in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pennyweight.errors import InputError, UsageError
from pennyweight.models.first_model import FirstModel
from pennyweight.models.first_model import first_model as first_model  # noqa: PLC0414 - skins use it
from pennyweight.suite.starter import first_scenarios, first_suite


@dataclass(frozen=True, slots=True)
class CreatedSuite:
    """The files of a suite that was created."""

    files: tuple[Path, ...]
    suite: Path
    policy: Path | None
    """The policy that decides on it, if one was created."""
    model: FirstModel
    """The model that it measures, and why that one."""


def init(
    folder: str | Path = ".",
    *,
    model: str | None = None,
    scenarios: bool = False,
    force: bool = False,
) -> CreatedSuite:
    """Create a suite that runs as it is.

    It measures `model`; without one, what is there: a provider whose key is in the environment,
    else a server on this machine, else the local model. `scenarios` creates scenarios with checks
    and a policy. Existing files are an error unless `force` is set, which replaces them.
    """
    folder = Path(folder)
    first = first_model(model)
    contents = first_scenarios(first.model) if scenarios else first_suite(first.model)
    existing = [folder / name for name in contents if (folder / name).exists()]
    if existing and not force:
        raise InputError([f"{path} already exists." for path in existing],
                         hint="--force replaces existing files.")  # fmt: skip
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in contents.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{error.filename or folder} cannot be written: {error.strerror or error}. "
            "Name another folder: pennyweight init FOLDER."
        ) from error
    return CreatedSuite(
        files=tuple(folder / name for name in contents),
        suite=folder / "suite.yaml",
        policy=folder / "policy.yaml" if scenarios else None,
        model=first,
    )
