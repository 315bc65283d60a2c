"""A store runs no code, reads no files and names no key, unless a person names or confirms it."""

import grp
import json
import os
import pty
import pwd
import subprocess
import sys
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from cli.command import pennyweight
from engine.command import PENNYWEIGHT
from engine.command import run as command
from pennyweight.api.run import resume
from pennyweight.api.stored_suites import open_stored
from pennyweight.api.suites import is_own_file
from pennyweight.errors import UntrustedError, UsageError
from pennyweight.store.store import Store
from store.samples import RUN, call, record
from store.samples import run as stored_run
from web.serving import serving

EVIL = "from pathlib import Path\nPath('MARK').touch()\ndef f(*_):\n    return '2'\n"
TASK = '{id: a, input: "1 + 1", target: "2"}'
MODEL = "openai/gpt-5"
SETTINGS = {"subjects": ["m"], "tiers": ["T0"], "answer": {"kind": "last_line", "value": ""}}
SETTINGS |= {"match": {"kind": "exact", "absolute": "0", "relative": "0", "separator": "|",
             "each": "exact"}}  # fmt: skip


def suite(subjects, task=TASK, more=""):
    tasks = task if task.endswith("jsonl") else f"[{task}]"
    return f"suite: s\ntasks: {tasks}\nsubjects: [{subjects}]\n{more}\n"


def task(more):
    return TASK.replace("}", f", {more}}}")


HOSTILE = {
    "command": suite('{name: m, command: "touch MARK", sandbox: none}'),
    "function": suite('{name: m, model: "python:evil:f"}'),
    "library": suite('{name: m, model: "python:subprocess:getoutput"}'),
    "check": suite(MODEL, task('checks: [{command: "touch MARK"}]')),
    "check as text": suite(MODEL, task("""checks: '[{"not_command": "touch MARK"}]'""")),
    "function as a check": suite(MODEL, task('must_not: [{python: "evil:f"}]')),
    "verify": suite("{name: m, command: 'true'}", more='verify: "touch MARK"\nsettings: {}'),
    "tasks": suite(MODEL, "secret.jsonl"),
    "examples": suite(MODEL, more="examples: secret.jsonl"),
    "recording": suite('"replay:secret.jsonl"'),
    "judge": suite(MODEL, more='judge: {model: "python:evil:f"}'),
    "scorers": suite(MODEL, more="scorers: [evil.py]"),
    "rubric": suite(MODEL, more=f"judge: {{model: {MODEL}, rubric: rubric.yaml}}"),
}
SHOWN = {
    "command": "run the command touch MARK, without a sandbox",
    "function": "call the function evil:f",
    "library": "call the function subprocess:getoutput",
    "check": 'run the check command: "touch MARK"',
    "check as text": 'run the check not_command: "touch MARK"',
    "function as a check": "call the function evil:f",
    "verify": "run the command touch MARK",
    "tasks": "secret.jsonl",
    "examples": "secret.jsonl",
    "recording": "call replay:secret.jsonl",
    "judge": "call the function evil:f",
    "scorers": "run the scorers in",
    "rubric": "rubric.yaml",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-reader")
    (tmp_path / "evil.py").write_text(EVIL)
    row = {"id": "x", "input": "i", "output": "o", "target": "t"}
    (tmp_path / "secret.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "rubric.yaml").write_text("categories: {a: {items: [It is good.]}}\n")
    return tmp_path


def insert(address, text, path, **more):
    """Add a run as someone else would who can write to the store."""
    with closing(Store(address)) as store:
        store.add_run(stored_run(text=text, path=str(path), **{"settings": SETTINGS, **more}))
        store.write([record("a", response="FINAL_ANSWER: 2", input="1 + 1")], [call("a")])


def untouched(folder):
    return not (folder / "MARK").exists()


def refused(said, kind):
    """Whether a command names what the stored text would use, and what to type instead."""
    return SHOWN[kind] in said and f"pennyweight run --resume {RUN} --suite FILE" in said


@pytest.mark.parametrize("kind", HOSTILE)
def test_the_text_of_a_store_is_refused_and_shown(kind, store_address, folder):
    insert(store_address, HOSTILE[kind], folder / "absent.yaml")
    for extra in ((), ("--yes",), ("--dry-run",)):
        done = pennyweight("run", "--resume", RUN, *extra, "--store", store_address)
        assert (done.code, refused(done.err, kind)) == (2, True), done.err
    assert untouched(folder)


def test_a_process_refuses_the_text_of_a_store(store_address, folder):
    insert(store_address, HOSTILE["command"], folder / "absent.yaml")
    code, said = command(store_address, "run", "--resume", RUN, stdin=subprocess.DEVNULL)
    assert (code, refused(said, "command"), "Traceback" in said) == (2, True, False), said
    assert untouched(folder)


def test_no_use_can_pass_for_several(store_address, folder):
    command_line = r'{name: m, command: "touch MARK\n  - call openai/gpt-5"}'
    insert(store_address, suite(command_line), folder / "absent.yaml")
    with pytest.raises(UntrustedError) as caught:
        resume(RUN, store=store_address)
    assert caught.value.uses == (r"run the command touch MARK\n  - call openai/gpt-5",)


@pytest.mark.parametrize("kind", ["judge", "rubric"])
def test_judges_of_a_store_are_refused_and_shown(kind, store_address, folder):
    insert(store_address, HOSTILE[kind], folder / "absent.yaml")
    code, said = command(store_address, "judge", RUN, stdin=subprocess.DEVNULL)
    assert (code, SHOWN[kind] in said) == (2, True), said
    assert f"pennyweight judge {RUN} --suite FILE" in said
    assert untouched(folder)


def test_judges_named_by_the_reader_are_asked_in_place_of_those_of_a_store(store_address, folder):
    (folder / "mine.py").write_text("def f(*_):\n    return 'no verdict'\n")
    insert(store_address, HOSTILE["judge"], folder / "absent.yaml")
    options = ("--model", "python:mine:f", "--rubric", "rubric.yaml")
    code, said = command(store_address, "judge", RUN, *options, stdin=subprocess.DEVNULL)
    assert "comes from the store" not in said
    assert code == 4, said  # the judge was asked, and its reply is not a judgment
    assert untouched(folder)


def test_no_key_is_sent_to_an_address_of_a_store(store_address, folder):
    seen = []

    class Thief(BaseHTTPRequestHandler):
        def do_POST(self):
            seen.append(dict(self.headers))
            self.send_error(500)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Thief) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/v1"
        model = f'{{model: {MODEL}, base_url: "{address}", key_env: OPENAI_API_KEY}}'
        text = suite(model, more=f"judge: {{model: {model}}}")
        insert(store_address, text, folder / "absent.yaml")
        shown = f"call {MODEL} at {address} with the key in OPENAI_API_KEY"
        for words in (("run", "--resume", RUN), ("judge", RUN)):
            code, said = command(store_address, *words, stdin=subprocess.DEVNULL)
            assert (code, shown in said) == (2, True), said
        server.shutdown()
    assert seen == []


def test_a_suite_of_known_models_needs_no_confirmation(store_address, folder):
    insert(store_address, suite(MODEL), folder / "absent.yaml")
    with closing(Store(store_address)) as store:
        (run,) = store.runs()
        assert open_stored(run, trust=lambda *_: False).subjects[0].model == MODEL


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_person_confirms_what_is_shown(answer, store_address, folder):
    text = suite('{name: m, model: "python:evil:f"}')
    insert(store_address, text, folder / "absent.yaml", status="stopped")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*PENNYWEIGHT, "run", "--resume", RUN, "--yes"],
        env={**os.environ, "PENNYWEIGHT_STORE": store_address},
        stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    said, _ = process.communicate(timeout=60)
    os.close(ours)
    assert "  - call the function evil:f" in said
    assert untouched(folder) is (answer == "n"), said
    assert (process.returncode == 2) is (answer == "n"), said


def test_the_file_of_the_suite_can_be_named(store_address, folder):
    insert(store_address, HOSTILE["function"], folder / "absent.yaml")
    (folder / "mine.py").write_text("def f(*_):\n    return 'FINAL_ANSWER: 2'\n")
    (folder / "mine.yaml").write_text(suite('{name: m, model: "python:mine:f"}'))
    words = ("run", "--resume", RUN, "--suite", "mine.yaml", "--yes")
    code, said = command(store_address, *words, stdin=subprocess.DEVNULL)
    assert code == 0, said
    assert untouched(folder)
    with closing(Store(store_address)) as store:
        assert store.find(RUN).path == str(folder / "mine.yaml")


def test_a_file_that_others_can_write_is_not_used(store_address, folder):
    path = folder / "theirs.yaml"
    path.write_text(HOSTILE["function"])
    assert is_own_file(path)
    path.chmod(0o666)
    assert not is_own_file(path)
    path.chmod(0o664)
    group, user = grp.getgrgid(path.stat().st_gid), pwd.getpwuid(os.geteuid()).pw_name
    private = group.gr_name == user and set(group.gr_mem) <= {user}
    assert is_own_file(path) is private  # many systems give each user a group of their own
    if os.geteuid() == 0:
        os.chown(path, 0, 1)
        assert not is_own_file(path)
        os.chown(path, 0, 0)
        os.chown(folder, 0, 1)
        folder.chmod(0o770)
        assert not is_own_file(path)
        folder.chmod(0o700)
        assert is_own_file(path)
    path.chmod(0o666)
    assert not is_own_file(folder)
    assert not is_own_file("\0")
    insert(store_address, HOSTILE["function"], path)
    code, said = command(store_address, "run", "--resume", RUN, stdin=subprocess.DEVNULL)
    assert (code, "call the function evil:f" in said) == (2, True)
    if os.geteuid() == 0:
        path.chmod(0o644)
        os.chown(path, 1, 1)
        assert not is_own_file(path)


@pytest.mark.parametrize(
    "text",
    [
        suite(MODEL, "pipe.jsonl"),
        suite(MODEL, more=f"judge: {{model: {MODEL}, rubric: pipe.jsonl}}"),
        suite("{name: m, command: 'true'}", more="tiers: {T0: {files: {a: {from: pipe.jsonl}}}}"),
    ],
)
def test_a_pipe_that_a_store_names_is_not_opened(text, folder):
    os.mkfifo(folder / "pipe.jsonl")
    store = str(folder / "store.db")
    insert(store, text, folder / "absent.yaml")
    done = subprocess.run(
        [*PENNYWEIGHT, "run", "--resume", RUN, "--store", store],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30, check=False,
    )  # fmt: skip
    assert (done.returncode, "/pipe.jsonl" in done.stderr) == (2, True), done.stderr


OBSERVED = """
import os, sys
def observe(event, given):
    if event in ("open", "os.scandir", "socket.connect", "subprocess.Popen"):
        os.write(1, f"OBSERVED {event} {given}\\n".encode())
sys.addaudithook(observe)
from pennyweight.cli import main
main()
"""


@pytest.mark.parametrize(
    "text",
    [
        suite(MODEL, "there/tasks.jsonl"),
        suite(MODEL, more="examples: there/tasks.jsonl"),
        suite(MODEL, more=f"judge: {{model: {MODEL}, rubric: there/rubric.yaml}}"),
        suite("{name: m, command: 'true'}", more="workspace: {copy: there}"),
        suite("{name: m, command: 'true'}", more="workspace: {git: there}"),
        suite("{name: m, command: 'true'}", more="tiers: {T0: {files: {a: {from: there}}}}"),
        suite("{name: m, command: 'true'}", task("verify_files: {a: {from: there}}")),
        suite("{name: m, command: 'true'}", task("solution: {patch: there/fix.diff}")),
        "suite: s\ntasks: {from: 'hf:there/tasks'}\nsubjects: [openai/gpt-5]\n",
    ],
)
def test_nothing_that_a_store_names_is_read_before_a_person_confirms(text, folder):
    there = folder / "there"
    there.mkdir()
    (there / "tasks.jsonl").write_text(TASK)
    (there / "rubric.yaml").write_text("categories: {a: {items: [It is good.]}}\n")
    store = str(folder / "store.db")
    insert(store, text, folder / "absent.yaml")
    for words in (("run", "--resume", RUN), *([("judge", RUN)] if "judge" in text else [])):
        done = subprocess.run(
            [sys.executable, "-c", OBSERVED, *words, "--store", store],
            capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30, check=False,
        )  # fmt: skip
        assert (done.returncode, "there" in done.stderr) == (2, True), done.stderr
        seen = [line for line in done.stdout.splitlines() if line.startswith("OBSERVED")]
        assert [line for line in seen if "there" in line or "open" not in line] == []


def test_what_a_confirmed_file_adds_is_confirmed_too(folder):
    task = {"id": "a", "input": "i", "checks": [{"command": "touch MARK"}]}
    (folder / "tasks.jsonl").write_text(json.dumps(task))
    store = str(folder / "store.db")
    insert(store, suite(MODEL, "tasks.jsonl"), folder / "absent.yaml", status="stopped")
    asked = []

    def trust(_, uses):
        asked.append(uses)
        return len(asked) == 1

    with closing(Store(store)) as opened, pytest.raises(UntrustedError) as caught:
        open_stored(opened.find(RUN), trust=trust)
    assert asked == [[f"read {folder}/tasks.jsonl"], ['run the check command: "touch MARK"']]
    assert caught.value.uses == tuple(asked[1])
    with serving(folder, "--store", store) as server:
        _, first = server.post(f"/api/runs/{RUN}/resume", {})
        status, second = server.post(f"/api/runs/{RUN}/resume?trust={first['trust']}", {})
        assert (status, "touch MARK" in second["detail"]) == (409, True)
        assert untouched(folder)
        assert server.post(f"/api/runs/{RUN}/resume?trust={second['trust']}", {})[0] == 202


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
def test_the_folder_of_a_suite_and_links_to_it_are_the_readers_own(store_address, folder):
    """A link of another user to the reader's suite would load the functions next to the link."""
    own, others = folder / "own", folder / "others"
    for one in (own, others):
        one.mkdir()
    path = own / "suite.yaml"
    path.write_text(HOSTILE["function"])
    (own / "evil.py").write_text("def f(*_):\n    return '2'\n")
    (others / "evil.py").write_text(EVIL)
    link, way = others / "suite.yaml", folder / "way"
    link.symlink_to(path)
    way.symlink_to(own)
    assert (is_own_file(path), is_own_file(link), is_own_file(way / "suite.yaml")) == (True,) * 3
    os.chown(others, 1, 1)
    os.chown(way, 1, 1, follow_symlinks=False)
    insert(store_address, HOSTILE["function"], link)
    code, said = command(store_address, "run", "--resume", RUN, stdin=subprocess.DEVNULL)
    assert (code, "call the function evil:f" in said, untouched(folder)) == (2, True, True), said
    assert not is_own_file(way / "suite.yaml")
    own.chmod(0o1777)
    assert not is_own_file(path)


def test_python_refuses_too_and_a_watcher_may_allow(store_address, folder):
    insert(store_address, HOSTILE["function"], folder / "absent.yaml")
    with pytest.raises(UntrustedError) as caught:
        resume(RUN, store=store_address)
    assert caught.value.uses == ("call the function evil:f",)


def test_the_page_shows_what_a_stored_suite_would_do_before_it_does_it(folder):
    address = str(folder / "store.db")
    (folder / "s.yaml").write_text(suite(MODEL))
    insert(address, HOSTILE["function"], folder / "s.yaml", status="stopped")
    with serving(folder, "--store", address) as server:
        status, told = server.post(f"/api/runs/{RUN}/resume", {})
        assert status == 409
        assert "call the function evil:f" in told["detail"]
        assert untouched(folder)
        assert server.post(f"/api/runs/{RUN}/resume?trust=wrong", {})[0] == 409
        assert untouched(folder)
        assert server.post(f"/api/runs/{RUN}/resume?trust={told['trust']}", {})[0] == 202


def test_the_page_resumes_a_narrowed_suite_that_uses_nothing_new(folder):
    address = str(folder / "store.db")
    (folder / "mine.py").write_text("def f(*_):\n    return 'FINAL_ANSWER: 2'\n")
    whole = suite('{name: m, model: "python:mine:f"}, {name: n, model: "python:mine:f"}')
    (folder / "s.yaml").write_text(whole)
    insert(address, suite('{name: m, model: "python:mine:f"}'), folder / "s.yaml", status="stopped")
    with serving(folder, "--store", address) as server:
        assert server.post(f"/api/runs/{RUN}/resume", {}) == (202, {"run": RUN})


def test_options_of_a_store_cannot_make_a_file_of_the_readers_do_more(folder):
    (folder / "evil.py").write_text(EVIL)
    (folder / "mine.yaml").write_text(suite(MODEL))
    address = str(folder / "store.db")
    narrowing = {"models": ["python:evil:f"]}
    settings = SETTINGS | {"narrowing": narrowing}
    insert(address, suite(MODEL), folder / "mine.yaml", settings=settings)
    said = pennyweight("run", "--resume", RUN, "--store", address)
    assert said.code == 2
    assert "What an option changed" in said.err
    assert "call the function evil:f" in said.err
    assert f"pennyweight run --resume {RUN} -m python:evil:f" in said.err
    assert untouched(folder)
    with pytest.raises(UsageError, match="was started with"):
        resume(RUN, store=address, models=["python:other:f"])
    assert resume(RUN, store=address, models=["python:evil:f"]).made == 1


def test_options_that_use_nothing_new_need_no_confirmation(folder, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (folder / "mine.yaml").write_text("suite: s\ntasks: [" + TASK + "]\n")
    address = str(folder / "store.db")
    narrowing = {"models": ["openai/gpt-5-mini"], "changes": {"limits.concurrency": 2}}
    settings = SETTINGS | {"narrowing": narrowing}
    insert(address, "", folder / "mine.yaml", settings=settings)
    with closing(Store(address)) as store:
        opened = open_stored(store.find(RUN), trust=lambda *_: False)
    assert [subject.name for subject in opened.subjects] == ["openai/gpt-5-mini"]
