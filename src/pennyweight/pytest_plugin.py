"""Suites as tests: one for each task or, with a policy, one for each of its gates.

    @pytest.mark.pennyweight(suite="support.yaml", policy="release.yaml")
    def test_support(pennyweight):
        pennyweight.check()

A policy may allow some tasks to fail, so it alone decides; `--pennyweight-each-task` adds a test
for each task. The tasks that pytest selected run together before the first of their tests; with
xdist, one worker runs them for all. Nothing heavy is imported before that.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from pennyweight.gates.verdict import Verdict

MARKER = (
    "pennyweight(suite, policy=None, baseline=None, where=None, version=None): "
    "run a suite as tests."
)
EACH_TASK = "--pennyweight-each-task"
POLL_SECONDS = 0.1
MAX_LISTED = 10
"""How many scenarios of a failed gate are listed."""
_CASES = pytest.StashKey[dict[str, Any]]()
_PROBLEMS = pytest.StashKey[dict[str, dict[str, str]]]()


@dataclass(frozen=True)
class Case:
    """One test: a scenario of a suite, or a gate of its policy."""

    suite: Path
    name: str
    gate: bool = False
    subject: str = ""
    tier: str = ""
    settings: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Outcome:
    """The value of the fixture: whether the scenario or gate passed, and why."""

    name: str
    passed: bool
    why: str
    records: tuple[dict[str, Any], ...] = ()
    """The attempts of a scenario, with their measures."""

    def check(self) -> None:
        """Fail the test unless it passed."""
        __tracebackhide__ = True
        if not self.passed:
            pytest.fail(f"{self.name}: {self.why}", pytrace=False)

    def __bool__(self) -> bool:
        return self.passed


class InconclusiveError(pytest.fail.Exception):  # type: ignore[name-defined,misc]
    """Nothing could be decided: the test is an error, neither passed nor failed."""

    def __init__(self, why: str) -> None:
        super().__init__(f"inconclusive: {why}", pytrace=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("pennyweight").addoption(
        EACH_TASK,
        action="store_true",
        help="make a test for each task of a suite with a policy, too",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", MARKER)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test for each task, or for each gate of the policy."""
    marker = metafunc.definition.get_closest_marker("pennyweight")
    if marker is None:
        return
    from pennyweight.errors import PennyweightError  # noqa: PLC0415

    function = metafunc.definition
    try:
        each = metafunc.config.getoption(EACH_TASK)
        cases = _cases(marker, function.path.parent, each_task=each)
    except PennyweightError as error:  # raised here, pytest would show a traceback
        problems = metafunc.config.stash.setdefault(_PROBLEMS, {})
        problems.setdefault(str(function.path), {})[function.name] = str(error)
        metafunc.parametrize("pennyweight", [], indirect=True)
        return
    if "pennyweight" not in metafunc.fixturenames:
        metafunc.fixturenames.append("pennyweight")
    ids = [_id(case, cases) for case in cases]
    metafunc.parametrize("pennyweight", cases, indirect=True, ids=ids, scope="function")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Report mistakes in suites and marks as collection errors."""
    report = yield
    problems = collector.config.stash.get(_PROBLEMS, {})
    mistakes = problems.pop(str(collector.path), {}) if report.passed and report.result else {}
    if not mistakes:
        return report
    text = "\n".join(f"{name}: {problem}" for name, problem in mistakes.items())
    return pytest.CollectReport(collector.nodeid, "failed", text, [])


def _cases(mark: pytest.Mark, folder: Path, *, each_task: bool) -> list[Case]:
    """Read the suite and its policy: a case for each gate, or for each task."""
    from pennyweight.api.gate import read_policy  # noqa: PLC0415
    from pennyweight.api.run import open_suite  # noqa: PLC0415
    from pennyweight.errors import UsageError  # noqa: PLC0415

    options = dict(mark.kwargs)
    known = {"suite", "policy", "baseline", "where", "version"}
    if mark.args or "suite" not in options or not set(options) <= known:
        raise UsageError(f"The mark is written as {MARKER}")
    path = _find(options.pop("suite"), folder)
    policies = options.pop("policy", None) or ()
    policies = [policies] if isinstance(policies, str | Path) else list(policies)
    settings = {**options, "policies": [str(_find(p, folder)) for p in policies]}
    suite = open_suite(path)
    cases = [
        Case(path, task.id, subject=subject.name, tier=tier.name, settings=settings)
        for task in suite.tasks
        for subject in suite.subjects
        for tier in suite.tiers
    ]
    if not policies:
        return cases
    gates = read_policy(settings["policies"], options.get("version")).gates
    names = [*(gate.name for gate in gates), "verdict"]
    decided = [Case(path, name, gate=True, settings=settings) for name in names]
    return cases + decided if each_task else decided


def _find(name: str | Path, folder: Path) -> Path:
    """Find a file in the folder of the test, or where pytest was started."""
    path = folder / name
    return path.resolve() if path.exists() else Path(name).resolve()


def _id(case: Case, cases: list[Case]) -> str:
    if case.gate:
        return f"gate:{case.name}"
    sides = {(c.subject, c.tier) for c in cases if not c.gate}
    return case.name if len(sides) == 1 else f"{case.name}-{case.subject}-{case.tier}"


def _implicit(item: pytest.Function) -> bool:
    """Whether a test has the mark, but does not take the fixture as an argument."""
    marked = item.get_closest_marker("pennyweight") is not None
    return marked and "pennyweight" not in inspect.signature(item.function).parameters


def pytest_itemcollected(item: pytest.Item) -> None:
    """Request the fixture for a test that does not take it as an argument."""
    if (
        isinstance(item, pytest.Function)
        and _implicit(item)
        and "pennyweight" not in item.fixturenames
    ):
        item.fixturenames.append("pennyweight")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Check the outcome of a test that does not take the fixture as an argument."""
    result = yield
    if _implicit(pyfuncitem):
        outcome = pyfuncitem.funcargs["pennyweight"]
        assert isinstance(outcome, Outcome)
        outcome.check()
    return result


@pytest.fixture
def pennyweight(request: pytest.FixtureRequest) -> Outcome:
    """The outcome of the scenario or gate that this test is about."""
    case = getattr(request, "param", None)
    if not isinstance(case, Case):
        raise pytest.UsageError(f"The fixture 'pennyweight' requires the mark {MARKER}")
    made = _run(case, request)
    run, store = made["run"], made["store"]
    cached = request.config.stash.setdefault(_CASES, {})
    if case.gate:
        return _gate(case, run, store, cached)
    outcome = _scenario(case, run, store, cached)
    if outcome.passed and len(outcome.records) < int(made["runs"]):
        text = f"{len(outcome.records)} of {made['runs']} attempts were made"
        raise InconclusiveError(": ".join(filter(None, (text, made["exhausted"]))))
    return outcome


def _scenario(case: Case, run: str, address: str, cached: dict[str, Any]) -> Outcome:
    from pennyweight.api.score import measured_rows  # noqa: PLC0415

    key = f"rows {run}"
    if key not in cached:
        cached[key] = measured_rows(run, _COLUMNS, store=address)
    side = case.name, case.subject, case.tier
    rows = [r for r in cached[key] if (r["task_id"], r["subject"], r["tier"]) == side]
    why = "; ".join(f"attempt {r['attempt']}: {_why(r)}" for r in rows if not _passed(r))
    if any(_passed(row) is False for row in rows):
        return Outcome(case.name, passed=False, why=why, records=tuple(rows))
    if why or not rows:
        raise InconclusiveError(why or f"{case.name} was not tried")
    return Outcome(case.name, passed=True, why="passed", records=tuple(rows))


def _passed(row: dict[str, Any]) -> bool | None:
    """Whether an attempt passed; None if undecided."""
    if row["status"] == "error" or (row["passed"] is None and row["status"] in {None, "ok"}):
        return None
    return bool(row["passed"])


def _why(row: dict[str, Any]) -> str:
    """Return why an attempt did not pass."""
    observed = row["observed_behaviors"] or ()
    missing = [b for b in row["expected_behaviors"] or () if b not in observed]
    if row["status"] == "error":
        return f"could not be made: {row['error']}"
    lists = {"violated": row["violated"], "undecided": row["undecided"], "not observed": missing}
    for title, behaviors in lists.items():
        if behaviors:
            return f"{title}: {', '.join(behaviors)}"
    if row["status"] not in {None, "ok"}:
        return f"ended by {row['status']}"
    if row["target"] is not None:
        return f"the answer is {row['answer']!r}, not {row['target']!r}"
    return "did not pass" if row["passed"] is False else "has no verdict"


_COLUMNS = (
    "task_id", "subject", "tier", "attempt", "status", "error", "passed", "scenario_score",
    "expected_behaviors", "observed_behaviors", "violated", "undecided", "answer", "target",
    "response", "latency_ms", "cost_usd",
)  # fmt: skip


def _gate(case: Case, run: str, address: str, cached: dict[str, Any]) -> Outcome:
    key = f"verdict {run} {json.dumps(case.settings, sort_keys=True, default=str)}"
    if key not in cached:
        cached[key] = _verdict(case, run, address)
    verdict: Verdict = cached[key]
    if case.name == "verdict":
        word, level = verdict.verdict, "blocking"
        why = " ".join(f"{g.name}: {g.why}" for g in verdict.deciding) or "passed"
    else:
        gate = next(g for g in verdict.gates if g.name == case.name)
        word, level = gate.verdict, gate.level
        why = gate.why + "".join(f"\n  {one.id}: {one.why}" for one in gate.scenarios[:MAX_LISTED])
        more = len(gate.scenarios) - MAX_LISTED
        why += f"\n  … and {more:,} more" if more > 0 else ""
    if level == "warning" and word != "pass":
        warnings.warn(pytest.PytestWarning(f"{case.name}: {why}"), stacklevel=2)
        return Outcome(case.name, passed=True, why=why)
    if word == "inconclusive":
        raise InconclusiveError(why)
    return Outcome(case.name, passed=word == "pass", why=why)


def _verdict(case: Case, run: str, address: str) -> Verdict:
    from pennyweight.api.gate import gate  # noqa: PLC0415

    options = dict(case.settings)
    return gate(run, options.pop("policies"), store=address, **options)


def _run(case: Case, request: pytest.FixtureRequest) -> dict[str, str]:
    """Run the selected scenarios of a suite once for all workers; see `_made`."""
    base = request.getfixturevalue("tmp_path_factory").getbasetemp()
    if request.config.pluginmanager.hasplugin("xdist"):
        is_worker = request.getfixturevalue("worker_id") != "master"
        base = base.parent if is_worker else base
    tasks = _selected(case, request.session.items)
    key = hashlib.blake2b(str(case.suite).encode(), digest_size=8).hexdigest()
    made = once(base / f"pennyweight-{key}", lambda: _made(case.suite, tasks))
    if "error" in made:
        raise InconclusiveError(made["error"])
    return made


def _selected(case: Case, items: list[pytest.Item]) -> set[str] | None:
    """Return the scenarios whose tests are selected; None for all, as gates require."""
    specs = (getattr(item, "callspec", None) for item in items)  # not every test has parameters
    marked = [spec.params.get("pennyweight") for spec in specs if spec]
    cases = [c for c in marked if isinstance(c, Case) and c.suite == case.suite]
    return None if any(c.gate for c in cases) else {c.name for c in cases}


def once(place: Path, make: Callable[[], dict[str, str]]) -> dict[str, str]:
    """Call `make` in the first process; all processes get the same result."""
    done, lock = place.with_suffix(".json"), place.with_suffix(".lock")
    while not done.exists():
        try:
            handle = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            if not done.exists() and not _alive(lock):
                return {"error": "the worker that ran the suite died"}
            time.sleep(POLL_SECONDS)
            continue
        os.write(handle, str(os.getpid()).encode())
        os.close(handle)
        fresh = place.with_suffix(".new")
        fresh.write_text(json.dumps(make()), encoding="utf-8")
        fresh.replace(done)
    result: dict[str, str] = json.loads(done.read_text(encoding="utf-8"))
    return result


def _alive(lock: Path) -> bool:
    """Whether the process that holds a lock still runs; its id may not be written yet."""
    try:
        holder = lock.read_text()
        if holder:
            os.kill(int(holder), 0)
    except (OSError, ValueError):
        return False
    return True


def _made(path: Path, wanted: set[str] | None) -> dict[str, str]:
    """Run a suite, or some of its scenarios; return the run, its store, and why it ended early."""
    from pennyweight.api.run import run  # noqa: PLC0415
    from pennyweight.errors import PennyweightError  # noqa: PLC0415
    from pennyweight.render.run_end import stop_sentence  # noqa: PLC0415

    try:
        result = run(path, tasks=wanted)
    except PennyweightError as error:
        return {"error": str(error)}
    address, reason = result.store.address, result.ended.reason
    return {
        "run": result.id,
        "store": address if "://" in address else str(Path(address).resolve()),
        "runs": str(result.stored.settings["runs"]),
        "exhausted": stop_sentence(reason) if reason else "",
    }
