"""Commands as checks: what they get, and that nothing of them is left."""

import json
import os
import time
from pathlib import Path

from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.behaviour import read_behaviour
from pennyweight.checks.delegated import short_json


def run(line, response="said", **row):
    return read_behaviour({"command": line}).run(AttemptView({"response": response, **row}))


def test_a_command_gets_the_record_as_json_however_long_it_is():
    long = "é" * 300_000
    code = (
        "import json, os; r = json.loads(os.environ['PENNYWEIGHT_RECORD']); "
        "w = json.load(open(os.environ['PENNYWEIGHT_RECORD_FILE'])); "
        "assert r['response'].startswith('é') and r['target'] == 't'; "
        "assert len(w['response']) == 300000 and w['tool_calls'][0]['name'] == 'f'"
    )
    calls = [{"name": "f", "arguments": {"x": "y" * 200_000}}]
    found = run({"run": ["python3", "-c", code]}, long, target="t", tool_calls=calls)
    assert found.holds is True, found


def test_any_value_is_shortened_to_valid_json():
    value = {"a": ["x" * 100] * 100, "b": {str(n): n for n in range(1000)}, "c": None}
    for most in (60, 200, 5_000):
        text = short_json(value, most)
        assert len(text) <= most
        assert isinstance(json.loads(text), dict)


def gone(number):
    """Whether a process has ended, at the latest soon."""
    for _ in range(100):
        try:
            os.kill(number, 0)
            state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
            if state == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False


def test_what_takes_too_long_is_ended_with_all_it_started(tmp_path):
    pid = tmp_path / "pid"
    found = run({"run": f"sleep 300 & echo $! > {pid}; wait", "timeout": "500ms"})
    assert (found.holds, found.error) == (None, True)
    assert "within 0.5 s" in found.why
    assert gone(int(pid.read_text()))


def test_what_runs_on_in_the_background_holds_up_nothing(tmp_path):
    pid = tmp_path / "pid"
    found = run(f"sleep 300 & echo $! > {pid}; echo done")
    assert found.holds is True
    assert found.evidence[0].text == "done"
    assert gone(int(pid.read_text()))
