"""A check may fail before an agent begins for what the agent shall do, and for nothing else."""

import pytest

import pennyweight
from agent.coding import BAD, PYTEST, TEST, began, rows, suite
from pennyweight.errors import InputError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PENNYWEIGHT_WORKSPACES", str(tmp_path / "workspaces"))
    monkeypatch.setenv("PENNYWEIGHT_STORE", str(tmp_path / "store.db"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


BROKEN = {
    "a tool that is not there": ({"verify": "pytestt -q test_calc.py"}, "not found.*127"),
    "a module that is not there": (
        {"verify": "python3 -m pytestt -q test_calc.py"},
        "no module 'pytestt'",
    ),
    "a file that cannot be executed": ({"verify": "./test_calc.py"}, "cannot be executed.*126"),
    "a line that the shell cannot read": ({"verify": "test -f 'calc.py"}, "shell cannot read"),
    "a hidden test with a syntax error": (
        {"verify_files": {"test_calc.py": TEST.replace("):", ")")}},
        "'?test_calc.py'? has a syntax error",
    ),
    "a hidden test with a syntax error, without its traceback": (
        {
            "verify": f"{PYTEST} --tb=no test_calc.py",
            "verify_files": {"test_calc.py": TEST.replace("):", ")")},
        },
        "'?test_calc.py'? has a syntax error",
    ),
    "a hidden script with a syntax error": (
        {"verify": "python3 check.py", "verify_files": {"check.py": "def f(:\n"}},
        "'?check.py'? has a syntax error",
    ),
    "a hidden test that needs a package": (
        {"verify_files": {"test_calc.py": f"import numpyy\n{TEST}"}},
        "no module 'numpyy'",
    ),
    "a project that needs a package": (
        {
            "task": {"files": {"app.py": "import numpyy\n"}},
            "verify_files": {"test_calc.py": f"import app\n{TEST}"},
        },
        "no module 'numpyy'",
    ),
    "a hidden test that needs another version": (
        {"verify_files": {"test_calc.py": f"from yaml import nothing_of_it\n{TEST}"}},
        "nothing_of_it from yaml",
    ),
    "a test of another name": ({"verify": f"{PYTEST} test_cal.py"}, "refuses its arguments"),
    "an option that pytest does not have": (
        {"verify": f"{PYTEST} --no-such-option test_calc.py"},
        "refuses its arguments",
    ),
    "a selection of no tests": ({"verify": f"{PYTEST} -k nothing test_calc.py"}, "finds no tests"),
    "a module that pytest does not find": (
        {
            "task": {"files": {"calc.py": BAD}},
            "verify": "python3 -P -m pytest -q -p no:cacheprovider tests/test_calc.py",
            "verify_files": {"tests/test_calc.py": TEST},
        },
        "'calc', even if the workspace has it",
    ),
    "a package that is needed after the solution": (
        {"verify_files": {"test_calc.py": f"{TEST}\nimport numpyy\n"}},
        "no module 'numpyy'",
    ),
    "a package that is needed after a part of the solution": (
        {"verify_files": {"test_calc.py": "from calc.more.parts import add\nimport numpyy\n"}},
        "no module 'numpyy'",
    ),
    "a solution that pytest will not find": (
        {
            "verify": "python3 -P -m pytest -q -p no:cacheprovider tests/test_calc.py",
            "verify_files": {"tests/test_calc.py": TEST},
        },
        "no module 'calc', even if the workspace has it",
    ),
    "a task that is solved": ({"verify": "true"}, "succeeds already"),
    "a check that never ends": (
        {"verify": "sleep 600", "subject": {"timeout": 0.5}},
        "did not end in time",
    ),
    "something to keep that is not there": ({"keep": "pytestt -q"}, "keep: pytestt.*not found"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_check_is_told_before_an_agent_begins(folder, name):
    more, message = BROKEN[name]
    with pytest.raises(InputError, match=f"suite.yaml, task 'add': '.*{message}") as caught:
        pennyweight.run(suite(folder, **more))
    assert "Nothing was called." in str(caught.value)
    assert began(folder) == 0


SOUND = {
    "a module that the task asks for": {},
    "a module that the task names otherwise": {"prompt": "Write a module `calc` that adds."},
    "a module that counts as the answer": {"prompt": "Add.", "answer_paths": ["calc.py"]},
    "a module that a guide names": {
        "prompt": "Add.",
        "task": {"files": {"TASK.md": "Write calc.py."}},
    },
    "a module of a package that is there": {
        "prompt": "Add it.",
        "task": {"files": {"pack/__init__.py": ""}},
        "verify_files": {
            "test_calc.py": "import pack.more\n\ndef test_it():\n    assert pack.more.x\n"
        },
    },
    "a name of a module that is there": {
        "prompt": "Add it.",
        "task": {"files": {"calc.py": "x = 1\n"}},
    },
    "a syntax error that the agent shall correct": {
        "prompt": "Correct it.",
        "task": {"files": {"calc.py": "def add(a, b) return 1\n"}},
    },
    "a script that the task asks for": {"prompt": "Write run.sh.", "verify": "./run.sh"},
    "a program that the task asks for": {
        "prompt": "Compile it to a program called solve.",
        "verify": "./solve < /dev/null | grep 4",
    },
    "a program without an ending": {"prompt": "Build ./solve.", "verify": "./solve"},
    "a module to run": {"prompt": "Write the module calc.", "verify": "python3 -m calc"},
    "a file to read": {"prompt": "Write calc.py.", "verify": "python3 calc.py"},
    "tests that the agent writes": {
        "prompt": "Write tests in tests/test_calc.py.",
        "verify": f"{PYTEST} tests/test_calc.py",
        "verify_files": {},
    },
    "tests that the agent writes, found by pytest": {
        "prompt": "Write tests in test_calc.py.",
        "verify": PYTEST,
        "verify_files": {},
    },
    "another program that ends with 2": {"verify": "grep -q x missing.txt"},
    "a check that may succeed before": {"verify": "true", "verify_before": "any"},
    "a missing command that the suite allows": {"verify": "nothing", "verify_before": "any"},
}


@pytest.mark.parametrize("name", SOUND)
def test_a_check_may_fail_for_what_the_agent_shall_do(folder, name):
    (row,) = rows(pennyweight.run(suite(folder, **SOUND[name])))
    assert (row["status"], row["error"]) == ("ok", None)
    assert began(folder) == 1
