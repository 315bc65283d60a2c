"""An agent cannot grade itself: checks run in a fresh workspace with its answer alone."""

import os
import shutil
import sys
import textwrap

import pytest

from agent.trying import attempt, script
from pennyweight.agent.answer_files import AnswerRules, apply_answer, as_plain
from pennyweight.agent.diff import Snapshot
from pennyweight.suite.values import Workspace

HIDDEN_TEST = b"""
import calc
import colorsys


def test_sum():
    assert colorsys.rgb_to_hsv(0, 0, 4) == (4 / 6, 1, calc.add(2, 2))
"""
HIDDEN = {"t/test_x.py": HIDDEN_TEST}
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "t/test_x.py")
FAST = ("env", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1", *PYTEST)
WRONG = "def add(a, b):\n    return 5\n"
RIGHT = "def add(a, b):\n    return a + b\n"


def agent_that(tmp_path, code, sandbox="none"):
    return script(tmp_path, "import os, pathlib\n" + textwrap.dedent(code), sandbox=sandbox)


def work_with(**more):
    given = {"files": {"calc.py": WRONG.encode()}, "verify": (FAST,), "verify_files": HIDDEN}
    return Workspace(**{**given, **more})


def left_out(reply):
    return {one["path"]: one["why"] for one in reply.work.get("left_out", [])}


PASSING_CONFTEST = """
import pytest
@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.outcome = "passed"
    return report
"""
HIJACKS = {
    "pytest.py": "raise SystemExit(0)\n",
    "pluggy.py": "raise SystemExit(0)\n",
    "_pytest/__init__.py": "raise SystemExit(0)\n",
    "conftest.py": PASSING_CONFTEST,
    "t/conftest.py": PASSING_CONFTEST,
    "argparse.py": "raise SystemExit(0)\n",
    "t/colorsys.py": "def rgb_to_hsv(*_):\n    return 4 / 6, 1, 5\n",
    "pytest.ini": "[pytest]\naddopts = --collect-only\n",
    "setup.cfg": "[tool:pytest]\naddopts = --collect-only\n",
    "tox.ini": "[pytest]\naddopts = --collect-only\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--collect-only'\n",
    "evil-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1\n",
}


@pytest.mark.parametrize("name", HIJACKS)
def test_a_file_that_takes_over_the_test_runner_does_not_reach_it(tmp_path, name):
    files = {name: HIJACKS[name]}
    if name.startswith("evil"):
        files |= {"evil-1.dist-info/entry_points.txt": "[pytest11]\nevil = evil\n"}
        files |= {"evil.py": PASSING_CONFTEST}
    code = f"""
        for name, text in {files!r}.items():
            pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
            pathlib.Path(name).write_text(text)
    """
    verify = (PYTEST if name.startswith("evil") else FAST,)
    reply = attempt(agent_that(tmp_path, code), work=work_with(verify=verify))
    assert reply.passed is False
    assert name in left_out(reply)
    work = work_with(verify=verify, verify_in="workspace")
    old = attempt(agent_that(tmp_path, code), work=work)
    assert old.passed is True, "the attack works where checks run in the workspace"
    assert "left_out" not in old.work


def test_the_answer_reaches_the_checks(tmp_path, sandbox):
    code = f"""
        pathlib.Path("calc.py").write_text({RIGHT!r})
        pathlib.Path("old").unlink()
        os.chmod("run.sh", 0o755)
        os.makedirs("pkg/sub")
        pathlib.Path("pkg/__init__.py").write_text("")
        pathlib.Path("pkg/types.py").write_text("x = 1")
        os.symlink("calc.py", "link.py")
        os.makedirs("empty/deep")
        os.remove("gone/a")
        os.rmdir("gone")
    """
    line = (
        "test ! -e old && ./run.sh && test -d empty/deep && test ! -e gone && test -L link.py && "
        'python3 -c "import calc, pkg.types; assert calc.add(2, 2) == 4"'
    )
    files = {"calc.py": WRONG.encode(), "old": b"x", "run.sh": b"exit 0\n", "gone/a": b"x"}
    work = Workspace(files=files, verify=(("sh", "-c", line),))
    reply = attempt(agent_that(tmp_path, code, sandbox), work=work)
    assert reply.passed is True, reply.work["checks"]
    assert "left_out" not in reply.work


def test_protected_files_that_did_not_change_are_not_reported(tmp_path):
    code = "pathlib.Path('conftest.py').touch()\npathlib.Path('calc.py').write_text('x')"
    files = {"conftest.py": b"# ours\n", "calc.py": b""}
    reply = attempt(
        agent_that(tmp_path, code), work=work_with(files=files, verify=(("grep", "x", "calc.py"),))
    )
    assert reply.passed is True
    assert "left_out" not in reply.work


def test_answer_paths_name_what_counts(tmp_path):
    code = """
        for name in ("src/a.py", "src/conftest.py", "tests/b.py", "tests/conftest.py", "c.txt"):
            pathlib.Path(name).parent.mkdir(exist_ok=True)
            pathlib.Path(name).write_text("x")
    """
    check = ("sh", "-c", "find . -type f | sort")
    paths = ("src", "tests/conftest.py", "*.txt")
    reply = attempt(agent_that(tmp_path, code), work=Workspace(verify=(check,), answer_paths=paths))
    found = reply.work["checks"][0]["output"].split()
    assert found == ["./c.txt", "./src/a.py", "./tests/conftest.py"]
    assert left_out(reply) == {
        "src/conftest.py": "configures a test runner",
        "tests/b.py": "is not in answer_paths",
    }
    nothing = Workspace(verify=(check,), answer_paths=())
    assert len(left_out(attempt(agent_that(tmp_path, code), work=nothing))) == 5


@pytest.mark.parametrize(
    ("verify", "protected"), [("make -s test", True), ("python3 make.py || true", False)]
)
def test_a_makefile_counts_unless_a_check_calls_make(tmp_path, verify, protected):
    code = "pathlib.Path('Makefile').write_text('test:\\n\\ttrue\\n')"
    work = Workspace(files={"Makefile": b"test:\n\tfalse\n"}, verify=(("sh", "-c", verify),))
    reply = attempt(agent_that(tmp_path, code), work=work)
    assert ("Makefile" in left_out(reply)) is protected
    assert reply.passed is not protected or shutil.which("make") is None


def rules_of(tmp_path, initial, after, **more):
    for folder, files in (("initial", initial), ("after", after)):
        (tmp_path / folder).mkdir()
        for name, text in files.items():
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return AnswerRules(tmp_path / "initial", tmp_path / "after", Workspace(**more))


@pytest.mark.parametrize(
    ("path", "is_answer"),
    [
        ("json.py", False),
        ("json/__init__.py", False),
        ("json/data.py", True),
        ("json.txt", True),
        ("old/types.py", True),
        ("plain/types.py", False),
        ("tests/random.py", False),
        ("new/types.py", True),
        ("new/random.cpython-312-x86_64-linux-gnu.so", True),
        ("bare/types.py", False),
        ("pytest_evil.py", False),
        ("_hypothesis_pytestplugin.py", False),
        ("typing_extensions.py", False),
        ("rich/__init__.py", False),
        ("rich.txt", True),
        ("tests/test_more.py", True),
        ("a/__pycache__/b.cpython-312.pyc", False),
        ("sub/.git/hooks/pre-commit", False),
        (".git/hooks/pre-commit.sample", True),
        (".git/objects/ab/cd", True),
        (".git/config", False),
        ("node_modules/.bin/jest", False),
        ("node_modules/left/index.js", True),
        ("a/b/sitecustomize.py", False),
        ("x.pth", False),
        ("pyproject.toml", True),
        ("package.json", False),
    ],
)
def test_what_is_protected(tmp_path, path, is_answer):
    initial = {
        "old/__init__.py": "",
        "plain/a.py": "",
        "pyproject.toml": "[project]\nname = 'a'\n[tool.x]\ny = 1\n",
        "package.json": '{"scripts": {"test": "jest"}}',
    }
    after = {
        "new/__init__.py": "",
        "plain/__init__.py": "",
        "tests/__init__.py": "",
        "bare/types.py": "",
        "pyproject.toml": "[project]\nname = 'b'\n[tool.x]\ny = 1\n",
        "package.json": '{"scripts": {"test": "true"}}',
    }
    rules = rules_of(tmp_path, initial, after, verify_files={"tests/test_a.py": b""})
    assert (rules.why_left_out(path) is None) is is_answer


@pytest.mark.parametrize(
    ("link", "is_answer"),
    [
        ("json", False),
        ("pytest", False),
        ("plain/types", False),
        ("mypy", False),
        ("evil-1.0.dist-info", False),
        ("node_modules", False),
        ("node_modules/.bin", False),
        (".venv", False),
        ("a/__pycache__", False),
        (".git/hooks", False),
        ("pyproject.toml", False),
        ("package.json", False),
        ("tests", False),
        ("old", False),
        ("latest", True),
        ("docs/json", False),
        ("node_modules/left", True),
    ],
)
def test_a_link_is_no_way_around_the_protection(tmp_path, link, is_answer):
    rules = rules_of(tmp_path, {"old/a": "", "plain/a": ""}, {}, verify_files={"tests/a.py": b""})
    (rules.after / link).parent.mkdir(parents=True, exist_ok=True)
    (rules.after / link).symlink_to("/workspace/helper")
    assert (rules.why_left_out(link) is None) is is_answer


def test_a_link_to_a_package_does_not_replace_the_test_runner(tmp_path):
    code = """
        os.mkdir("helper")
        for name in ("__init__.py", "__main__.py"):
            pathlib.Path("helper", name).write_text("raise SystemExit(0)")
        os.symlink("helper", "pytest")
    """
    reply = attempt(agent_that(tmp_path, code), work=work_with())
    assert reply.passed is False
    assert list(left_out(reply)) == ["pytest"]


def test_nothing_is_written_through_a_link(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    target = tmp_path / "target"
    target.mkdir()
    (target / "lib").symlink_to(outside)
    rules = rules_of(tmp_path, {}, {"lib/a": "x", "b": "y"})
    found = apply_answer(rules, Snapshot({}), target)
    assert [one.path for one in found] == ["lib/a"]
    assert "through a link" in found[0].why
    assert not list(outside.iterdir())
    assert (target / "b").read_text() == "y"


def test_a_workspace_that_became_a_link_has_no_answer(tmp_path):
    code = """
        here = os.getcwd()
        os.chdir("/")
        os.rename(here, here + ".away")
        os.symlink("/etc", here)
    """
    work = Workspace(files={"a": b"x"}, verify=(("sh", "-c", "ls"),))
    reply = attempt(agent_that(tmp_path, code), work=work)
    assert left_out(reply) == {".": "cannot be read"}
    assert reply.work["checks"][0]["output"] == "a\n"


def test_a_long_list_is_cut(tmp_path):
    rules = rules_of(tmp_path, {}, {f"{n}/conftest.py": "x" for n in range(120)})
    (tmp_path / "target").mkdir()
    found = as_plain(apply_answer(rules, Snapshot({}), tmp_path / "target"))
    assert len(found) == 101
    assert found[-1] == {"path": "…", "why": "and 20 more files"}


@pytest.mark.skipif(os.getuid() == 0, reason="root can write everything")
def test_an_answer_in_a_folder_that_cannot_be_written_counts(tmp_path):
    code = "os.mkdir('a'); pathlib.Path('a/b').write_text('x'); os.chmod('a', 0o555)"
    work = Workspace(verify=(("test", "-s", "a/b"),))
    assert attempt(agent_that(tmp_path, code), work=work).passed is True
