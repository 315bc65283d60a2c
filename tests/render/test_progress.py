"""Progress: one line that says where a run is, renewed in a terminal, plain elsewhere."""

import io
import threading
from typing import Any

import pytest

from pennyweight.engine.budget import Budget
from pennyweight.engine.tally import Tally
from pennyweight.render import progress as module
from pennyweight.render.progress import (
    LINE_SECONDS,
    MIN_ATTEMPTS,
    MIN_SECONDS,
    TERMINAL_SECONDS,
    Progress,
)
from pennyweight.suite.values import Limits


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(module, "time", found)
    return found


def right(rows: list[Any]) -> tuple[int, int]:
    """Count rows that say True, of those that say anything."""
    known = [row[0] for row in rows if row[0] is not None]
    return sum(known), len(known)


def tally(done: int, **more: Any) -> Tally:
    return Tally(100, done, **more)


def test_it_says_rate_time_left_accuracy_cost_and_errors(clock: Clock) -> None:
    out = io.StringIO()
    progress = Progress(right, out)
    clock.now += LINE_SECONDS
    errors = {"timeout": 1, "rate_limit": 2}
    rows = [(True,), (True,), (False,), (None,)]
    progress(
        tally(20, errors=errors, retries=5, retried="server"), Budget(Limits(), usd=0.0123), rows
    )
    line = "20 of 100 · 2.0/s · 40 s left · 66.7 % correct · $0.0123 · 2 rate_limit · 1 timeout"
    assert out.getvalue() == f"{line} · 5 retried, last server\n"


def test_what_is_not_known_is_not_said(clock: Clock) -> None:
    out = io.StringIO()
    progress = Progress(right, out)
    clock.now += LINE_SECONDS
    progress(tally(20), Budget(Limits()), [(None,)])
    assert out.getvalue() == "20 of 100 · 2.0/s · 40 s left\n"


def test_accuracy_is_over_all_that_came_so_far(clock: Clock) -> None:
    out = io.StringIO()
    progress = Progress(right, out)
    progress(tally(2), Budget(Limits()), [(True,), (True,)])
    assert out.getvalue() == ""
    clock.now += LINE_SECONDS
    progress(tally(4), Budget(Limits()), [(False,), (False,)])
    assert "50.0 % correct" in out.getvalue()


def test_plain_lines_come_seldom_and_steer_no_terminal(clock: Clock) -> None:
    out = io.StringIO()
    progress = Progress(right, out)
    for done in range(100):
        clock.now += 1
        progress(tally(done), Budget(Limits()), [(True,)])
    progress.end()
    lines = out.getvalue().splitlines()
    assert len(lines) == 100 // LINE_SECONDS
    assert not {"\r", "\x1b"} & set(out.getvalue())


def test_a_terminal_has_one_line_that_is_cleared_in_the_end(clock: Clock) -> None:
    out = Terminal()
    progress = Progress(right, out)
    for done in range(4):
        clock.now += TERMINAL_SECONDS
        stops = done == 3
        progress(tally(done, stopping=stops, interrupted=stops), Budget(Limits()), [(True,)])
    progress.end()
    assert "\n" not in out.getvalue()
    shown = out.getvalue().split("\r\x1b[K")
    assert len(shown) == 6
    assert shown[-2].startswith("stopping; Ctrl-C again stops at once · 3 of 100")
    assert shown[-1] == ""


def test_only_who_interrupted_is_told_how_to_do_it_again(clock: Clock) -> None:
    out = io.StringIO()
    progress = Progress(right, out)
    clock.now += LINE_SECONDS
    progress(tally(1, stopping=True), Budget(Limits()), [])
    assert out.getvalue().startswith("stopping · 1 of 100")


def test_a_run_that_waits_says_how_long_and_for_what(clock: Clock) -> None:
    out = io.StringIO()
    progress = Progress(right, out)
    clock.now += LINE_SECONDS
    waits = tally(0, retries=3, retried="rate_limit", paused_until=clock.now + 75)
    progress(waits, Budget(Limits()), [])
    said = "0 of 100 · 3 retried, last rate_limit · paused for 1 min 15 s\n"
    assert out.getvalue() == said


def test_a_dumb_terminal_gets_plain_lines(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    progress = Progress(right, out)
    clock.now += LINE_SECONDS
    progress(tally(20), Budget(Limits()), [])
    progress.end()
    assert out.getvalue() == "20 of 100 · 2.0/s · 40 s left\n"


def test_nothing_done_yet_has_no_time_left(clock: Clock) -> None:
    out = io.StringIO()
    progress = Progress(right, out)
    clock.now += LINE_SECONDS
    progress(tally(0, retries=3), Budget(Limits()), [])
    assert out.getvalue() == "0 of 100 · 3 retried\n"


def test_a_line_never_wraps(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    out = Terminal()
    progress = Progress(right, out)
    clock.now += TERMINAL_SECONDS
    progress(tally(20, errors={"rate_limit": 7, "timeout": 8}), Budget(Limits()), [(True,)])
    progress.end()
    line = out.getvalue().split("\r\x1b[K")[1]
    assert len(line) == 39
    assert line.endswith("…")


def test_a_closed_screen_and_a_rule_that_fails_end_nothing(clock: Clock) -> None:
    def broken(rows: list[Any]) -> tuple[int, int]:
        raise ZeroDivisionError

    out = io.StringIO()
    progress = Progress(broken, out)
    clock.now += LINE_SECONDS
    progress(tally(20), Budget(Limits()), [(True,)])
    assert out.getvalue() == "20 of 100 · 2.0/s · 40 s left\n"
    out.close()
    clock.now += LINE_SECONDS
    progress(tally(30), Budget(Limits()), [(True,)])
    progress.end()
    Progress(right, out).end()


def test_a_run_that_waits_is_seen_to_live(monkeypatch: pytest.MonkeyPatch) -> None:
    class Written(Terminal):
        lines = threading.Semaphore(0)

        def write(self, text: str) -> int:
            self.lines.release()
            return super().write(text)

    monkeypatch.setattr(module, "TERMINAL_SECONDS", 0.01)
    out = Written()
    progress = Progress(right, out)
    progress(tally(1), Budget(Limits()), [(True,)])
    for _ in range(3):
        assert out.lines.acquire(timeout=30)
    progress.end()
    assert out.getvalue().count("1 of 100") >= 3


def test_what_is_printed_meanwhile_stands_above_the_line(clock: Clock) -> None:
    out = Terminal()
    progress = Progress(right, out)
    clock.now += TERMINAL_SECONDS
    progress(tally(20), Budget(Limits()), [])
    print("a function", "says", file=progress)
    print("half a line", end="", file=progress)
    progress.end()
    lines = out.getvalue().split("\r\x1b[K")
    assert lines[1].startswith("20 of 100")
    assert lines[2:] == ["a function says\n", "", "half a line\n"]


def test_what_is_printed_where_there_is_no_terminal_is_left_as_it_is(clock: Clock) -> None:
    out = io.StringIO()
    progress = Progress(right, out)
    print("a function", end="", file=progress)
    assert out.getvalue() == "a function"
    progress.end()
    assert out.getvalue() == "a function"


def test_too_few_attempts_tell_no_time_left(clock: Clock) -> None:
    out = io.StringIO()
    progress = Progress(right, out)
    clock.now += LINE_SECONDS
    progress(tally(MIN_ATTEMPTS - 1), Budget(Limits()), [])
    assert out.getvalue() == "2 of 100 · 12.0/min\n"


def test_the_first_seconds_tell_no_time_left(clock: Clock) -> None:
    out = Terminal()
    progress = Progress(right, out)
    clock.now += MIN_SECONDS - TERMINAL_SECONDS
    progress(tally(20), Budget(Limits()), [])
    assert "left" not in out.getvalue()
    clock.now += TERMINAL_SECONDS
    progress(tally(30), Budget(Limits()), [])
    progress.end()
    assert "30 of 100 · 10.0/s · 7 s left" in out.getvalue()
