"""What is held against an agent: checks decide, and a fault that is not its own is no result."""

import asyncio
import json

import pytest

from agent.trying import asked, attempt, attempts, script
from pennyweight.agent.command import CommandAgent
from pennyweight.models.failure import CallError
from pennyweight.suite.values import Agent, Workspace


def test_checks_decide_whatever_the_agent_says(tmp_path, sandbox):
    agent = script(
        tmp_path,
        "import sys\nopen('answer', 'w').write(sys.argv[1])\nprint('I failed')\nsys.exit(1)",
        sandbox=sandbox,
    )
    work = Workspace(
        files={"answer": b"0"},
        verify=(("sh", "-c", 'test "$(cat answer)" = "$PENNYWEIGHT_TARGET"'),),
        keep=(("sh", "-c", "test -s answer"), ("sh", "-c", "grep -q never answer")),
        task="t",
        target="42",
    )
    right, wrong, empty = attempts(
        agent, *(asked(answer, work=work) for answer in ("42", "41", ""))
    )
    assert (right.passed, wrong.passed, empty.passed) == (True, False, False)
    checks = [(c["check"], c["before"], c["after"], c["holds"]) for c in right.work["checks"]]
    assert checks == [("verify", 1, 0, True), ("keep", 0, 0, True), ("keep", 1, 1, True)]
    assert [c["holds"] for c in empty.work["checks"]] == [False, False, True]


@pytest.mark.usefixtures("_bubblewrap")
def test_checks_meet_nothing_that_was_planted_at_home(tmp_path):
    agent = script(
        tmp_path,
        """
        import os, pathlib
        pathlib.Path(os.environ["HOME"], "planted").write_text("x")
        pathlib.Path(os.environ["TMPDIR"], "planted").write_text("x")
        """,
    )
    check = ("sh", "-c", 'test ! -e "$HOME/planted" && test ! -e "$TMPDIR/planted"')
    assert attempt(agent, work=Workspace(verify=(check,))).passed is True


def test_hidden_tests_are_neither_seen_nor_changed(tmp_path, sandbox):
    agent = script(
        tmp_path,
        """
        import os, pathlib
        print(os.listdir("."))
        os.symlink("/", "tests")
        pathlib.Path("check.sh").mkdir()
        """,
        sandbox=sandbox,
    )
    hidden = {"tests/a/check.sh": b"test ! -e right", "check.sh": b"#!/bin/sh\nexit 0\n"}
    work = Workspace(verify=(("sh", "tests/a/check.sh"), ("./check.sh",)), verify_files=hidden)
    reply = attempt(agent, work=work)
    assert reply.text == "[]"
    assert reply.passed is True
    assert "check.sh" not in reply.work["diff"]


def test_without_checks_success_is_left_to_the_answer(tmp_path):
    agent = script(tmp_path, "print(4)", sandbox="none")
    reply = attempt(agent)
    assert reply.passed is None
    assert reply.work["exit_code"] == 0


def test_a_workspace_that_cannot_be_made_is_no_result(tmp_path):
    agent = Agent(("true",), sandbox="none")
    with pytest.raises(CallError, match="cannot be created") as caught:
        attempt(agent, work=Workspace(str(tmp_path / "gone")))
    assert caught.value.kind == "workspace"
    assert not caught.value.retryable


def test_a_check_that_is_not_installed_is_no_result():
    work = Workspace(verify=(("no-such-check",),))
    with pytest.raises(CallError, match="'no-such-check' is not installed"):
        attempt(Agent(("true",), sandbox="none"), work=work)


OVERLOADED = {"type": "result", "is_error": True, "result": "API Error: 529 Overloaded"}


def test_an_api_that_is_down_is_no_result(tmp_path):
    code = f"import sys\nprint({json.dumps(OVERLOADED)!r})\nsys.exit(1)"
    agent = script(tmp_path, code, sandbox="none", output="claude-code")
    with pytest.raises(CallError, match="529 Overloaded") as caught:
        attempt(agent)
    assert caught.value.kind == "server"
    assert caught.value.retryable


@pytest.mark.parametrize("code", [1, 125, 126, 127])
def test_an_agent_cannot_pretend_that_its_sandbox_failed(tmp_path, code, sandbox):
    """The check ends as a broken one does, but only where the agent has worked."""
    line = f"echo 'bwrap: execvp x: nope' >&2; exit {code}"
    work = Workspace(verify=(("sh", "-c", f"test -e left || exit 1; {line}"),))
    agent = Agent((f"touch left; {line}",), shell=True, sandbox=sandbox)
    reply = attempt(agent, work=work)
    assert (reply.status, reply.passed, reply.work["exit_code"]) == ("ok", False, code)
    assert [(c["before"], c["after"]) for c in reply.work["checks"]] == [(1, code)]


@pytest.mark.usefixtures("_bubblewrap")
def test_a_sandbox_that_cannot_be_made_is_no_result(tmp_path):
    agent = Agent(("true",), read=(str(tmp_path / "gone"),))
    with pytest.raises(CallError, match=r"sandbox could not be created.*gone") as caught:
        attempt(agent)
    assert caught.value.kind == "workspace"


def test_a_check_that_the_agent_removed_has_failed(tmp_path, sandbox):
    agent = script(tmp_path, "import os\nos.unlink('check.sh')", sandbox=sandbox)
    work = Workspace(files={"check.sh": b"#!/bin/sh\nexit 0\n"}, verify=(("./check.sh",),))
    reply = attempt(agent, work=work)
    assert reply.passed is False
    assert [c["before"] for c in reply.work["checks"]] == [0]


def test_a_fault_that_passes_does_not_last(tmp_path):
    """What the checks before the agent could not do once, the next attempt tries again."""
    begin = tmp_path / "begin"
    work = Workspace(str(begin), verify=(("true",),))

    async def main():
        model = CommandAgent("tried", Agent(("true",), sandbox="none"))
        try:
            with pytest.raises(CallError, match="cannot be created"):
                await model.call(asked(work=work))
            begin.mkdir()
            return await model.call(asked(work=work))
        finally:
            await model.close()

    assert asyncio.run(main()).passed is True
