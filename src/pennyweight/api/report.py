"""Report on any sources: scores, charts, comparisons, and the verdicts of a policy."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as url_quote

from pennyweight.api.gate import gate, read_policy
from pennyweight.api.pages.digest import digest
from pennyweight.api.pages.measured_records import SIDE_COLUMNS
from pennyweight.api.review import labelled_runs
from pennyweight.api.score import doubtful, named_scorers, rescored, rules, scored
from pennyweight.api.sources import Given, rematched, resolve, runs_of
from pennyweight.errors import UsageError
from pennyweight.record import KEY_IN_RUN, AttemptKey
from pennyweight.render import files
from pennyweight.render.page.people import people_lines
from pennyweight.render.report import RecordPages, Report
from pennyweight.render.verdict import verdict_view
from pennyweight.render.view import run_facts
from pennyweight.scoring.digest import RecordsDigest
from pennyweight.scoring.pipeline import ScoreRequest, Scoring
from pennyweight.sources.source import Source
from pennyweight.store.store import Store
from pennyweight.stored_runs.imported import spent_on
from pennyweight.suite.narrowing import part_words

if TYPE_CHECKING:
    from pennyweight.api.score import Scorers
    from pennyweight.api.static_site.site import WrittenSite


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
    answer: str | None = None,
    match: str | None = None,
    errors: str | None = None,
    map: Mapping[str, str] | None = None,  # noqa: A002
    confidence: float = 0.95,
    store: str | Store | None = None,
) -> Report:
    """Report on any source, and write it to `output` (.html, .md or .pdf) if that is given.

    `by` names the columns whose values stand side by side (default: runs, subjects and tiers).
    A policy is decided on each subject in each tier, exactly as `gate` decides it with `each` and
    the same `baseline`, `baseline_where` and `version`. `where` restricts the whole report to some
    of the records, and `scorers` score them now, as in `score`; so do the rules `answer` and
    `match`. With `errors="failures"`, attempts that ended in an error count as failures. `map`
    says from which columns others are read.
    """
    scorers = named_scorers(scorers)
    if not policy and (baseline or baseline_where or version):
        raise UsageError("--baseline, --baseline-where and --version require --policy.")
    columns = [by] if isinstance(by, str) else list(dict.fromkeys(by))
    again = rules(answer, match)
    given = resolve(source, store)
    resolved, _ = rescored(rematched(given, again), [*columns, *(where or ())])
    sources, failed = scored(resolved, scorers, ScoreRequest(map=map))
    options = {**again, **({"errors": errors} if errors else {})}
    digested = digest(
        sources, confidence=confidence, by=columns, where=where, options=options, map=map
    )
    verdicts: list[dict[str, Any]] = []
    versus: dict[str, Any] = {"baseline": baseline, "baseline_where": baseline_where}
    versus |= {"scorers": scorers, "answer": answer, "match": match, "errors": errors, "map": map}
    if policy:
        loaded = read_policy(policy, version)
        sides = _told_apart(sources, where or {}, map) if columns else _groups(digested)
        decided = list(_sides(sides, where or {}, loaded.across))
        for side in decided:
            verdict = gate(resolved, loaded, where=side, among=len(decided), store=store, **versus)
            verdicts.append({**verdict_view(verdict), "side": " · ".join(side.values())})
    runs = runs_of(sources)
    named = [r.run.suite for r in runs] or [Path(s.origin or s.name).name for s in sources]
    names = list(dict.fromkeys(named))
    chosen = [f"--by {quote(','.join(columns))}"] if columns else []
    chosen += [f"--where {quote(f'{name}={value}')}" for name, value in (where or {}).items()]
    chosen += [f"--confidence {confidence:g}"] * (confidence != 0.95)
    chosen += [f"--map {quote(f'{name}={theirs}')}" for name, theirs in (map or {}).items()]
    rules_ = (("answer", answer), ("match", match), ("errors", errors))
    chosen += [f"--{n} {quote(r)}" for n, r in rules_ if r]
    made = Report(
        title or ", ".join(names[:3]) + (" …" if len(names) > 3 else ""),
        digested,
        [run_facts(r.run, r.store.statuses(r.run.id), spent_on(r.run, r.store)) for r in runs],
        " ".join([*dict.fromkeys(s.origin or s.name for s in sources), *chosen]),
        verdicts,
        [words for r in runs if (words := part_words(r.run.settings))],
        failed,
        people=[
            line
            for one in ([] if where else labelled_runs(sources, confidence))
            for line in people_lines(one)
        ],
        doubts=tuple(doubtful(given, map or {}, answer if digested["headline"] else "")),
    )
    if output is not None:
        write(made, Path(output))
    return made


def write(
    report: Report,
    output: Path,
    *,
    charts: Path | None = None,
    tables: Path | None = None,
    transcripts: WrittenSite | None = None,
) -> WrittenReport:
    """Write a report, and its charts and tables into folders where those are given.

    `transcripts` is the site of its records, to which the report links.
    """
    if transcripts:
        report = replace(report, pages=_pages(transcripts, output))
    pictures = tuple(files.write_charts(report.digest, charts)) if charts else ()
    files.write_report(report, output, pictures)
    written = tuple(files.write_tables(report.digest, tables)) if tables else ()
    return WrittenReport(output, pictures, written)


def transcripts_folder(output: Path) -> Path:
    """Return the folder for the records of a report; a PDF cannot link to it."""
    if output.suffix not in {".html", ".md"}:
        raise UsageError(f"-o {output}: --transcripts needs a report in .html or .md.")
    return output.with_name(f"{output.stem}-records")


def _pages(site: WrittenSite, output: Path) -> RecordPages:
    """Return the links from a report to the pages of its records, as far as they exist."""

    def link(path: Path) -> str | None:
        at = Path(os.path.relpath(path, output.parent)).as_posix()
        return url_quote(at) if path.exists() else None

    def side(wanted: Mapping[str, Any]) -> str | None:
        return link(site.list_page(wanted)) if len(site.runs) == 1 and wanted else None

    def record(row: Mapping[str, Any]) -> str | None:
        if len(site.runs) != 1 or not all(row.get(name) is not None for name in KEY_IN_RUN):
            return None
        return link(site.record_page(AttemptKey.of({**row, "run": site.runs[0].id})))

    runs = [(f"{run.suite} {run.id}", link(site.run_page(run.id)) or "") for run in site.runs]
    return RecordPages(runs, side, record)


def _told_apart(
    sources: Sequence[Source],
    where: Mapping[str, str],
    map: Mapping[str, str] | None,  # noqa: A002
) -> list[dict[str, Any]]:
    """List the runs, subjects and tiers of records that are grouped by something else."""
    request = ScoreRequest("pass_rate", where=where, map=map)
    measured = Scoring.of(sources, request, also=SIDE_COLUMNS).measure(sources)
    sides = measured.frame.select(SIDE_COLUMNS).unique(maintain_order=True)
    return sides.select(n for n in SIDE_COLUMNS if sides[n].n_unique() > 1).to_dicts()


def _groups(digested: RecordsDigest) -> list[dict[str, Any]]:
    return [side["group"] for side in digested["sides"]]


def _sides(
    apart: Sequence[Mapping[str, Any]], where: Mapping[str, str], across: Collection[str]
) -> list[dict[str, str]]:
    """List the sides to decide on: one subject in one tier, or in all that the gates compare."""
    groups: list[dict[str, str]] = []
    for side in apart:
        own = {n: str(v) for n, v in side.items() if v is not None and n not in across}
        if own not in groups:
            groups.append(own)
    sides = [{**g, **where} for g in groups if all(g[n] == where.get(n, g[n]) for n in g)]
    return sides or [dict(where)]
