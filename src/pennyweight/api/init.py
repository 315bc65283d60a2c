"""Create a first suite in a folder, or one from the suite of another tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pennyweight.errors import InputError, NotFoundError, UsageError
from pennyweight.models.first_model import FirstModel
from pennyweight.models.first_model import first_model as first_model  # noqa: PLC0414 - skins use it
from pennyweight.models.published_prices import NotPublishedError, published
from pennyweight.suite.foreign.registry import format_of
from pennyweight.suite.foreign.suite_format import ConvertOptions, ForeignSuite
from pennyweight.suite.loader import load_suite
from pennyweight.suite.starter import first_scenarios, first_suite, suite_schema


@dataclass(frozen=True, slots=True)
class CreatedSuite:
    """The files of a suite that was created."""

    files: tuple[Path, ...]
    suite: Path
    policy: Path | None = None
    """The policy that decides on it, if one was created."""
    model: FirstModel | None = None
    """The model that it measures, and why that one; None for a suite of another tool."""
    tool: str = ""
    """The tool whose suite it was made from."""
    missing: tuple[str, ...] = ()
    """What belongs to the exam and could not be carried over, each with its file and line."""
    left_out: tuple[str, ...] = ()
    """What was not carried over and decides nothing."""
    notes: tuple[str, ...] = ()
    """What is measured differently than by the tool."""
    runs_code: bool = False
    """Whether it runs code of the other suite."""


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
    return CreatedSuite(
        files=_write(folder, contents, force=force),
        suite=folder / "suite.yaml",
        policy=folder / "policy.yaml" if scenarios else None,
        model=first,
    )


def init_from(
    source: str | Path,
    folder: str | Path = ".",
    *,
    model: str | None = None,
    code: bool = False,
    partial: bool = False,
    force: bool = False,
) -> CreatedSuite:
    """Create a suite from a suite or data set of another tool, told by its content.

    Nothing in it is run. `code` carries its code over as commands, which run with the new suite.
    `model` is measured in place of the models that it names. Of several evals in a file, FILE#NAME
    names one. If a part of the exam cannot be carried over, it is an error that names all of them;
    `partial` writes the suite without them: what they decide has no verdict, and every run says so.
    """
    source, folder = Path(source), Path(folder)
    part = None
    if not source.exists() and "#" in source.name:
        name, _, part = str(source).rpartition("#")
        source = Path(name)
    if not source.exists():
        raise NotFoundError(f"{source}: no such file.")
    kind = format_of(source)
    options = ConvertOptions(
        code=code,
        model=model,
        first_model=lambda: first_model().model,
        part=part,
        partial=partial,
        has_price=_has_price,
    )
    foreign = ForeignSuite(source, options)
    contents = {**kind.convert(foreign).files, "suite.schema.json": suite_schema()}
    if foreign.missing and not partial:
        hint = (
            f"Nothing was written, because the suite would not be that of {kind.title}. --partial "
            "writes it without these parts; every run says so, and what they decide has no verdict."
        )
        raise InputError([f"{one}." for one in foreign.missing], hint=hint)
    _check(contents)
    return CreatedSuite(
        files=_write(folder, contents, force=force),
        suite=folder / "suite.yaml",
        tool=kind.title,
        missing=tuple(map(str, foreign.missing)),
        left_out=tuple(map(str, foreign.left)),
        notes=tuple(foreign.notes),
        runs_code=any(name.endswith((".cjs", ".py")) for name in contents),
    )


def _has_price(model: str) -> bool:
    try:
        published(model)
    except NotPublishedError:
        return False
    return True


def _check(contents: Mapping[str, str]) -> None:
    """Load the suite before anything is written; an error is one of the converter."""
    if 'from: "hf:' in contents["suite.yaml"]:
        return  # its tasks would have to be fetched
    with TemporaryDirectory(prefix="pennyweight-") as place:
        for name, text in contents.items():
            (Path(place) / name).write_text(text, encoding="utf-8")
        try:
            load_suite(Path(place) / "suite.yaml")
        except InputError as error:
            found = [text.replace(f"{place}/", "") for text in error.problems]
            hint = "The suite that was made from it cannot be loaded."
            raise InputError(found, hint=hint) from None


def _write(folder: Path, contents: Mapping[str, str], *, force: bool) -> tuple[Path, ...]:
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
    return tuple(folder / name for name in contents)
