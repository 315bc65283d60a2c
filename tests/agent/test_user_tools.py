"""Checks run with the tools of whoever runs the suite: its PATH and virtual environment."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent.trying import asked, attempt, attempts, script
from pennyweight.agent.user_tools import UserTools
from pennyweight.suite.values import Agent, Workspace

PACKAGES = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments")
TEST = b"from calc import add\n\ndef test_add():\n    assert add(2, 2) == 4\n"
VERIFY = (("sh", "-c", "python3 -m pytest -q -p no:cacheprovider test_calc.py"),)
WORK = Workspace(verify=VERIFY, verify_files={"test_calc.py": TEST})
GOOD, BAD = "def add(a, b): return a + b", "def add(a, b): return a - b"


def environment(folder):
    """Make a virtual environment that contains pytest."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = Path(folder).glob("lib/python*/site-packages")
    for name in PACKAGES:
        shutil.copytree(Path(pytest.__file__).parent.parent / name, packages / name)
    shutil.copy(Path(pytest.__file__).parent.parent / "py.py", packages)
    (packages / "plugged").mkdir()
    return Path(folder)


@pytest.fixture(scope="module")
def venv(tmp_path_factory):
    return environment(tmp_path_factory.mktemp("tools") / "venv")


@pytest.fixture
def active(venv, monkeypatch):
    """Activate the environment, as its `activate` does."""
    monkeypatch.setenv("VIRTUAL_ENV", str(venv))
    monkeypatch.setenv("PATH", f"{venv}/bin", prepend=":")
    return venv


def written(folder, solution, sandbox):
    """Let an agent write a module, and verify it."""
    agent = script(folder, f"open('calc.py', 'w').write({solution!r})", sandbox=sandbox)
    return attempts(agent, asked("Write calc.py.", work=WORK))[0]


@pytest.mark.usefixtures("active")
def test_pytest_of_a_virtual_environment_verifies(tmp_path, sandbox):
    good = written(tmp_path, GOOD, sandbox)
    assert good.passed is True, good.work["checks"]
    assert written(tmp_path, BAD, sandbox).passed is False


def test_an_environment_is_kept_that_was_not_activated(tmp_path, monkeypatch, sandbox):
    """`.venv/bin/pennyweight` is enough."""
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    reply = written(tmp_path, GOOD, sandbox)
    assert reply.passed is True, reply.work["checks"]


@pytest.mark.usefixtures("active")
def test_checks_see_of_the_environment_only_its_path_and_name(tmp_path, monkeypatch, sandbox):
    monkeypatch.setenv("SOME_KEY", "sk-secret-123456")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    line = "env | cut -d= -f1 | sort | tr '\\n' ' '"
    work = Workspace(verify=(("sh", "-c", line),), task="t", target="42")
    (check,) = attempt(script(tmp_path, "", sandbox=sandbox, env=("SOME_KEY",)), work=work).work[
        "checks"
    ]
    seen = set(check["output"].split()) - {"PWD", "_", "SHLVL", "OLDPWD"}
    assert seen == {
        *("HOME", "LANG", "PATH", "TMPDIR", "VIRTUAL_ENV"),
        *("PENNYWEIGHT_ATTEMPT", "PENNYWEIGHT_TARGET", "PENNYWEIGHT_TASK"),
    }


@pytest.mark.usefixtures("active")
def test_an_agent_sees_none_of_it(tmp_path, sandbox):
    reply = attempt(script(tmp_path, "import os; print(sorted(os.environ))", sandbox=sandbox))
    assert "VIRTUAL_ENV" not in reply.text


@pytest.mark.usefixtures("_bubblewrap")
def test_the_environment_cannot_be_written_and_nothing_beside_it_is_seen(tmp_path, monkeypatch):
    """The environment may be the project itself, with the targets next to `bin`."""
    project = environment(tmp_path / "project")
    (project / "targets.jsonl").write_text("42")
    monkeypatch.setenv("VIRTUAL_ENV", str(project))
    monkeypatch.setenv("PATH", f"{project}/bin", prepend=":")
    line = f"ls {project}; touch {project}/bin/x {project}/lib/x; which python3"
    (check,) = attempt(script(tmp_path, ""), work=Workspace(verify=(("sh", "-c", line),))).work[
        "checks"
    ]
    assert "targets" not in check["output"]
    assert check["output"].count("Read-only file system") == 2
    assert f"\n{project}/bin/python3\n" in check["output"]


@pytest.mark.usefixtures("active")
def test_an_agent_cannot_replace_a_package_of_the_environment(tmp_path, sandbox):
    agent = script(tmp_path, "open('plugged.py', 'w').write('x')", sandbox=sandbox)
    reply = attempt(agent, "Write calc.py.", work=WORK)
    assert [one["path"] for one in reply.work["left_out"]] == ["plugged.py"]


def test_relative_folders_of_the_path_are_not_kept(monkeypatch):
    """They would be folders of the workspace, where the agent may put a `python3`."""
    monkeypatch.setenv("PATH", ":.:bin:/usr/bin")
    tools = UserTools.of(Agent(("true",), sandbox="none"))
    assert all(Path(one).is_absolute() for one in tools.path.split(":"))


def test_the_environment_of_a_program_that_was_installed_alone_is_nobodys(tmp_path, monkeypatch):
    (tmp_path / "pipx_metadata.json").touch()
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    tools = UserTools.of(Agent(("true",), sandbox="none"))
    assert (tools.variables, tools.read) == ((), ())
    assert str(tmp_path) not in tools.path
