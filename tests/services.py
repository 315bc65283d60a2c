"""Services that some tests need: where one is missing they are skipped, but in CI they fail."""

import os
from collections import Counter

import pytest

SERVICES = {
    "postgresql": "PostgreSQL",
    "bubblewrap": "bubblewrap",
    "chromium": "Chromium",
    "compiler": "a C compiler",
    "axe-core": "axe-core",
    "sentence-model": "the sentence model",
}
"""The services that tools/services.sh installs, as it calls them and as people do."""


def unavailable(reason):
    """Skip a test that cannot run here; fail it in CI, where everything is promised."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


def missing(service):
    """Skip or fail a test for want of a service, and say which command installs it."""
    unavailable(f"{SERVICES[service]} is missing (sh tools/services.sh {service})")


def skipped(reasons):
    """Say in one line how many tests were skipped, and why."""
    counts = Counter(reason.removeprefix("Skipped: ").rstrip(".") for reason in reasons)
    total = counts.total()
    tests = "1 test" if total == 1 else f"{total} tests"
    if len(counts) == 1:
        return f"{tests} skipped: {next(iter(counts))}."
    return f"{tests} skipped: " + "; ".join(f"{n} × {r}" for r, n in counts.most_common()) + "."
