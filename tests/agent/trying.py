"""Try small real agents: scripts that are run as commands, in a workspace of their own."""

import asyncio
import os
import shutil
import textwrap
from dataclasses import replace
from pathlib import Path

import services
from pennyweight.agent.command import CommandAgent
from pennyweight.agent.sandbox import bubblewrap_problem
from pennyweight.models.model import Message, Request, Settings
from pennyweight.suite.values import Agent, Workspace

PYTHON = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or "python3"


def needs_bubblewrap():
    """Skip a test where agents cannot run in bubblewrap."""
    if shutil.which("bwrap") is None:
        services.missing("bubblewrap")
    if problem := bubblewrap_problem():
        services.unavailable(problem)


def script(folder, code, **more):
    """Make an agent of a piece of Python."""
    path = Path(folder, "agent.py")
    path.write_text(textwrap.dedent(code))
    return Agent((PYTHON, str(path)), read=(str(path),), **more)


def asked(prompt="Do it.", system=None, work=None, **settings):
    """Make a request."""
    messages = [Message("system", system)] if system else []
    request = Request((*messages, Message("user", prompt)), Settings.of(settings))
    return replace(request, work=work or Workspace())


def attempts(agent, *requests):
    """Make attempts at the same time; gives their replies."""

    async def main():
        model = CommandAgent("tried", agent)
        try:
            return await asyncio.gather(*map(model.call, requests))
        finally:
            await model.close()

    return asyncio.run(main())


def attempt(agent, *arguments, **more):
    """Make one attempt; gives its reply."""
    return attempts(agent, asked(*arguments, **more))[0]


def in_workspaces(above, name="begun"):
    """List a file of running attempts, in folders and on disks that only their processes see."""
    seen = [Path(f"/proc/{pid}/root{above}") for pid in alive(str(above))]
    return [file for place in (above, *seen) for file in place.glob(f"*/*/work/{name}")]


def alive(mark):
    """List the processes that have a mark in their command line or environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                held = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if mark.encode() in held and state != "Z":
                found.append(int(entry.name))
    return found
