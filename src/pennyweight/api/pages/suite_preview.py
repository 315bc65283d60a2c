"""Read, check and plan a suite as a person chose it; an upload in a separate process.

Reading a stranger's suite may take for ever (a prompt is a small program), so a process with
limits of time and memory reads it, by the rules of `suite_rules.py`.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pennyweight.errors import InputError, PennyweightError, UsageError
from pennyweight.schema.tree import TreeError, Written, parse, plain, scalar

if TYPE_CHECKING:
    from pennyweight.suite.values import LoadedSuite

MAX_SECONDS = 20
"""Time that reading an upload may take."""
MAX_BYTES = 4_000_000_000
"""Memory that reading an upload may take."""
_PROCESSES = threading.BoundedSemaphore(2)


@dataclass(frozen=True, slots=True)
class SuiteChoice:
    """A suite as a person wants it run: only some of it, other attempts, a cost limit."""

    suite: str
    """The id of its file."""
    subjects: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    limit: int | None = None
    """Only the first tasks."""
    runs: int | None = None
    usd: float | None = None

    @property
    def options(self) -> dict[str, Any]:
        """What differs from its file, as keywords of `run`, which stores them with the run."""
        return {
            **({"subjects": list(self.subjects)} if self.subjects else {}),
            **({"tiers": list(self.tiers)} if self.tiers else {}),
            **({"limit": self.limit} if self.limit else {}),
            **({"runs": self.runs} if self.runs else {}),
            **({"set": {"limits.usd": self.usd}} if self.usd else {}),
        }


@dataclass(frozen=True, slots=True)
class SuitePreview:
    """A suite as it would be run, with its plan as JSON if it was asked for."""

    path: Path
    text: str
    options: dict[str, Any]
    """What the run changes, as keywords of `run`."""
    plan: dict[str, Any] | None = None


def preview(
    path: Path,
    choice: SuiteChoice,
    *,
    plan: bool = False,
    uploaded: bool = False,
    data: bool = False,
) -> SuitePreview:
    """Read a suite as chosen. What would prevent a run is an error here too.

    Stricter rules hold for an `uploaded` suite; `data` says that a data set lies next to it.
    """
    from pennyweight.suite.narrowing import Narrowing  # noqa: PLC0415

    text = path.read_bytes().decode("utf-8-sig", "replace")
    narrowing = Narrowing.of(**choice.options)
    if uploaded:
        from pennyweight.api.suite_rules import open_upload  # noqa: PLC0415

        suite = open_upload(path, read_tree(text), text, narrowing, data=data)
    else:
        from pennyweight.engine.execution import open_suite  # noqa: PLC0415

        suite = open_suite(path, text, (), narrowing)
    return SuitePreview(path, text, choice.options, _plan(suite) if plan else None)


def _plan(suite: LoadedSuite) -> dict[str, Any]:
    from pennyweight.api.audit import audit_notes  # noqa: PLC0415
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
        "unsound": audit_notes(suite, hint=False),
        "subjects_named": [subject.name for subject in suite.subjects],
        "tiers_named": [tier.name for tier in suite.tiers],
    }


def preview_in_process(
    path: Path, choice: SuiteChoice, *, plan: bool = False, data: bool
) -> SuitePreview:
    """Preview an upload in a process with limits of time and memory."""
    order = {"path": str(path), "choice": asdict(choice), "plan": plan, "data": data}
    with _PROCESSES:
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pennyweight.api.pages.suite_preview"],
                input=json.dumps(order).encode(),
                capture_output=True,
                timeout=MAX_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise UsageError(
                f"Reading this suite took more than {MAX_SECONDS} s, so it was stopped. "
                "Do its prompts contain loops?"
            ) from None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        raise UsageError("This suite cannot be read: it takes too much time or memory.") from None
    if "error" in answer:
        raise UsageError(answer["error"].replace(str(path.parent), "upload"))
    return SuitePreview(path, answer["text"], choice.options, answer["plan"])


def read_tree(text: str, *, is_json: bool = False) -> dict[str, Any]:
    """Parse a suite as a run would."""
    try:
        tree = plain(parse(text, is_json=is_json)[0])
    except TreeError as error:
        raise UsageError(f"line {error.line}: {error}") from None
    if not isinstance(tree, dict):
        raise UsageError("A suite is a mapping with the keys 'suite', 'tasks' and 'subjects'.")
    return tree


def write_tree(tree: Any) -> str:
    """Write YAML that is read back unchanged: numbers in their own digits, texts as texts."""
    import yaml  # noqa: PLC0415

    class TreeDumper(yaml.SafeDumper):
        """Writes what `schema.tree` reads, which quotes fewer texts."""

    def bare(dumper: yaml.SafeDumper, value: Any) -> Any:
        written = str(value) if isinstance(value, Written) else json.dumps(value)
        return dumper.represent_scalar("tag:yaml.org,2002:str", written)

    def text(dumper: yaml.SafeDumper, value: str) -> Any:
        style = None if scalar(value) is value else "'"
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)

    TreeDumper.yaml_implicit_resolvers = {}
    for kind in (Written, float, int, bool, type(None)):
        TreeDumper.add_representer(kind, bare)
    TreeDumper.add_representer(str, text)
    return yaml.dump(tree, Dumper=TreeDumper, sort_keys=False, allow_unicode=True)


def main() -> None:
    """Read the order from standard input, and write the preview to standard output."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415

        resource.setrlimit(resource.RLIMIT_DATA, (MAX_BYTES, MAX_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (2 * MAX_SECONDS, 2 * MAX_SECONDS))
    order = json.load(sys.stdin)
    path, choice = Path(order["path"]), SuiteChoice(**order["choice"])
    try:
        made = preview(path, choice, plan=order["plan"], uploaded=True, data=order["data"])
        answer = {"text": made.text, "plan": made.plan}
    except InputError as error:
        answer = {"error": "\n".join(error.problems)}
    except PennyweightError as error:
        answer = {"error": str(error)}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
