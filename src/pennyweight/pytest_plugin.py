"""Suites as tests: one for each scenario, and one for each gate of a policy.

    @pytest.mark.pennyweight(suite="support.yaml", policy="release.yaml")
    def test_support(pennyweight):
        pennyweight.check()

The scenarios that pytest selected are run together before the first of their tests; with xdist, by
one worker for all. Nothing heavy is imported before that.
"""

from __future__ import annotations

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
PATIENCE = 0.1
SHOWN = 10
_CASES = pytest.StashKey[dict[str, Any]]()
_PROBLEMS = pytest.StashKey[dict[str, dict[str, str]]]()


class _WrongError(Exception):
    """A mark, a suite or a policy that cannot be used."""


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
    """What a test gets: whether its scenario or gate passed, and why."""

    name: str
    passed: bool
    why: str
    records: tuple[dict[str, Any], ...] = ()
    """The attempts of a scenario, with what was measured about them."""

    def check(self) -> None:
        """Fail the test unless it passed."""
        __tracebackhide__ = True
        if not self.passed:
            pytest.fail(f"{self.name}: {self.why}", pytrace=False)

    def __bool__(self) -> bool:
        return self.passed


class InconclusiveError(pytest.fail.Exception):  # type: ignore[name-defined,misc]
    """Nothing could be decided: the test has neither passed nor failed, and is an error."""

    def __init__(self, why: str) -> None:
        super().__init__(f"inconclusive: {why}", pytrace=False)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", MARKER)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test for each scenario and gate."""
    marker = metafunc.definition.get_closest_marker("pennyweight")
    if marker is None:
        return
    folder = metafunc.definition.path.parent
    try:
        cases = _collected(dict(marker.kwargs), marker.args, folder)
    except _WrongError as wrong:  # an exception here would be told with all that lies around it
        own, problems = metafunc.definition, metafunc.config.stash.setdefault(_PROBLEMS, {})
        problems.setdefault(str(own.path), {})[own.name] = str(wrong)
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
    """Tell what is wrong with suites and marks as errors of the collection, in our words."""
    report = yield
    problems = collector.config.stash.get(_PROBLEMS, {})
    wrong = problems.pop(str(collector.path), None) if report.passed and report.result else None
    if not wrong:
        return report
    told = "\n".join(f"{name}: {what}" for name, what in wrong.items())
    return pytest.CollectReport(collector.nodeid, "failed", told, [])


def _collected(given: dict[str, Any], args: tuple[Any, ...], folder: Path) -> list[Case]:
    """Read the suite and its policy; their mistakes are told as errors of the collection."""
    from pennyweight.api.gate import read_policy  # noqa: PLC0415
    from pennyweight.engine.execution import open_suite  # noqa: PLC0415
    from pennyweight.errors import PennyweightError  # noqa: PLC0415

    known = {"suite", "policy", "baseline", "where", "version"}
    if args or "suite" not in given or not set(given) <= known:
        raise _WrongError(f"The mark is written as {MARKER}")
    path = _beside(given.pop("suite"), folder)
    policies = given.pop("policy", None) or ()
    policies = [policies] if isinstance(policies, str | Path) else list(policies)
    settings = {**given, "policies": [str(_beside(p, folder)) for p in policies]}
    try:
        suite = open_suite(path)
        gates = read_policy(settings["policies"], given.get("version")).gates if policies else ()
    except PennyweightError as error:
        raise _WrongError(str(error)) from None
    cases = [
        Case(path, task.id, subject=subject.name, tier=tier.name, settings=settings)
        for task in suite.tasks
        for subject in suite.subjects
        for tier in suite.tiers
    ]
    names = [*(gate.name for gate in gates), "verdict"] if policies else []
    return cases + [Case(path, name, gate=True, settings=settings) for name in names]


def _beside(name: str | Path, folder: Path) -> Path:
    """Find a file beside the test's own, or where pytest was started."""
    path = folder / name
    return path.resolve() if path.exists() else Path(name).resolve()


def _id(case: Case, cases: list[Case]) -> str:
    if case.gate:
        return f"gate:{case.name}"
    sides = {(c.subject, c.tier) for c in cases if not c.gate}
    return case.name if len(sides) == 1 else f"{case.name}-{case.subject}-{case.tier}"


def _unasked(item: pytest.Item) -> bool:
    """Whether a test is marked, but does not ask for its outcome."""
    if not isinstance(item, pytest.Function) or item.get_closest_marker("pennyweight") is None:
        return False
    return "pennyweight" not in item._fixtureinfo.argnames


@pytest.hookimpl(trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Get the outcome for a test that does not ask for it."""
    if _unasked(item) and isinstance(item, pytest.Function):
        item.funcargs["pennyweight"] = item._request.getfixturevalue("pennyweight")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Check the outcome where the test itself does not ask for it."""
    result = yield
    if _unasked(pyfuncitem):
        outcome = pyfuncitem.funcargs["pennyweight"]
        assert isinstance(outcome, Outcome)
        outcome.check()
    return result


@pytest.fixture
def pennyweight(request: pytest.FixtureRequest) -> Outcome:
    """What became of the scenario or gate that this test is about."""
    case = getattr(request, "param", None)
    if not isinstance(case, Case):
        raise pytest.UsageError(f"The fixture 'pennyweight' needs the mark {MARKER}")
    found = _run(case, request)
    run, store = found["run"], found["store"]
    cached = request.config.stash.setdefault(_CASES, {})
    if case.gate:
        return _gate(case, run, store, cached)
    outcome = _scenario(case, run, store, cached)
    planned = int(found["runs"])
    if outcome.passed and len(outcome.records) < planned:
        made = f"{len(outcome.records)} of {planned} attempts were made"
        raise InconclusiveError(": ".join(filter(None, (made, found["exhausted"]))))
    return outcome


def _scenario(case: Case, run: str, address: str, cached: dict[str, Any]) -> Outcome:
    key = f"rows {run}"
    if key not in cached:
        cached[key] = _rows(run, address)
    mine = case.name, case.subject, case.tier
    rows = [r for r in cached[key] if (r["task_id"], r["subject"], r["tier"]) == mine]
    words = [_word(row) for row in rows]
    bad = [f"attempt {r['attempt']}: {_why(r)}" for r, w in zip(rows, words, strict=True) if w]
    if "failed" in words:
        return Outcome(case.name, passed=False, why="; ".join(bad), records=tuple(rows))
    if bad or not rows:
        raise InconclusiveError("; ".join(bad) or f"{case.name} was not tried")
    return Outcome(case.name, passed=True, why="passed", records=tuple(rows))


def _word(row: dict[str, Any]) -> str:
    if row["status"] == "error" or (row["passed"] is None and row["status"] in {None, "ok"}):
        return "open"
    return "" if row["passed"] else "failed"


def _why(row: dict[str, Any]) -> str:
    """Say what is wrong with an attempt."""
    if row["status"] == "error":
        return f"could not be made: {row['error']}"
    if row["violated"]:
        return f"violated: {', '.join(row['violated'])}"
    if row["undecided"]:
        return f"undecided: {', '.join(row['undecided'])}"
    missing = [
        b for b in row["expected_behaviors"] or () if b not in (row["observed_behaviors"] or ())
    ]
    if missing:
        return f"not observed: {', '.join(missing)}"
    if row["status"] not in {None, "ok"}:
        return f"ended by {row['status']}"
    if row["target"] is not None:
        return f"the answer is {row['answer']!r}, not {row['target']!r}"
    return "did not pass" if row["passed"] is False else "has no verdict"


_SHOWN = (
    "task_id", "subject", "tier", "attempt", "status", "error", "passed", "scenario_score",
    "expected_behaviors", "observed_behaviors", "violated", "undecided", "answer", "target",
    "response", "latency_ms", "cost_usd",
)  # fmt: skip


def _rows(run: str, address: str) -> list[dict[str, Any]]:
    """Read the attempts of a run with their measures."""
    from pennyweight.api.score import measured_rows  # noqa: PLC0415

    return measured_rows(run, _SHOWN, store=address)


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
        why = gate.why + "".join(f"\n  {one.id}: {one.why}" for one in gate.scenarios[:SHOWN])
        more = len(gate.scenarios) - SHOWN
        why += f"\n  … and {more:,} more" if more > 0 else ""
    if level == "warning" and word != "pass":
        warnings.warn(pytest.PytestWarning(f"{case.name}: {why}"), stacklevel=2)
        return Outcome(case.name, passed=True, why=why)
    if word == "inconclusive":
        raise InconclusiveError(why)
    return Outcome(case.name, passed=word == "pass", why=why)


def _verdict(case: Case, run: str, address: str) -> Verdict:
    from pennyweight.api.gate import gate  # noqa: PLC0415

    given = case.settings
    return gate(
        run,
        given["policies"],
        baseline=given.get("baseline"),
        where=given.get("where"),
        version=given.get("version"),
        store=address,
    )


def _run(case: Case, request: pytest.FixtureRequest) -> dict[str, str]:
    """Run the selected scenarios of a suite, once for all workers; says what `_made` gives."""
    config = request.config
    base = request.getfixturevalue("tmp_path_factory").getbasetemp()
    base = base.parent if hasattr(config, "workerinput") else base
    wanted = _wanted(case, request.session.items)
    mark = hashed(case.suite)

    def make() -> dict[str, str]:
        return _made(case.suite, wanted)

    found = once(base / f"pennyweight-{mark}", make)
    if "error" in found:
        raise InconclusiveError(found["error"])
    return found


def hashed(path: Path) -> str:
    """Give a short name for a path."""
    import hashlib  # noqa: PLC0415

    return hashlib.blake2b(str(path).encode(), digest_size=8).hexdigest()


def _wanted(case: Case, items: list[pytest.Item]) -> set[str] | None:
    """Name the scenarios whose tests are selected; None for all, which a gate needs."""
    cases = [item.callspec.params.get("pennyweight") for item in items if hasattr(item, "callspec")]
    own = [c for c in cases if isinstance(c, Case) and c.suite == case.suite]
    return None if any(c.gate for c in own) else {c.name for c in own}


def once(place: Path, make: Callable[[], dict[str, str]]) -> dict[str, str]:
    """Do something in the first process that asks, and give all the same result."""
    done, lock = place.with_suffix(".json"), place.with_suffix(".lock")
    while not done.exists():
        try:
            handle = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            if not done.exists() and not _alive(lock):
                return {"error": "the worker that ran the suite died"}
            time.sleep(PATIENCE)
            continue
        os.write(handle, str(os.getpid()).encode())
        os.close(handle)
        fresh = place.with_suffix(".new")
        fresh.write_text(json.dumps(make()), encoding="utf-8")
        fresh.replace(done)
    found: dict[str, str] = json.loads(done.read_text(encoding="utf-8"))
    return found


def _alive(lock: Path) -> bool:
    """Whether the process that holds a lock is there; one that has not signed yet is."""
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
    address, reason = result.store, result.ended.reason
    return {
        "run": result.run.id,
        "store": address if "://" in address else str(Path(address).resolve()),
        "runs": str(result.run.settings["runs"]),
        "exhausted": stop_sentence(reason) if reason else "",
    }
