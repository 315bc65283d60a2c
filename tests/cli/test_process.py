"""The command as a process: closed and full outputs, and Ctrl-C at any time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pennyweight.store.store import Store

MODEL = "def answer(prompt):\n    return 'FINAL_ANSWER: 4'\n"
TASKS = [{"id": str(i), "input": f"2 + 2, {i}", "target": "4"} for i in range(40)]
SUITE = {"suite": "sums", "tasks": TASKS, "subjects": ["python:answers:answer"]}
RECORDS = '{"task_id": "a", "passed": true}\n{"task_id": "b", "passed": false}\n'
RUN, SCORE = "run suite.json", "score records.jsonl"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "answers.py").write_text(MODEL)
    (tmp_path / "suite.json").write_text(json.dumps(SUITE))
    (tmp_path / "records.jsonl").write_text(RECORDS)
    return tmp_path


def shell(folder, line):
    """Run a line in which `dwt` is the command, with its output where the line says."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PENNYWEIGHT_STORE": "store.db"}
    command = f'dwt() {{ "{sys.executable}" -m pennyweight "$@"; }}; {line}'
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize("arguments", [RUN, SCORE, f"{SCORE} --format json", "metrics", "--help"])
def test_a_closed_output_discards_what_is_printed(folder, arguments):
    assert shell(folder, f"dwt {arguments} >&-").returncode == 0
    assert shell(folder, f"dwt {arguments} >&- 2>&- <&-").returncode == 0
    assert shell(folder, f"dwt {arguments} --nonsense >&-").returncode == 2


def test_an_export_to_a_closed_output_fails(folder):
    shell(folder, f"dwt {RUN}")
    done = shell(folder, "dwt export latest >&-")
    assert (done.returncode, "Standard output cannot be written" in done.stderr) == (4, True)
    assert shell(folder, "dwt export latest -o records.csv >&-").returncode == 0


def test_a_closed_input_is_empty(folder):
    done = shell(folder, "dwt score - <&-")
    assert (done.returncode, "-: the file is empty" in done.stderr) == (2, True)
    shell(folder, f"dwt {RUN}")
    assert shell(folder, "dwt rm latest <&-").returncode == 2
    assert shell(folder, "dwt show latest").returncode == 0


def test_a_closed_output_does_not_become_the_store(folder):
    assert shell(folder, f"dwt {RUN} >&- 2>&- <&-").returncode == 0
    store = Store(str(folder / "store.db"))
    assert sum(store.statuses(store.find("latest").id).values()) == 40
    assert shell(folder, "dwt export latest | wc -l").stdout.strip() == "40"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", [SCORE, f"{SCORE} --format json", "--help", "metrics"])
def test_a_full_output_is_not_a_mistake_of_the_user(folder, arguments):
    done = shell(folder, f"dwt {arguments} >/dev/full")
    assert done.returncode == 4
    assert done.stderr == "Error: Standard output cannot be written: No space left on device.\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("form", ["table", "json"])
def test_a_run_with_a_full_output_is_stored_and_says_so(folder, form):
    done = shell(folder, f"dwt {RUN} --format {form} >/dev/full")
    assert done.returncode == 4
    assert "The run is stored: 'pennyweight show latest' prints it." in done.stderr
    assert shell(folder, "dwt show latest").returncode == 0
    assert shell(folder, "dwt export latest | wc -l").stdout.strip() == "40"


def test_a_reader_that_went_away_is_no_error(folder):
    done = shell(folder, "dwt metrics | head -1; echo ${PIPESTATUS[0]}")
    assert done.stdout.splitlines()[-1] == "0"


INTERRUPTED = """\
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)

wanted = sys.argv[1]

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
from pennyweight.cli import entry
sys.argv = ["pennyweight", *sys.argv[2:]]
entry()
"""


@pytest.mark.parametrize(
    "module", ["click", "pennyweight.cli.group", "pennyweight.cli.score", "polars", "numpy"]
)
def test_an_interrupt_while_modules_are_loaded_ends_without_a_traceback(folder, module):
    """Where in the first 0.2 s Ctrl-C falls is a matter of luck; here the imports send it."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module, *SCORE.split()],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr.strip(), done.stdout) == (130, "Interrupted.", "")


def test_an_ignored_interrupt_stays_ignored(folder):
    code = INTERRUPTED.replace("default_int_handler", "SIG_IGN")
    done = subprocess.run(
        [sys.executable, "-c", code, "polars", *SCORE.split()],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


GATES = """\
gates:
  - {metric: cost_usd_mean, no_worse_than: 10%}
  - {metric: cost_usd_mean, threshold: '< $5'}
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("score dear.jsonl --by tier", 0),
        ("compare dear.jsonl", 0),
        ("report dear.jsonl -o report.md && cat report.md", 0),
        (
            "gate dear.jsonl --where tier=T1 --policy gates.yaml "
            "--baseline dear.jsonl --baseline-where tier=T0",
            1,
        ),
    ],
)
def test_enormous_costs_are_only_numbers(folder, arguments, code):
    rows = [
        {"task_id": str(i), "tier": tier, "passed": i % 3 > 0, "cost_usd": 1e29 * (1 + i % 7 + n)}
        for i in range(20)
        for n, tier in enumerate(("T0", "T1"))
    ]
    (folder / "dear.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "gates.yaml").write_text(GATES)
    done = shell(folder, f"dwt {arguments}")
    assert done.returncode == code, done.stderr
    assert "e+29" in done.stdout or "e+30" in done.stdout
    assert "Warning" not in done.stderr


def test_a_cost_that_no_run_can_have_is_refused_where_it_is(folder):
    (folder / "dear.jsonl").write_text('{"task_id": "a", "passed": true, "cost_usd": 1e110}')
    done = shell(folder, "dwt score dear.jsonl")
    assert done.returncode == 2
    assert "line 1" in done.stderr
    assert "cost_usd is 1e+110; it must not be above 1e+30" in done.stderr


def test_ctrl_c_is_handled_before_anything_is_loaded():
    source = Path(__file__).parents[2] / "src"
    code = f"import sys; sys.path.insert(0, {str(source)!r}); import pennyweight.cli; "
    code += "print([n for n in ('typing', 'importlib', 'click') if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(("given", "found"), [({}, "4"), ({"OPENBLAS_THREAD_TIMEOUT": "20"}, "20")])
def test_threads_of_numpy_sleep_while_they_wait_unless_the_user_says_otherwise(given, found):
    script = (
        "import os, sys, pennyweight.cli as cli\n"
        "assert 'numpy' not in sys.modules\n"
        "cli.main = lambda: sys.exit(print(os.environ['OPENBLAS_THREAD_TIMEOUT']))\n"
        "cli.entry()"
    )
    plain = {n: v for n, v in os.environ.items() if n != "OPENBLAS_THREAD_TIMEOUT"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=plain | given, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == found
