"""Report on any sources: scores, charts, comparisons, and the verdicts of a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from pennyweight.api.gate import gate, read_policy
from pennyweight.api.pages.digest import digest
from pennyweight.api.pages.measured_records import SIDE_COLUMNS
from pennyweight.api.score import named_scorers, rescored, scored
from pennyweight.api.sources import Given, resolve, runs_of
from pennyweight.errors import UsageError
from pennyweight.render import files
from pennyweight.render.report import Report
from pennyweight.render.verdict import verdict_view
from pennyweight.render.view import run_facts
from pennyweight.scoring.digest import RecordsDigest
from pennyweight.scoring.pipeline import ScoreRequest, Scoring
from pennyweight.sources.source import Source
from pennyweight.store.store import Store
from pennyweight.suite.narrowing import part_words

if TYPE_CHECKING:
    from pennyweight.api.score import Scorers


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """The files of a report."""

    path: Path
    charts: tuple[Path, ...] = ()
    tables: tuple[Path, ...] = ()


def report(
    source: Given = "latest",
    output: str | Path | None = None,
    *,
    by: str | Sequence[str] = (),
    policy: str | Path | Sequence[str | Path] = (),
    baseline: str | None = None,
    where: Mapping[str, str] | None = None,
    baseline_where: Mapping[str, str] | None = None,
    version: str | None = None,
    title: str | None = None,
    scorers: Scorers = (),
    confidence: float = 0.95,
    store: str | Store | None = None,
) -> Report:
    """Report on any source, and write it to `output` (.html, .md or .pdf) if that is given.

    `by` names the columns whose values stand side by side (default: runs, subjects and tiers).
    A policy is decided on each subject in each tier, exactly as `gate` decides it with the same
    `baseline`, `baseline_where` and `version`. `where` restricts the whole report to some of the
    records, and `scorers` score them now, as in `score`.
    """
    scorers = named_scorers(scorers)
    if not policy and (baseline or baseline_where or version):
        raise UsageError("--baseline, --baseline-where and --version require --policy.")
    columns = [by] if isinstance(by, str) else list(dict.fromkeys(by))
    resolved, _ = rescored(resolve(source, store), [*columns, *(where or ())])
    sources, failed = scored(resolved, scorers, ScoreRequest())
    digested = digest(sources, confidence=confidence, by=columns, where=where)
    verdicts: list[dict[str, Any]] = []
    versus: dict[str, Any] = {"baseline": baseline, "baseline_where": baseline_where}
    versus |= {"scorers": scorers}
    if policy:
        loaded = read_policy(policy, version)
        sides = _told_apart(sources, where or {}) if columns else _groups(digested)
        for side in _sides(sides, where or {}):
            verdict = gate(resolved, loaded, where=side, store=store, **versus)
            verdicts.append({**verdict_view(verdict), "side": " · ".join(side.values())})
    runs = runs_of(sources)
    named = [r.run.suite for r in runs] or [Path(s.origin or s.name).name for s in sources]
    names = list(dict.fromkeys(named))
    chosen = [f"--by {quote(','.join(columns))}"] if columns else []
    chosen += [f"--where {quote(f'{name}={value}')}" for name, value in (where or {}).items()]
    found = Report(
        title or ", ".join(names[:3]) + (" …" if len(names) > 3 else ""),
        digested,
        [run_facts(r.run, r.store.statuses(r.run.id), r.store.spent(r.run.id)) for r in runs],
        " ".join([*dict.fromkeys(s.origin or s.name for s in sources), *chosen]),
        verdicts,
        [words for r in runs if (words := part_words(r.run.settings))],
        failed,
    )
    if output is not None:
        write(found, Path(output))
    return found


def write(
    report: Report, output: Path, *, charts: Path | None = None, tables: Path | None = None
) -> WrittenReport:
    """Write a report, and its charts and tables into folders where those are given."""
    pictures = tuple(files.write_charts(report.digest, charts)) if charts else ()
    files.write_report(report, output, pictures)
    written = tuple(files.write_tables(report.digest, tables)) if tables else ()
    return WrittenReport(output, pictures, written)


def _told_apart(sources: Sequence[Source], where: Mapping[str, str]) -> list[dict[str, Any]]:
    """List the runs, subjects and tiers of records that are grouped by something else."""
    request = ScoreRequest("pass_rate", where=where)
    measured = Scoring.of(sources, request, also=SIDE_COLUMNS).measure(sources)
    sides = measured.frame.select(SIDE_COLUMNS).unique(maintain_order=True)
    return sides.select(n for n in SIDE_COLUMNS if sides[n].n_unique() > 1).to_dicts()


def _groups(digested: RecordsDigest) -> list[dict[str, Any]]:
    return [side["group"] for side in digested["sides"]]


def _sides(apart: Sequence[Mapping[str, Any]], where: Mapping[str, str]) -> list[dict[str, str]]:
    """List the sides to decide on: gates decide on one subject in one tier."""
    groups = [
        {name: str(value) for name, value in side.items() if value is not None} for side in apart
    ]
    sides = [{**g, **where} for g in groups if all(g[n] == where.get(n, g[n]) for n in g)]
    return sides or [dict(where)]
