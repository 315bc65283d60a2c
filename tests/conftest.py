"""What all tests share."""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "pennyweight",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("pennyweight")


@pytest.fixture(scope="session")
def postgresql():
    """A PostgreSQL server of these tests; where there is none they skip, but fail in CI."""
    import postgres

    if postgres.binaries() is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(postgres.MISSING)
    yield from postgres.cluster()


@pytest.fixture(scope="session")
def local_model():
    """The small model on this machine; where it cannot be had tests skip, but fail in CI."""
    from pennyweight.errors import UsageError
    from pennyweight.models.local import pull

    try:
        __import__("xllamacpp")
        pull("smollm2-135m")
    except (ImportError, UsageError) as wrong:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"The local model is not to be had: {wrong}")


@pytest.fixture(params=["sqlite", "postgresql"])
def store_address(request, tmp_path):
    """The address of a new store, once in each kind of database."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return request.getfixturevalue("postgresql").database()


def pytest_xdist_auto_num_workers():
    """One worker more than cores: many tests wait for processes and pages."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items):
    """Put the browser's tests last: its loop runs on in the thread of a worker that had one."""
    items.sort(key=lambda item: "web" in item.path.parts)
