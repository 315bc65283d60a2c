"""The command line: one file for each command, loaded when it is used.

Tested elsewhere:
    baseline.py: tests/cli/test_gate.py
    export.py: tests/api/test_export.py
    group.py: tests/test_layers.py
    import_.py: tests/cli/test_import.py
    notes.py: tests/cli/test_score.py
    review.py: tests/stored_runs/test_observations.py
    run_display.py: tests/cli/test_run.py
    runs.py: tests/cli/test_run.py
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys

TYPE_CHECKING = False  # as in `pennyweight`: this is loaded before Ctrl-C is handled
if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    """Run the command line. A user's mistake is one message and exit code 2, never a traceback."""
    import click

    from pennyweight.cli.group import cli
    from pennyweight.errors import OutputError, PennyweightError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without ∞ shows ?
            stream.reconfigure(errors="replace")
    try:
        sys.exit(cli(standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except PennyweightError as error:
        from pennyweight.text.safe import clean

        stored = isinstance(error, OutputError) and sys.argv[1:2] == ["run"]
        hint = " The run is stored: 'pennyweight show latest' prints it." if stored else ""
        click.echo(f"Error: {clean(str(error))}{hint}", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        if sys.stderr is not None:
            sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        from pennyweight.text.safe import clean

        place = f"{clean(error.filename)}: " if isinstance(error.filename, str) else ""
        click.echo(f"Error: {place}{error.strerror or error}.", err=True)
        sys.exit(2)


def entry() -> None:
    """Run the command line as a separate process.

    The process ends at once: freeing the memory of a large table takes a tenth of a second. Most
    objects live as long as the process, so garbage is collected less often. NumPy's threads sleep
    while they wait for work: by default they keep a processor busy.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
    from pennyweight.errors import OutputError

    _open_streams()
    gc.set_threshold(100_000, 50, 100)
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")  # the least: 2⁴ cycles
    code: object = 1
    try:
        main()
    except SystemExit as end:
        code = end.code
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OutputError as error:
            sys.stderr.write(f"Error: {error}\n")
            code = error.exit_code
        except (OSError, ValueError):  # the reader is gone, as with `| head`
            pass
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _interrupted(*_: object) -> None:
    """End at once while modules are being imported: an interrupted import leaves a traceback."""
    os.write(2, b"Interrupted.\n")
    os._exit(130)


def allow_interrupts() -> None:
    """Have Ctrl-C raise KeyboardInterrupt, now that the command is loaded."""
    if signal.getsignal(signal.SIGINT) is _interrupted:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class _Output(io.FileIO):
    """Standard output; the first failed write raises OutputError, later ones are ignored."""

    failed = False

    def write(self, data: Any, /) -> int:
        from pennyweight.errors import OutputError

        try:
            return len(data) if self.failed else super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            self.failed = True
            raise OutputError(error.strerror or str(error)) from None


def _open_streams() -> None:
    """Open closed standard streams, as after `>&-`: no other file may get their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            exports = number == 1 and sys.argv[1:2] == ["export"]  # nobody would get the records
            os.open(os.devnull, os.O_RDONLY if exports else os.O_RDWR)
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_Output(1, "w", closefd=False)),
        encoding=sys.stdout.encoding if sys.stdout else "utf-8",
        line_buffering=bool(sys.stdout and sys.stdout.line_buffering),
    )
