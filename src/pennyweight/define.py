"""Declare measures and metrics: the declaration is the function.

A measure is computed from one record, a metric from many. The function's name is its name; its
positional parameters are the columns, measures or metrics it reads; its keyword-only parameters are
options with their defaults; its docstring is its reference page. The decorator carries only what
code cannot express.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.metadata import EntryPoints, entry_points
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import polars as pl

from pennyweight.errors import DeclarationError, UsageError, unknown
from pennyweight.record import BY_NAME

if TYPE_CHECKING:
    from pennyweight.stats.resample import Interval


Better = Literal["higher", "lower"]
Over = Literal["scored", "all", "tasks"]

STORED = "scores"
"""The family of measures and metrics that stand for what a run stores about each record."""


@dataclass(frozen=True, slots=True, eq=False)
class Declaration:
    """What measures and metrics have in common."""

    name: str
    function: Callable[..., pl.Expr]
    inputs: tuple[str, ...]
    options: Mapping[str, Any]
    summary: str
    details: str
    example: str
    family: str
    unit: str
    spec: str

    def __call__(self, *args: pl.Expr, **options: Any) -> pl.Expr:
        """Call the function with expressions."""
        return self.function(*args, **options)

    @property
    def is_users(self) -> bool:
        """Whether it is code of a user or of another package."""
        package = self.function.__module__.partition(".")[0]
        return package != "pennyweight" and self.family != STORED

    def own(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return this declaration's options: the given values, else their defaults."""
        return {name: options.get(name, default) for name, default in self.options.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Measure(Declaration):
    """A value computed from one record."""

    def expression(self, options: Mapping[str, Any]) -> pl.Expr:
        """Return the expression over the columns of a frame."""
        return self.function(*map(pl.col, self.inputs), **self.own(options)).alias(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Metric(Declaration):
    """A value computed from many records."""

    formula: str
    range: tuple[float | None, float | None] | None
    better: Better | None
    needs: tuple[str, ...]
    over: Over
    interval: Interval | None
    title: str
    """Its name in plain words."""
    parts: tuple[str, ...] = field(default=())
    open_parts: bool = False
    """Whether it also reads the metrics named in its `weights` option."""
    replaceable: bool = False  # by a scorer of its name: then it reads that score of a record
    also: tuple[str, ...] = ()
    """Its other names, as specifications write them; they are known in any case."""
    across: str = ""
    """The column whose values it compares, such as `tier`: a group has to have all of them."""

    @property
    def combined(self) -> bool:
        """Whether it is computed from other metrics."""
        return bool(self.parts) or self.open_parts

    def part_names(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of the metrics it is computed from."""
        named = (self.own(options)["weights"] or ()) if self.open_parts else ()
        return (*self.parts, *named)

    def apply(self, values: Mapping[str, pl.Expr], options: Mapping[str, Any]) -> pl.Expr:
        """Apply the function to named expressions."""
        fixed = [values[name] for name in self.inputs]
        named = {n: values[n] for n in self.part_names(options) if n not in self.inputs}
        return self.function(*fixed, **self.own(options), **named).alias(self.name)

    def mean(self) -> Metric:
        """Return a metric over tasks as the mean of its values, in a column of its name."""
        names = (self.name,)
        return replace(
            self, function=lambda x: x.mean(), inputs=names, needs=names, options={}, over="scored"
        )

    def expression(self, options: Mapping[str, Any]) -> pl.Expr:
        """Return the expression over the columns of a frame; over tasks, for those of one task."""
        names = {*self.inputs, *self.part_names(options)}
        parts = self.part_names(options)
        return self.apply(
            {n: metric_named(n).expression(options) if n in parts else pl.col(n) for n in names},
            options,
        )


D = TypeVar("D", bound=Declaration)

MEASURES: dict[str, Measure] = {}
METRICS: dict[str, Metric] = {}


def measure(*, unit: str = "", spec: str = "") -> Callable[[Callable[..., pl.Expr]], Measure]:
    """Declare a measure: a value computed from one record."""

    def declare(function: Callable[..., pl.Expr]) -> Measure:
        common = _read(function, unit, spec)
        for name in common["inputs"]:
            if name not in BY_NAME and name not in MEASURES:
                _refuse(function, unknown("Column or measure", name, _readable()))
        return _register(MEASURES, Measure(**common))

    return declare


def metric(
    *,
    formula: str,
    unit: str = "",
    range: tuple[float | None, float | None] | None = None,  # noqa: A002
    better: Better | None = None,
    interval: Interval | None = None,
    needs: tuple[str, ...] | None = None,
    over: Over = "scored",
    spec: str = "",
    title: str = "",
    replaceable: bool = False,
    also: tuple[str, ...] = (),
    across: str = "",
) -> Callable[[Callable[..., pl.Expr]], Metric]:
    """Declare a metric: a value computed from many records.

    `range` is the closed range of its values, `better` the good direction. The interval follows
    from the body (a mean, a ratio of sums, a quantile, or a combination of metrics; anything else
    is resampled) unless `interval` sets another method. `needs` lists the inputs without which a
    record is left out (by default all of them). `over="all"` also counts attempts with status
    `error`. With `over="tasks"` the body is the value of one task, computed from its attempts, and
    the metric is the mean over the tasks; its option `n` is then the number of attempts that every
    task has, unless it is set. `title` is its name in plain words, if `name` is jargon; `also`
    lists other names. `across` names a column whose values it compares: gates on it are decided on
    all of them together.
    """

    def declare(function: Callable[..., pl.Expr]) -> Metric:
        common = _read(function, unit, spec)
        parts = tuple(
            n for n in common["inputs"] if n not in BY_NAME and n not in MEASURES and n in METRICS
        )
        for name in common["inputs"]:
            if name not in BY_NAME and name not in MEASURES and name not in METRICS:
                _refuse(function, unknown("Its input", name, [*_readable(), *METRICS]))
        if range and None not in range and not range[0] < range[1]:  # type: ignore[operator]
            _refuse(function, f"Its range {range} is empty.")
        if better not in {None, "higher", "lower"}:
            _refuse(function, f"better={better!r} is neither 'higher' nor 'lower'.")
        own = tuple(n for n in common["inputs"] if n not in parts)
        if needs is not None and not set(needs) <= set(own):
            _refuse(function, f"needs={needs!r} names something that it does not read.")
        kinds = [p.kind for p in inspect.signature(function).parameters.values()]
        return _register(
            METRICS,
            Metric(
                **common,
                formula=formula,
                range=range,
                better=better,
                needs=own if needs is None else needs,
                over=over,
                interval=interval,
                title=title or common["name"].replace("_", " "),
                parts=parts,
                open_parts=inspect.Parameter.VAR_KEYWORD in kinds,
                replaceable=replaceable,
                also=also,
                across=across,
            ),
        )

    return declare


share = partial(metric, unit="share", range=(0, 1), better="higher")
"""Declare a metric that is a share."""
amount = partial(metric, range=(0, None), better="lower")
"""Declare a metric of what an attempt uses: money, time or tokens."""


_all_points = cache(entry_points)  # it reads the metadata of every installed package


def points(group: str) -> EntryPoints:
    """Return what installed packages declare under an entry point."""
    return _all_points().select(group=group)


def load_installed(group: str) -> None:
    """Load what installed packages declare under an entry point, such as `pennyweight.metrics`.

    A package that cannot be loaded is left out with a warning; the others still work.
    """
    for point in points(group):
        try:
            point.load()
        except Exception as error:  # of the package
            reason = f"{type(error).__name__}: {error}"
            text = f"The entry point {point.name} of {group} is left out ({reason})."
            warnings.warn(text, stacklevel=2)


def canonical(name: str) -> str:
    """Return the name under which a metric is declared, given any of its names in any case.

    >>> canonical("sce_v0"), canonical("no_metric")
    ('sce', 'no_metric')
    """
    if name in METRICS:
        return name
    low = name.casefold()
    names = ((one.name, *map(str.casefold, one.also)) for one in METRICS.values())
    return next((every[0] for every in names if low in every), name)


def metric_named(name: str) -> Metric:
    """Return a metric by one of its names."""
    name = canonical(name)
    if name not in METRICS:
        hint = "'pennyweight metrics' lists them all; --scorers FILE.py adds your own."
        raise UsageError(unknown("Metric", name, METRICS, hint))
    return METRICS[name]


def needed_measures(columns: Iterable[str], given: Iterable[str] = ()) -> list[Measure]:
    """List the measures behind these columns, each after those it reads."""
    done: dict[str, Measure] = {}

    def visit(name: str) -> None:
        if name in done or name in given or name not in MEASURES:
            return
        for needed in MEASURES[name].inputs:
            if needed != name:  # a measure that reads its own name reads the record's column
                visit(needed)
        done[name] = MEASURES[name]

    for column in columns:
        visit(column)
    return list(done.values())


def needed_columns(metrics: Iterable[Metric], options: Mapping[str, Any]) -> set[str]:
    """Return the columns and measures that metrics read, directly or through their parts."""
    columns: set[str] = set()
    for one in metrics:
        parts = one.part_names(options)
        columns.update(n for n in one.inputs if n not in parts)
        columns |= needed_columns((metric_named(n) for n in parts), options)
    return columns


def measure_passes(measures: Iterable[Measure], options: Mapping[str, Any]) -> list[list[pl.Expr]]:
    """Arrange measures in as few passes over the records as their dependencies allow."""
    waiting, passes = list(measures), []
    while waiting:
        names = {m.name for m in waiting}
        ready = [m for m in waiting if not (names - {m.name}) & set(m.inputs)]
        passes.append([m.expression(options) for m in ready])
        waiting = [m for m in waiting if m not in ready]
    return passes


def add_measures(frame: pl.LazyFrame, passes: Iterable[Iterable[pl.Expr]]) -> pl.LazyFrame:
    """Add measures to a frame of records."""
    for one in passes:
        frame = frame.with_columns(one)
    return frame


def by_task(
    rows: pl.DataFrame, key: Sequence[str], metrics: Sequence[Metric], options: Mapping[str, Any]
) -> pl.DataFrame:
    """Compute metrics over tasks for each task, and as `name/n` on how many records each rests.

    The columns of `key` identify a task; a task without enough attempts has no value.
    """
    there = {m.name: [pl.col(n).is_not_null() for n in m.needs] for m in metrics}
    used = [
        (pl.all_horizontal(needed).sum() if needed else pl.len()).alias(f"{name}/n")
        for name, needed in there.items()
    ]
    values = [m.expression(options) for m in metrics]
    return rows.group_by(key, maintain_order=True).agg(*values, *used)


def evaluate(what: Metric | Measure, /, **values: Any) -> Any:
    """Compute one metric (or measure) from columns given as lists; for examples and tests.

    Columns that are measures are used as given; options are also passed by name.
    """
    options = {n: values.pop(n) for n in list(values) if n in _all_options(what, values)}
    schema = {n: _POLARS[BY_NAME[n].type] for n in values if n in BY_NAME and n not in MEASURES}
    frame = pl.LazyFrame(values, schema_overrides=schema, strict=False)
    if isinstance(what, Measure):
        needed = needed_measures([what.name], given=set(values) - {what.name})
    else:
        needed = needed_measures(needed_columns([what], options), given=values)
    missing = {n for m in needed for n in m.inputs} | (
        needed_columns([what], options) if isinstance(what, Metric) else set()
    )
    nulls = [
        pl.lit(None, dtype=_POLARS[BY_NAME[n].type]).alias(n)
        for n in sorted(missing - set(values))
        if n in BY_NAME
    ]
    frame = add_measures(frame.with_columns(nulls), measure_passes(needed, options))
    if isinstance(what, Measure):
        return frame.select(what.name).collect()[what.name].to_list()
    if what.over == "tasks":
        rows, key = frame.collect(), ["task_id"]
        least = rows.drop_nulls(what.needs).group_by(key).len()["len"].min()
        return by_task(rows, key, [what], {"n": least, **options})[what.name].mean()
    return frame.select(what.expression(options)).collect().item()


_POLARS: dict[str, Any] = {
    "string": pl.String,
    "integer": pl.Int64,
    "number": pl.Float64,
    "boolean": pl.Boolean,
    "strings": pl.List(pl.String),
    "numbers": pl.List(pl.Float64),
    "time": pl.Float64,
}


def dtype(column: str) -> Any:
    """Return the Polars type of a column of the record."""
    return _POLARS[BY_NAME[column].type]


def _all_options(what: Metric | Measure, values: Mapping[str, Any]) -> set[str]:
    """Return the names of the options that it, its parts and its measures take."""
    names = set(what.options)
    if isinstance(what, Metric):
        for part in what.part_names(values):
            names |= _all_options(metric_named(part), values)
    for one in needed_measures(what.inputs):
        names |= set(one.options)
    return names


def _readable() -> list[str]:
    return [*BY_NAME, *MEASURES]


def _refuse(function: Callable[..., pl.Expr], why: str) -> None:
    place = f"{function.__code__.co_filename}, line {function.__code__.co_firstlineno}"
    raise DeclarationError(f"{function.__name__} ({place}): {why}")


def _read(function: Callable[..., pl.Expr], unit: str, spec: str) -> dict[str, Any]:
    """Read name, inputs, options and documentation from the function."""
    doc = inspect.cleandoc(function.__doc__ or "")
    if not doc:
        _refuse(function, "It has no docstring, which is what 'pennyweight metrics' shows.")
    summary, _, rest = doc.partition("\n")
    details, marker, example = rest.partition(">>> ")
    parameters = inspect.signature(function).parameters.values()
    return {
        "name": function.__name__,
        "function": function,
        "inputs": tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD),
        "options": {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY},
        "summary": summary.strip(),
        "details": details.strip(),
        "example": (marker + example).strip(),
        "family": function.__module__.rpartition(".")[2],
        "unit": unit,
        "spec": spec,
    }


def _register(where: dict[str, D], declaration: D) -> D:
    known = where.get(declaration.name)
    if known and known.family == STORED:  # its values were read before its code was loaded
        known = None
    if known and known.function.__module__ != declaration.function.__module__:
        _refuse(declaration.function, f"Another {type(declaration).__name__.lower()} has its name.")
    where[declaration.name] = declaration
    return declaration
