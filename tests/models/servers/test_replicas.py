"""A model on several servers: the least loaded healthy one is called."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from pennyweight.models.failure import CallError
from pennyweight.models.model import Message, Model, Reply, Request, Settings
from pennyweight.models.providers import find
from pennyweight.models.servers import replicas
from pennyweight.models.servers.replicas import ReplicatedModel, answers

REPLY = (
    b'{"model": "m", "choices": [{"finish_reason": "stop", "message": {"role": "assistant", '
    b'"content": "4"}}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}'
)
QUESTION = Request((Message("user", "2 + 2?"),), Settings())


class Server:
    """An OpenAI-compatible server that counts calls, waits, and can be ill."""

    def __init__(self):
        self.calls = self.checks = self.in_flight = self.most = 0
        self.delay, self.is_ill, self.body = 0.0, False, REPLY
        self.server = None
        self.port, self.writers = 0, []

    async def start(self):
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def stop(self):
        self.server.close()
        await self.server.wait_closed()
        for writer in self.writers:
            writer.close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    async def _serve(self, reader, writer):
        self.writers.append(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await self._answer(head, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, head, reader, writer):
        status, body = b"503 Unavailable" if self.is_ill else b"200 OK", self.body
        if head.startswith(b"GET"):
            self.checks += 1
        else:
            sizes = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-l")]
            await reader.readexactly(int(sizes[0].split(b":")[1]))
            self.calls += 1
            self.in_flight += 1
            self.most = max(self.most, self.in_flight)
            await asyncio.sleep(self.delay)
            self.in_flight -= 1
        writer.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
        await writer.drain()


@asynccontextmanager
async def servers(number):
    made = [await Server().start() for _ in range(number)]
    model = find("openai/m", base_url=made[0].url, more_urls=[one.url for one in made[1:]])
    try:
        yield made, model
    finally:
        await model.close()
        for one in made:
            await one.stop()


def test_calls_go_to_the_least_loaded_server():
    async def check():
        async with servers(3) as (made, model):
            for one in made:
                one.delay = 0.05
            await asyncio.gather(*(model.call(QUESTION) for _ in range(12)))
            assert [one.most for one in made] == [4, 4, 4]
            made[0].delay = 2.0
            slow = asyncio.gather(*(model.call(QUESTION) for _ in range(3)))
            await asyncio.sleep(0.3)
            before = made[0].calls
            for _ in range(6):
                await model.call(QUESTION)
            assert made[0].calls == before  # it is still busy
            await slow

    asyncio.run(check())


def test_a_server_that_is_gone_costs_no_attempt_and_comes_back(monkeypatch):
    monkeypatch.setattr(replicas, "SHORTEST", 0.05)

    async def check():
        async with servers(2) as (made, model):
            await made[0].stop()
            for _ in range(4):
                assert (await model.call(QUESTION)).text == "4"
            assert (made[0].calls, made[1].calls) == (0, 4)
            await made[0].start()
            while not made[0].calls:
                await model.call(QUESTION)
                await asyncio.sleep(0.01)
            assert made[0].checks == 1

    asyncio.run(check())


def test_an_ill_server_is_left_alone_until_it_is_healthy(monkeypatch):
    monkeypatch.setattr(replicas, "SHORTEST", 0.05)

    async def check():
        async with servers(2) as (made, model):
            made[0].is_ill = True
            with pytest.raises(CallError, match="503"):
                await model.call(QUESTION)
            for _ in range(5):
                await model.call(QUESTION)
            assert (made[0].calls, made[1].calls) == (1, 5)
            made[0].is_ill = False
            while made[0].calls == 1:
                await model.call(QUESTION)
                await asyncio.sleep(0.01)

    asyncio.run(check())


def test_a_server_that_answers_nonsense_gets_ever_fewer_calls(monkeypatch):
    """It looks healthy each time it is checked."""
    monkeypatch.setattr(replicas, "SHORTEST", 0.02)

    async def check():
        async with servers(2) as (made, model):
            made[0].body = b"<html>hello</html>"
            kinds = []
            for _ in range(200):
                try:
                    await model.call(QUESTION)
                except CallError as error:
                    kinds.append(error.kind)
                await asyncio.sleep(0.005)
            assert set(kinds) == {"malformed"}
            assert made[0].calls == len(kinds) <= made[0].checks + 1
            assert len(kinds) < 16  # 0.02 s, 0.04 s, 0.08 s, … between them
            made[0].body = REPLY
            before = made[0].calls
            while made[0].calls < before + 3:
                await model.call(QUESTION)
                await asyncio.sleep(0.005)

    asyncio.run(check())


def test_all_servers_are_gone():
    async def check():
        async with servers(2) as (made, model):
            for one in made:
                await one.stop()
            with pytest.raises(CallError) as error:
                await model.call(QUESTION)
            assert error.value.kind == "connection"
            for one in made:
                await one.start()

    asyncio.run(check())


def test_a_name_stands_for_all_of_its_servers():
    async def check():
        one = await Server().start()
        model = find("openai/m", base_url=f"dns+http://localhost:{one.port}/v1")
        assert isinstance(model, ReplicatedModel)
        assert (await model.call(QUESTION)).text == "4"
        await model.close()
        await one.stop()

    asyncio.run(check())


def test_a_server_that_leaves_its_name_is_closed_when_it_is_idle(monkeypatch):
    found = {"now": ["http://a", "http://b"]}

    async def looked_up(name):
        return found["now"]

    class Counted(Model):
        def __init__(self, address):
            self.name, self.account, self.address = "m", "m", address
            self.closed, self.go_on = 0, asyncio.Event()

        async def call(self, request):
            await self.go_on.wait()
            return Reply("4")

        async def close(self):
            self.closed += 1

    def closed(built):
        assert max(one.closed for one in built.values()) == 1
        return {one.address.removeprefix("http://") for one in built.values() if one.closed}

    async def check():
        built = {}
        model = ReplicatedModel(
            ["dns+http://name"], lambda url: built.setdefault(url, Counted(url))
        )
        calls = [asyncio.create_task(model.call(QUESTION)) for _ in range(2)]
        await asyncio.sleep(0.01)
        found["now"] = ["http://c"]
        calls.append(asyncio.create_task(model.call(QUESTION)))
        await asyncio.sleep(0.01)
        assert closed(built) == {"name"}  # the calls of the others are still in flight
        for one in built.values():
            one.go_on.set()
        await asyncio.gather(*calls)
        assert closed(built) == {"name", "a", "b"}
        await model.close()
        assert closed(built) == {"name", "a", "b", "c"}

    monkeypatch.setattr(replicas, "_addresses", looked_up)
    monkeypatch.setattr(replicas, "RESOLVED", 0.0)
    asyncio.run(check())


def test_health():
    async def check():
        one = await Server().start()
        assert await answers(one.url)
        one.is_ill = True
        assert not await answers(one.url)
        await one.stop()
        assert not await answers(one.url)

    asyncio.run(check())
