"""Agents at their worst: whatever they do, they stay where they were put."""

import os
import secrets

import pytest

from agent.trying import alive, asked, attempt, attempts, script
from pennyweight.errors import UsageError
from pennyweight.models.failure import CallError
from pennyweight.suite.values import Agent, Workspace


def test_what_an_agent_did_is_in_its_reply(tmp_path, sandbox):
    begin = tmp_path / "begin"
    begin.mkdir()
    (begin / "story.txt").write_text("Once\nupon\n")
    agent = script(
        tmp_path,
        """
        import sys
        with open("story.txt", "a") as file:
            file.write("a time\\n")
        print("told", sys.argv[-1])
        print("careful", file=sys.stderr)
        sys.exit(3)
        """,
        sandbox=sandbox,
    )
    work = Workspace(str(begin), files={"tier/notes.md": b"Be brief.\n"})
    reply = attempt(agent, "Go on.", work=work)
    assert reply.text == "told Go on."
    assert reply.status == "ok"
    assert reply.passed is False
    assert reply.usage.prompt_tokens is None
    assert reply.cost_usd is None
    did = reply.work
    assert (did["exit_code"], did["ended"]) == (3, "exit")
    assert did["stderr"] == "careful\n"
    assert did["diff"] == (
        "--- a/story.txt\n+++ b/story.txt\n@@ -1,2 +1,3 @@\n Once\n upon\n+a time"
    )
    assert did["files"] == {"added": 0, "changed": 1, "removed": 0}
    assert did["sandbox"].startswith("none" if sandbox == "none" else "bubblewrap")
    assert (begin / "story.txt").read_text() == "Once\nupon\n"
    assert list((tmp_path / "workspaces").iterdir()) == []


def test_each_attempt_begins_afresh(tmp_path, sandbox):
    agent = script(
        tmp_path,
        """
        import os, pathlib
        print(sorted(os.listdir(".")), sorted(os.listdir(os.environ["HOME"])))
        pathlib.Path("left").write_text("x")
        pathlib.Path(os.environ["HOME"], "left").write_text("x")
        """,
        sandbox=sandbox,
    )
    replies = attempts(agent, *[asked()] * 4)
    assert [r.text for r in replies] == ["[] []"] * 4


@pytest.mark.parametrize("way", ["argument", "file", "stdin"])
def test_the_prompt_arrives_whole(tmp_path, way, sandbox):
    code = {
        "argument": "import sys; print(ascii(sys.argv[1]))",
        "file": "import sys; print(ascii(open(sys.argv[1]).read()))",
        "stdin": "import sys; print(ascii(sys.stdin.read()))",
    }
    agent = script(tmp_path, code[way], prompt=way, sandbox=sandbox)
    prompt = "$(touch x); 'quoted' \"twice\"\n\\ é {prompt}"
    reply = attempt(agent, prompt, system="Careful.")
    assert reply.text == ascii(f"Careful.\n\n{prompt}")


def test_only_named_variables_are_seen(tmp_path, monkeypatch, sandbox):
    monkeypatch.setenv("SOME_API_KEY", "sk-not-for-agents-123456")
    monkeypatch.setenv("NAMED", "seen")
    agent = script(
        tmp_path,
        """
        import os
        print(sorted(os.environ))
        print(os.environ["NAMED"])
        """,
        env=("NAMED",),
        sandbox=sandbox,
    )
    names, named = attempt(agent).text.splitlines()
    assert named == "seen"
    own = {"PENNYWEIGHT_ATTEMPT", "HOME", "LANG", "LC_CTYPE", "NAMED", "PATH", "PWD", "TMPDIR"}
    assert set(eval(names)) <= own


@pytest.mark.usefixtures("_bubblewrap")
def test_a_key_cannot_be_read_from_other_processes_or_files(tmp_path, monkeypatch):
    key = f"sk-{secrets.token_hex(16)}"
    monkeypatch.setenv("SOME_API_KEY", key)
    (tmp_path / "key.txt").write_text(key)
    agent = script(
        tmp_path,
        f"""
        import pathlib
        for place in [*pathlib.Path("/proc").glob("[0-9]*/environ"), {str(tmp_path / "key.txt")!r},
                      "/etc/shadow"]:
            try:
                print(place, pathlib.Path(place).read_bytes().hex())
            except OSError as error:
                print(place, error.strerror)
        print([p.name for p in pathlib.Path("/proc").glob("[0-9]*")])
        """,
    )
    reply = attempt(agent)
    assert key.encode().hex() not in reply.work["stdout"]
    assert "[key]" not in reply.work["stdout"]
    assert "/etc/shadow No such file" in reply.text
    assert str(os.getpid()) not in eval(reply.text.splitlines()[-1])


def test_a_named_key_is_not_kept(tmp_path, monkeypatch, sandbox):
    monkeypatch.setenv("SOME_API_KEY", "sk-for-this-agent-123456")
    agent = script(
        tmp_path,
        """
        import os
        key = os.environ["SOME_API_KEY"]
        print("my key is", key)
        open("stolen", "w").write(key)
        """,
        env=("SOME_API_KEY",),
        sandbox=sandbox,
    )
    reply = attempt(agent)
    assert reply.text == "my key is [key]"
    assert "sk-for-this-agent" not in repr(reply)


def test_no_named_variable_is_kept_whatever_its_name(tmp_path, monkeypatch, sandbox):
    monkeypatch.setenv("GH_PAT", "ghp_0123456789abcdefghij")
    monkeypatch.setenv("CERTIFICATE", "first-line-of-it\nsecond-line-of-it")
    monkeypatch.setenv("SHORT", "word")
    agent = script(
        tmp_path,
        """
        import json, os, sys
        print(os.environ["GH_PAT"], os.environ["SHORT"], json.dumps(os.environ["CERTIFICATE"]))
        print(os.environ["GH_PAT"], file=sys.stderr)
        open("stolen", "w").write(os.environ["CERTIFICATE"])
        """,
        env=("GH_PAT", "CERTIFICATE", "SHORT"),
        sandbox=sandbox,
    )
    reply = attempt(agent)
    assert reply.text == '[key] word "[key]"'
    assert reply.work["stderr"] == "[key]\n"
    assert "+[key]\n+[key]" in reply.work["diff"]


@pytest.mark.usefixtures("_bubblewrap")
def test_nothing_is_written_outside_the_workspace(tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    agent = script(
        tmp_path,
        f"""
        import pathlib
        for place in [{str(outside)!r}, {str(tmp_path / "agent.py")!r}, "/usr/x", "/etc/passwd",
                      "/x", "/dev/x", "/proc/sys/vm/swappiness", "/proc/sys/kernel/core_pattern",
                      "../x"]:
            try:
                pathlib.Path(place).write_text("theirs")
                print("wrote", place)
            except OSError as error:
                print("refused", place)
        pathlib.Path("inside").write_text("fine")
        """,
    )
    before = (tmp_path / "agent.py").read_text()
    reply = attempt(agent)
    assert outside.read_text() == "mine"
    assert (tmp_path / "agent.py").read_text() == before
    wrote = [line for line in reply.text.splitlines() if line.startswith("wrote")]
    # its temporary folder stands where this machine's is, and is thrown away
    assert all(place == f"wrote {outside}" for place in wrote), reply.text
    assert "+++ b/inside" in reply.work["diff"]


@pytest.mark.usefixtures("_bubblewrap")
@pytest.mark.parametrize("network", [False, True])
def test_there_is_no_network_unless_the_suite_says_so(tmp_path, network):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        agent = script(
            tmp_path,
            f"""
            import socket
            try:
                socket.create_connection(("127.0.0.1", {server.getsockname()[1]}), 5)
                print("connected")
            except OSError:
                print("refused")
            """,
            network=network,
        )
        assert attempt(agent).text == ("connected" if network else "refused")


DAEMON = """
    import os, signal, sys, time
    mark = {mark!r}
    def sleep():
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        words = [sys.executable, "-c", "import time; time.sleep(600)", mark]
        os.execve(sys.executable, words, {{}})
    for _ in range(5):
        if os.fork() == 0:
            os.setsid()
            os.chdir("/")
            if os.fork() == 0:
                sleep()
            os._exit(0)
    time.sleep(0.2)
    print("done", flush=True)
"""


def test_daemons_end_with_their_agent(tmp_path, sandbox):
    mark = secrets.token_hex(8)
    reply = attempt(script(tmp_path, DAEMON.format(mark=mark), sandbox=sandbox))
    assert reply.text == "done"
    assert reply.status == "ok"
    assert alive(mark) == []
    assert reply.work["left_processes"] == 5 or sandbox == "bubblewrap"


def test_the_time_limit_ends_all_that_ignores_the_signal(tmp_path, sandbox, monkeypatch):
    monkeypatch.setattr("pennyweight.agent.process.GRACE", 0.3)
    mark = secrets.token_hex(8)
    code = DAEMON.format(mark=mark) + "    sleep()\n"
    reply = attempt(script(tmp_path, code, sandbox=sandbox, timeout=2))
    assert reply.status == "timeout"
    assert reply.passed is False
    assert reply.text == "done"
    assert "2 s" in reply.work["ended"]
    assert alive(mark) == []


def test_an_agent_that_kills_its_watcher_is_ended_all_the_same(tmp_path, sandbox):
    mark = secrets.token_hex(8)
    code = f"""
        import os, signal, subprocess, sys, time
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", {mark!r}])
        print("watched", flush=True)
        try:
            os.kill(os.getppid(), signal.SIGKILL)
        except OSError:
            pass
        time.sleep(600)
        """
    reply = attempt(script(tmp_path, code, sandbox=sandbox, timeout=5))
    assert reply.text == "watched"
    assert reply.passed is False
    assert alive(mark) == []


def test_an_agent_may_end_in_good_order(tmp_path, sandbox):
    agent = script(
        tmp_path,
        """
        import signal, sys, time
        def end(*_):
            print("saved", flush=True)
            sys.exit(0)
        signal.signal(signal.SIGTERM, end)
        print("ready", flush=True)
        time.sleep(600)
        """,
        sandbox=sandbox,
        timeout=2,
    )
    reply = attempt(agent)
    assert reply.status == "timeout"
    assert reply.text == "ready\nsaved"


def test_attempts_run_side_by_side(tmp_path):
    agent = script(
        tmp_path,
        f"""
        import pathlib, sys, time
        here = pathlib.Path({str(tmp_path)!r}, "met")
        here.mkdir(exist_ok=True)
        (here / sys.argv[1]).touch()
        while len(list(here.iterdir())) < 3:
            time.sleep(0.01)
        """,
        sandbox="none",
        timeout=60,
    )
    replies = attempts(agent, *(asked(name) for name in "abc"))
    assert [r.status for r in replies] == ["ok"] * 3


def test_settings_reach_the_command(tmp_path):
    agent = Agent(
        ("sh", "-c", 'echo "$0 $PENNYWEIGHT_SETTINGS"', "{effort}", "{prompt}"), sandbox="none"
    )
    reply = attempt(agent, temperature=0.5, extra={"effort": "high"})
    assert reply.text == 'high {"temperature": 0.5, "effort": "high"}'


def test_a_line_for_the_shell_cannot_be_broken_out_of(tmp_path):
    agent = Agent(('printf "[%s]" "{prompt}" | tr a-z A-Z',), shell=True, sandbox="none")
    assert attempt(agent, 'x"; echo broken; "$(id)').text == '[X"; ECHO BROKEN; "$(ID)]'
    quoted = Agent(
        ("printf %s 'a {prompt} b' \"[{prompt}]\" {prompt}",), shell=True, sandbox="none"
    )
    assert attempt(quoted, "$x  'y'").text == "a $x  'y' b[$x  'y']$x  'y'"
    appended = Agent(("echo said",), shell=True, sandbox="none")
    assert attempt(appended, "a  b").text == "said a  b"


def test_a_missing_command_or_variable_is_told_at_once(monkeypatch):
    with pytest.raises(UsageError, match="'no-such-agent' is not installed"):
        attempt(Agent(("no-such-agent",), sandbox="none"))
    monkeypatch.delenv("NOT_THERE", raising=False)
    with pytest.raises(UsageError, match="needs the environment variable NOT_THERE"):
        attempt(Agent(("true",), sandbox="none", env=("NOT_THERE",)))


def test_a_prompt_that_is_no_argument_is_refused():
    with pytest.raises(CallError, match="stdin"):
        attempt(Agent(("true",), sandbox="none"), "x" * 200_000)
