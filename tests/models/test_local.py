"""The real model, on this machine, through the formats that its server speaks."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from models.saved import SCHEMA, ask
from pennyweight.models.failure import CallError
from pennyweight.models.model import Reply
from pennyweight.models.providers import find

NAME = "smollm2-135m"


pytestmark = pytest.mark.usefixtures("local_model")


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"


def test_through_openais_format() -> None:
    async def main() -> tuple[Reply, Reply, Reply, Reply]:
        model = find(f"local/{NAME}", slots=1)
        twin = find(f"local/{NAME}", slots=1)
        try:
            plain = ask("Say hello.", temperature=0, max_tokens=8, logprobs=True)
            first, again = await asyncio.gather(model.call(plain), twin.call(plain))
            cut = await model.call(ask("Count to 100.", temperature=0, max_tokens=4))
            made = await model.call(
                ask("Give a.", temperature=0, seed=1, max_tokens=60, schema=SCHEMA)
            )
            return first, again, cut, made
        finally:
            await model.close()
            await twin.close()

    first, again, cut, made = asyncio.run(main())
    assert first.text
    assert first.text == again.text
    assert first.logprobs == again.logprobs
    assert first.logprobs
    assert all(p <= 0 for _, p in first.logprobs)
    assert first.usage.prompt_tokens
    assert first.usage.completion_tokens
    assert first.model == NAME
    assert cut.truncated
    assert cut.usage.completion_tokens == 4
    assert isinstance(json.loads(made.text)["a"], int)


def test_through_anthropics_format() -> None:
    from pennyweight.models.local import serving

    async def main() -> tuple[Reply, Reply]:
        async with serving(NAME, slots=2, context=512) as address:
            model = find(f"anthropic/{NAME}", base_url=address, timeout=120)
            try:
                return (
                    await model.call(ask("Say hello.", temperature=0, max_tokens=40)),
                    await model.call(ask("Count to 100.", temperature=0, max_tokens=4)),
                )
            finally:
                await model.close()

    whole, cut = asyncio.run(main())
    assert whole.text
    assert whole.finish == "end_turn"
    assert whole.usage.prompt_tokens
    assert cut.truncated


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF but not really")
    model = find(f"local/{path}")
    with pytest.raises(CallError, match="cannot be served") as first:
        asyncio.run(model.call(ask()))
    assert not first.value.retryable
    path.unlink()
    with pytest.raises(CallError, match="cannot be served"):  # it is not started again
        asyncio.run(model.call(ask()))


def test_the_server_dies_with_a_parent_that_is_killed() -> None:
    code = (
        "import time; from pennyweight.models.gguf import pull\n"
        "from pennyweight.models.server import Server\n"
        f"print(Server(pull({NAME!r}), 1, 256).pid, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        assert not gone(pid)
    finally:
        parent.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        parent.wait()
        parent.stdout.close()
    deadline = time.monotonic() + 10
    while not gone(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert gone(pid)
