"""What a test run says about the tests that it skipped."""

import subprocess
from pathlib import Path

import pytest

import services

SCRIPT = Path(__file__).parent.parent / "tools" / "services.sh"


def test_one_reason_is_named_with_its_command(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception) as skip:
        services.missing("postgresql")
    assert services.skipped([f"Skipped: {skip.value}"] * 12) == (
        "12 tests skipped: PostgreSQL is missing (sh tools/services.sh postgresql)."
    )


def test_several_reasons_are_counted_the_most_frequent_first():
    line = services.skipped(["Skipped: one.", "Skipped: two", "Skipped: two"])
    assert line == "3 tests skipped: 2 × two; 1 × one."


def test_in_ci_nothing_is_skipped_for_want_of_a_service(monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="Chromium is missing"):
        services.missing("chromium")


def test_the_script_installs_the_services_that_tests_name():
    done = subprocess.run(["sh", SCRIPT, "?"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip().split("Services: ")[1].split() == list(services.SERVICES)
