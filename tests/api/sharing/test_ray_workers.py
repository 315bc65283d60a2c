"""Workers as Ray actors, on a real cluster of two nodes on this machine."""

import signal
import sys
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent.trying import needs_bubblewrap
from engine.command import ended, kept, run, start
from engine.serving import calls, server, suite
from engine.sharing.test_worker import whole
from engine.test_kill import wait_for
from pennyweight.api.run import run as run_suite
from pennyweight.api.sharing import ray_workers
from pennyweight.api.sharing.ray_cluster import connect
from pennyweight.api.sharing.work import put_up
from pennyweight.engine.execution import new_run, open_suite
from pennyweight.engine.tally import Tally
from pennyweight.errors import StoreError, UsageError
from pennyweight.store.shared_runs import living, locked
from pennyweight.store.store import Store
from pennyweight.suite.narrowing import Narrowing

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
TASKS, FLYING = 120, 4
RESOURCES = "resources: {cpu: 1}"


def placed(path):
    """Let each worker of a suite take a processor, so that there is one on each node."""
    text = path.read_text()
    path.write_text(text.replace('/v1"}', f'/v1", {RESOURCES}}}'))
    return path


def working(store):
    """The workers of the latest run whose processes have not ended."""
    run_id = store.find("latest").id
    with locked(store, run_id) as connection:
        return living(connection, store, run_id)


def on(cluster):
    return ["--on", f"ray://{cluster.address}"]


NODES = """
suite: nodes
tasks: {tasks}
workspace: template
verify: grep -q "^done$" answer.txt
answer: last_line
limits: {{concurrency: 4}}
subjects:
  - {{name: agent, command: [sh, -c, "sed s/begun/done/ begun.txt > answer.txt"], {resources}}}
  - {{name: small, model: local/smollm2-135m, max_tokens: 4, {resources}}}
"""


def test_agents_in_sandboxes_and_the_local_model_are_on_the_nodes(
    cluster, postgresql, local_model, tmp_path
):
    needs_bubblewrap()
    (tmp_path / "template").mkdir()
    (tmp_path / "template" / "begun.txt").write_text("begun\n")
    path, address = tmp_path / "suite.yaml", postgresql.database()
    path.write_text(NODES.format(tasks=["a", "b", "c", "d"], resources=RESOURCES))
    code, said = run(address, "run", path, *on(cluster))
    assert code == 0, said
    rows, _ = kept(address)
    assert {row["status"] for row in rows} == {"ok"}
    agents = [row for row in rows if row["subject"] == "agent"]
    assert [row["passed"] for row in agents] == [True] * 4
    assert all("bubblewrap" in row["work"] for row in agents)
    small = [row for row in rows if row["subject"] == "small"]
    assert [row["completion_tokens"] for row in small] == [4, 4, 4, 4]


def test_nodes_and_drivers_and_the_head_are_killed(cluster, postgresql, tmp_path):
    """One cluster for all of it, because starting one takes seconds."""
    with server(0.05) as slow:
        path = placed(suite(tmp_path, slow, tasks=TASKS, limits=f"{{concurrency: {FLYING}}}"))

        address, before = postgresql.database(), 0
        driver = start(address, "run", path, *on(cluster))
        wait_for(lambda: calls(slow) > TASKS / 4, driver, 120)
        node = next(iter(cluster.worker_nodes))
        cluster.remove_node(node, allow_graceful=False)
        code, said = ended(driver)
        assert code == 0, said
        _, spent = whole(address, TASKS)
        assert TASKS == spent["calls"] <= calls(slow) <= TASKS + FLYING
        before = calls(slow)

        address = postgresql.database()
        driver = start(address, "run", path, *on(cluster))
        wait_for(lambda: calls(slow) > before + TASKS / 4, driver, 120)
        driver.send_signal(signal.SIGKILL)
        ended(driver)
        code, said = run(address, "run", "--resume")
        assert code == 0, said
        whole(address, TASKS)
        assert calls(slow) - before <= TASKS + FLYING
        before = calls(slow)

        address = postgresql.database()
        driver = start(address, "run", path, *on(cluster))
        wait_for(lambda: calls(slow) > before + TASKS / 4, driver, 120)
        cluster.remove_node(cluster.head_node, allow_graceful=False)
        with closing(Store(address)) as store:
            end = time.monotonic() + 60
            while working(store) and time.monotonic() < end:
                time.sleep(0.2)
        driver.send_signal(signal.SIGKILL)
        ended(driver)
        code, said = run(address, "run", "--resume")
        assert code == 0, said
        whole(address, TASKS)
        assert calls(slow) - before <= TASKS + FLYING


def test_a_database_that_restarts_is_waited_for(cluster, postgresql, tmp_path):
    address = postgresql.database()
    with server(0.2) as slow:
        path = placed(suite(tmp_path, slow, tasks=TASKS, limits="{concurrency: 4, usd: 5}"))
        driver = start(address, "run", path, *on(cluster))
        wait_for(lambda: calls(slow) > TASKS / 4, driver, 120)
        postgresql.stop(at_once=True)
        time.sleep(2 * ray_workers.POLL)  # the head looks into the store meanwhile
        postgresql.start()
        code, said = ended(driver)
        assert code == 0, said
        _, spent = whole(address, TASKS)
        assert spent["calls"] == calls(slow) == TASKS
        assert not spent["held_usd"]


class StandIn:
    """As much of Ray as the head uses: two workers, of which the first may have failed."""

    exceptions = SimpleNamespace(RayActorError=KeyError, RayTaskError=RuntimeError)

    def __init__(self, error=None):
        self.error, self.said, self.actors = error, [], 0

    def remote(self, _):
        return self

    def options(self, **_):
        return SimpleNamespace(remote=self.actor)

    def actor(self):
        self.actors += 1
        name = f"worker {self.actors}"
        stop = SimpleNamespace(remote=lambda: self.said.append(f"stop {name}"))
        return SimpleNamespace(name=name, stop=stop, work=SimpleNamespace(remote=lambda _: name))

    def nodes(self):
        return [{"Alive": True}] * 2

    def cluster_resources(self):
        return {"CPU": 2.0}

    def wait(self, works, timeout, num_returns=1):
        if num_returns > 1 or not self.error:
            self.said.append(f"wait for {len(works)}")
            return [], works
        return works[:1], works[1:]

    def get(self, _):
        error = RuntimeError("a task failed")
        error.cause = self.error
        raise error

    def kill(self, actor, **_):
        self.said.append(f"kill {actor.name}")

    def shutdown(self):
        self.said.append("shutdown")


def headed(ray, tmp_path, monkeypatch, count=lambda: None):
    """Let the head of a run use a stand-in of Ray."""
    monkeypatch.setattr(ray_workers, "connect", lambda *_: ray)
    path = suite(tmp_path, "http://127.0.0.1:9", tasks=3)
    with closing(Store(str(tmp_path / "s.db"))) as store:
        run, _ = put_up(path, store=store)
        workers = ray_workers.RayWorkers(None, open_suite(path), run, store)
        return workers(Tally(3), count)


def test_the_error_of_one_worker_lets_the_others_finish_their_calls(tmp_path, monkeypatch):
    ray = StandIn(UsageError("its suite is another one"))
    with pytest.raises(UsageError, match="another one"):
        headed(ray, tmp_path, monkeypatch)
    assert ray.said[:2] == ["stop worker 2", "kill worker 2"]


def test_numbers_that_cannot_be_read_now_are_read_later(tmp_path, monkeypatch):
    ray, counted = StandIn(), []

    def count():
        counted.append(len(counted))
        if len(counted) == 1:
            raise StoreError("the server is restarting", "s", transient=True)
        raise KeyboardInterrupt

    assert headed(ray, tmp_path, monkeypatch, count)
    assert counted == [0, 1]
    assert ray.said == [
        *("wait for 2", "wait for 2", "stop worker 1", "stop worker 2", "wait for 2"),
        *("kill worker 1", "kill worker 2", "shutdown"),
    ]


def test_a_cluster_that_cannot_share_a_file_is_refused(tmp_path):
    path = suite(tmp_path, "http://127.0.0.1:9", tasks=1)
    with pytest.raises(UsageError, match="SQLite"):
        run_suite(path, store=str(tmp_path / "s.db"), on="ray://127.0.0.1:6379", progress=False)
    assert not Path(tmp_path, "s.db").exists()
    with pytest.raises(UsageError, match="'ray'"):
        run_suite(path, store=str(tmp_path / "s.db"), on="mars", progress=False)


def test_without_ray_it_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    path = suite(tmp_path, "http://127.0.0.1:9", tasks=1)
    with pytest.raises(UsageError, match=r"pip install 'pennyweight\[ray\]'"):
        run_suite(path, store=str(tmp_path / "s.db"), on="ray", progress=False)


@pytest.mark.parametrize(
    ("address", "said"),
    [(None, "cannot be started on this machine"), ("10.0.0.5:6379", "no Ray cluster at 10.0.0.5")],
)
def test_a_cluster_that_does_not_start_is_no_traceback(address, said, monkeypatch):
    def init(**_):
        raise Exception("The current node timed out\nduring startup.")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))
    with pytest.raises(UsageError, match=rf"{said}.*: The current node timed out during startup"):
        connect(address)


def test_the_actors_are_grouped_by_what_they_need(tmp_path):
    path = placed(suite(tmp_path, "http://127.0.0.1:9", tasks=1))
    text = path.read_text().replace(
        "prices:",
        "  - {name: n, model: openai/n, base_url: 'http://a'}\n"
        f"  - {{name: agent, command: [sh, -c, ls], {RESOURCES[:-1]}, memory: 10}}}}\n"
        "  - {name: other, command: [sh, -c, ls]}\n"
        "prices:",
    )
    path.write_text(text)
    loaded = open_suite(path)
    workers = ray_workers.RayWorkers(None, loaded, new_run(loaded), Store(str(tmp_path / "s.db")))
    assert workers.groups() == {
        ("m",): {"CPU": 1.0},
        ("n", "other"): {},
        ("agent",): {"CPU": 1.0, "memory": 10 * 2**20},
    }
    # an agent that says what it needs gets a worker of its own
    assert [workers.job(names).places for names in workers.groups()] == [None, None, 1]


def test_the_actors_may_do_what_the_options_of_the_run_changed(tmp_path):
    (tmp_path / "bot.py").write_text("def answer(text):\n    return '4'\n\n\nother = answer\n")
    path, store = tmp_path / "s.yaml", str(tmp_path / "s.db")
    path.write_text("suite: s\ntasks: [a, b]\nsubjects: ['python:bot:answer']\n")
    run, _ = put_up(path, store=store, models=["python:bot:other"], set={"runs": 2}, limit=1)
    loaded = open_suite(path, narrowing=Narrowing.stored(run.settings))
    with closing(Store(store)) as at:
        job = ray_workers.RayWorkers(None, loaded, run, at).job(("python:bot:other",))
    assert ray_workers.WorkerActor().work(job) == (2, None)
