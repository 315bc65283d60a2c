"""SWE-bench: the report of a run, with its predictions and the reports of its instances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pennyweight.errors import InputError
from pennyweight.sources.json_array import loads
from pennyweight.sources.json_lines import json_lines
from pennyweight.sources.log_format import Log, LogFormat, Row
from pennyweight.sources.log_tally import Expectation
from pennyweight.sources.log_values import check, count, items, mapping
from pennyweight.sources.peek import Peek
from pennyweight.text.format import plural

_MAX_REPORT = 256 << 20


def recognise(peek: Peek) -> bool:
    """Whether a file is a report, a file of predictions, or the report of one instance."""
    if peek.has("resolved_ids", "submitted_ids") or peek.has("resolved_ids", "total_instances"):
        return True
    if peek.has("instance_id", "model_patch"):
        return True
    only = next(iter(peek.keys)) if len(peek.keys) == 1 else ""
    return peek.inside(only, "patch_successfully_applied") is not None


def home(path: Path) -> Path:
    """Return the folder of the report, in which `logs` holds those of the instances."""
    above = [one for one in path.parents if one.name == "run_evaluation"]
    return above[0].parent.parent if above else path.parent


def read(log: Log) -> Iterator[Row]:
    """Yield one record an instance: of the reports, else of the instances' own reports."""
    kinds: dict[str, list[Path]] = {"report": [], "predictions": [], "instance": []}
    for path in log.files:
        kinds[_kind(path)].append(path)
    patches = dict(_patches(kinds["predictions"]))
    instances = {path.parent.name: path for path in map(Path.resolve, kinds["instance"])}
    if not kinds["report"] and not instances:
        what = "predictions of SWE-bench without their report"
        raise InputError([f"{log.path}: {what}; run the evaluation, and name its folder."])
    for path in kinds["report"]:
        report = _loaded(path)
        model, _, run = path.stem.partition(".")
        head = {"run": run or path.stem, "subject": model.replace("__", "/")}
        yield from _of_report(report, head, patches, instances, log)
    if not kinds["report"]:
        for name, path in instances.items():
            head = {"run": path.parts[-4], "subject": path.parts[-3].replace("__", "/")}
            one = mapping(_loaded(path).get(name))
            row = {**head, "task_id": name, "status": "ok", "passed": one.get("resolved") is True}
            yield row | _details(name, patches, instances, log)


def _kind(path: Path) -> str:
    peek = Peek.of(path)
    if peek.has("resolved_ids"):
        return "report"
    return "predictions" if peek.has("instance_id") else "instance"


def _loaded(path: Path) -> Mapping[str, Any]:
    if path.stat().st_size > _MAX_REPORT:
        raise InputError([f"{path}: a report of more than {_MAX_REPORT >> 20} MB is not read."])
    found = loads(path.read_bytes())
    if not isinstance(found, dict):
        raise InputError([f"{path}: not a JSON object, or cut off."])
    return found


def _patches(paths: list[Path]) -> Iterator[tuple[str, str | None]]:
    for path in paths:
        if Peek.of(path).head.lstrip().startswith(b"["):
            found = loads(path.read_bytes()) if path.stat().st_size < _MAX_REPORT else None
            rows = items(found)
        else:
            rows = [value for _, value in json_lines(path)]
        for row in map(mapping, rows):
            yield str(row.get("instance_id")), row.get("model_patch")


def _of_report(
    report: Mapping[str, Any], head: Row, patches: Row, instances: Mapping[str, Path], log: Log
) -> Iterator[Row]:
    resolved = set(map(str, items(report.get("resolved_ids"))))
    broken = {
        str(name): kind
        for kind in ("error", "infra_failure", "ambiguous_failure")
        for name in items(report.get(f"{kind}_ids"))
    }
    empty = set(map(str, items(report.get("empty_patch_ids"))))
    unresolved = set(map(str, items(report.get("unresolved_ids"))))
    decided = resolved | unresolved | empty
    submitted = list(map(str, items(report.get("submitted_ids")))) or sorted(decided | set(broken))
    reasons = mapping(report.get("failure_reasons"))
    for name in submitted:
        row: Row = {**head, "task_id": name}
        if name in broken:
            why = reasons.get(name) or f"SWE-bench lists the instance under {broken[name]}_ids."
            row |= {"status": "error", "error": str(why)}
        elif name in decided:
            row |= {"status": "ok", "passed": name in resolved}
        else:
            row |= {"status": "error", "error": "SWE-bench did not evaluate the instance."}
        yield row | _details(name, patches, instances, log)
    if missing := items(report.get("incomplete_ids")):
        log.note(f"{plural(len(missing), 'instance')} without a prediction left out.")
    value, total = count(report.get("resolved_instances")), count(report.get("total_instances"))
    if value is not None:
        log.expect(Expectation("resolved_instances", value, lambda tally: tally.of().passed))
    if value is not None and total:
        log.note(
            f"SWE-bench divides by all {total:,} instances: {value:,} resolved are "
            f"{100 * value / total:.2f} %; the scores here leave out errors and what is missing."
        )


def _details(name: str, patches: Row, instances: Mapping[str, Path], log: Log) -> Row:
    row: Row = {"response": patches.get(name)}
    if log.wants("checks") and name in instances:
        tests = mapping(mapping(_loaded(instances[name]).get(name)).get("tests_status"))
        row["checks"] = [
            check(f"{kind}: {test}", ended == "success")
            for kind, ends in tests.items()
            for ended in ("success", "failure")
            for test in items(mapping(ends).get(ended))
        ] or None
    return row


FORMAT = LogFormat(
    "swe_bench",
    "SWE-bench",
    recognise,
    read,
    home,
    lost="test output, logs of the containers",
)
