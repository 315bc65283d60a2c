"""A suite as it was chosen: read, checked and planned; an upload by a process of its own.

What others wrote may take for ever to read (a prompt is a small program), so a process with a
limit of time reads it, and the server only waits.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pennyweight.errors import InputError, PennyweightError, UsageError
from pennyweight.schema.tree import TreeError, Written, parse, plain, scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pennyweight.suite.values import Suite

SECONDS = 20
"""Time that reading an upload may take."""
MEMORY = 4_000_000_000
"""Bytes that it may take."""
AT_ONCE = 2
CHOICES = ("subjects", "tiers", "runs", "usd")
_PLACES = threading.BoundedSemaphore(AT_ONCE)


def prepare(order: Mapping[str, Any]) -> dict[str, Any]:
    """Read a suite as it was chosen; give its text, and the plan if it is asked for.

    What stands in the way of a run is an error here too, so that no plan promises one.
    """
    path = Path(order["path"])
    is_json = path.suffix.lower() == ".json"
    text = path.read_bytes().decode("utf-8-sig", "replace")
    choice = {name: value for name, value in (order.get("choice") or {}).items() if value}
    if set(choice) & set(CHOICES):
        tree = _changed(read_tree(text, is_json=is_json), choice)
        text = json.dumps(tree, ensure_ascii=False) if is_json else written(tree)
    if order.get("uploaded"):
        from pennyweight.web.uploads import open_upload  # noqa: PLC0415

        suite = open_upload(path, read_tree(text), text, data=bool(order.get("data")))
    else:
        from pennyweight.engine.execution import open_suite  # noqa: PLC0415

        suite = open_suite(path, text)
    return {"text": text, "plan": _plan(suite) if order.get("plan") else None}


def _plan(suite: Suite) -> dict[str, Any]:
    from pennyweight.engine.execution import model_of  # noqa: PLC0415
    from pennyweight.engine.preflight import check, warnings  # noqa: PLC0415
    from pennyweight.judges.judging import check_judging  # noqa: PLC0415
    from pennyweight.render.plan import facts  # noqa: PLC0415

    check(suite)
    if suite.judge:
        check_judging(suite.judge, suite.limits, suite.prices)
    return {
        **facts(suite),
        "warnings": list(warnings(suite, model_of)),
        "subjects_named": [s.name for s in suite.subjects],
        "tiers_named": [t.name for t in suite.tiers],
    }


def apart(order: Mapping[str, Any]) -> dict[str, Any]:
    """Do what `prepare` does in a process of its own, and not for longer than it may take."""
    with _PLACES:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pennyweight.web.suite_preview"],
                input=json.dumps(order).encode(),
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise UsageError(
                f"Reading this suite took more than {SECONDS} s and was given up. "
                "Are there loops in its prompts?"
            ) from None
    try:
        told: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise UsageError("This suite cannot be read: it takes too much time or memory.") from None
    if "error" in told:
        raise UsageError(told["error"].replace(str(Path(order["path"]).parent), "upload"))
    return told


def _changed(tree: dict[str, Any], choice: Mapping[str, Any]) -> dict[str, Any]:
    """Take of a suite what was chosen."""
    made = dict(tree)
    if wanted := choice.get("subjects"):
        given = tree.get("subjects")
        known = {_subject(s): s for s in given} if isinstance(given, list) else {}
        _known("subject", wanted, known)
        made["subjects"] = [s for name, s in known.items() if name in wanted]
    if wanted := choice.get("tiers"):
        made["tiers"] = _with_bases(tree.get("tiers") or {"T0": {}}, wanted)
    if "runs" in choice:
        made["runs"] = choice["runs"]
    if "usd" in choice:
        limits = tree.get("limits")
        made["limits"] = {**(limits if isinstance(limits, dict) else {}), "usd": choice["usd"]}
    return made


def read_tree(text: str, *, is_json: bool = False) -> dict[str, Any]:
    """Read a suite as it will be read when it is run."""
    try:
        tree = plain(parse(text, is_json=is_json)[0])
    except TreeError as error:
        raise UsageError(f"line {error.line}: {error}") from None
    if not isinstance(tree, dict):
        raise UsageError("This is no suite: it is a mapping with 'suite', 'tasks' and 'subjects'.")
    return tree


def written(tree: Any) -> str:
    """Write YAML that is read as it was: numbers in their own digits, texts as texts."""
    import yaml  # noqa: PLC0415

    class Dumper(yaml.SafeDumper):
        """Writes what `schema.tree` reads, which takes fewer texts for something else."""

    def bare(dumper: yaml.SafeDumper, value: Any) -> Any:
        said = str(value) if isinstance(value, Written) else json.dumps(value)
        return dumper.represent_scalar("tag:yaml.org,2002:str", said)

    def text(dumper: yaml.SafeDumper, value: str) -> Any:
        style = None if scalar(value) is value else "'"
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)

    Dumper.yaml_implicit_resolvers = {}
    for kind in (Written, float, int, bool, type(None)):
        Dumper.add_representer(kind, bare)
    Dumper.add_representer(str, text)
    return yaml.dump(tree, Dumper=Dumper, sort_keys=False, allow_unicode=True)


def _subject(given: Any) -> str:
    if isinstance(given, dict):
        return str(given.get("name") or given.get("model"))
    return str(given)


def _known(what: str, wanted: Iterable[str], known: Iterable[str]) -> None:
    names = list(known)
    missing = [repr(name[:80]) for name in wanted if name not in names]
    if missing:
        raise UsageError(
            f"This suite has no {what} {', '.join(missing)}; it has {', '.join(names)[:400]}."
        )


def _with_bases(tiers: Any, chosen: Iterable[str]) -> dict[str, Any]:
    """Take tiers; one that extends another needs it there."""
    given: dict[str, Any] = tiers if isinstance(tiers, dict) else {}
    _known("tier", chosen, given)
    wanted = set(chosen)
    extended = (given[name] for name in wanted if isinstance(given[name], dict))
    missing = {str(tier["extends"]) for tier in extended if "extends" in tier} - wanted
    if missing:
        raise UsageError(f"Choose {', '.join(sorted(missing))} too: another tier extends it.")
    return {name: tier for name, tier in given.items() if name in wanted}


def main() -> None:
    """Read the order from standard input, and tell what came of it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (2 * SECONDS, 2 * SECONDS))
    order = json.load(sys.stdin)
    try:
        told = prepare(order)
    except InputError as error:
        told = {"error": "\n".join(error.problems)}
    except PennyweightError as error:
        told = {"error": str(error)}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
