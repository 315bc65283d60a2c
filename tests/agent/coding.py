"""Suites around an agent that writes a Python module, which pytest verifies."""

import yaml

PYTEST = "python3 -m pytest -q -p no:cacheprovider"
TEST = "from calc import add\n\ndef test_add():\n    assert add(2, 2) == 4\n"
GOOD, BAD = "def add(a, b): return a + b", "def add(a, b): return a - b"


def suite(folder, solution=GOOD, prompt="Write calc.py with a function add.", **more):
    """Write a suite whose agent leaves a mark next to it when it begins."""
    mark = folder / "began"
    code = f"open({str(mark)!r}, 'a').write('x'); open('calc.py', 'w').write({solution!r})"
    (folder / "agent.py").write_text(code)
    tasks = [{"id": "add", "input": prompt, **more.pop("task", {})}]
    subject = {"name": "coder", "command": ["python3", "./agent.py"], "sandbox": "none"}
    table = {
        "suite": "s",
        "tasks": tasks,
        "verify": f"{PYTEST} test_calc.py",
        "verify_files": {"test_calc.py": TEST},
        "subjects": [{**subject, **more.pop("subject", {})}],
        **more,
    }
    path = folder / "suite.yaml"
    path.write_text(yaml.safe_dump(table, sort_keys=False))
    return path


def began(folder):
    mark = folder / "began"
    return len(mark.read_text()) if mark.exists() else 0


def rows(run):
    return [row for frame in run.store.records(run.id) for row in frame.to_dicts()]
