"""`python:package.module:function`: any Python function as a model."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from sysconfig import get_path
from time import perf_counter
from traceback import walk_tb
from typing import Any

from pennyweight.errors import UsageError
from pennyweight.models.failure import CallError, shorten
from pennyweight.models.keys import redact_environment, redact_reply
from pennyweight.models.model import Model, Reply, Request, Settings
from pennyweight.models.threads import Threads
from pennyweight.schema.user_code import function_path, load_function

_OTHERS = ("<", *(f"{at}{os.sep}" for at in (get_path("stdlib"), Path(__file__).parents[1])))
"""The path prefixes of Python's and Pennyweight's own files."""


class FunctionModel(Model):
    """A function as a model. It gets the text of the last message, or the whole request.

    It gets the request if its first parameter is named `request` or annotated `Request`. It may be
    async; a plain function runs in a thread. It returns a text, a Reply, or a dict with the fields
    of a Reply; a tool call needs only a name and arguments. A function that takes longer than
    `timeout` seconds has failed.
    """

    def __init__(self, path: str, timeout: float, folder: Path | None = None) -> None:
        if not re.fullmatch("[^:]+:.+", path):
            raise UsageError(
                f"python:{path} names no function. Write python:package.module:function."
            )
        self.name = self.account = f"python:{path}"
        self._timeout = timeout
        self._threads = Threads(self.name)
        self._function = load_function(path, folder)
        self._is_async = any(
            inspect.iscoroutinefunction(one)
            for one in (self._function, getattr(self._function, "__call__", None))  # noqa: B004
        )
        self._wants_request = _wants_request(self._function)
        if not self._wants_request:
            self.ignores = frozenset({"system", "examples", *(f.name for f in fields(Settings))})

    async def call(self, request: Request) -> Reply:
        """Answer once."""
        given = request if self._wants_request else request.text
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                value, seconds = await self._result(given)
            reply = _reply(value)
        except CallError as wrong:
            failed = wrong.redacted(redact_environment)
        except asyncio.CancelledError as wrong:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            failed = self._failed(wrong)  # raised by the function itself
        except (Exception, SystemExit) as wrong:
            failed = self._late() if limit.expired() else self._failed(wrong)
        else:
            timed = reply.latency_ms is not None
            return reply if timed else replace(reply, latency_ms=seconds * 1000)
        raise failed

    def _late(self) -> CallError:
        """Return the timeout error. A plain function keeps running, so it is not retried."""
        message = f"{self.name} returned no answer within {self._timeout:g} s."
        return CallError("timeout", message, final=not self._is_async)

    def _failed(self, wrong: BaseException) -> CallError:
        reason = shorten(redact_environment(f"{type(wrong).__name__}: {wrong}"))
        place = redact_environment(_place(wrong))
        return CallError("function", f"{self.name} failed with {reason}{place}")

    async def _result(self, given: Any) -> tuple[Any, float]:
        """Call the function; return its value and the seconds it took, without waiting time."""
        began = perf_counter()
        if self._is_async:
            return await self._function(given), perf_counter() - began
        result = await self._threads.run(self._function, given)
        if (error := result.error) is not None:
            raise error if isinstance(error, CallError) else self._failed(error)
        if inspect.isawaitable(result.value):
            return await result.value, perf_counter() - result.began
        return result.value, result.ended - result.began

    async def close(self) -> None:
        """End the idle threads."""
        self._threads.close()


def _reply(value: Any) -> Reply:
    """Read the value of a function, and remove the keys of the environment from it."""
    if isinstance(value, str):
        return Reply(redact_environment(value))
    if not isinstance(value, Reply | Mapping):
        raise UsageError(f"A model's function returns a text, dict or Reply, not {value!r:.80}.")
    return Reply.of(value, redact_reply)


def _place(wrong: BaseException) -> str:
    """Return where in the user's own files an exception was raised, if it was there."""
    place = ""
    for frame, line in walk_tb(wrong.__traceback__):
        file, name = frame.f_code.co_filename, frame.f_code.co_name
        if not file.startswith(_OTHERS) and f"-packages{os.sep}" not in file:
            place = f" ({Path(file).name}, line {line}, in {name})"
    return place


def _wants_request(function: Callable[..., Any]) -> bool:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:  # some functions written in C do not say
        return False
    if not parameters:
        name = function_path(function).partition(":")[2]
        raise UsageError(f"Function {name!r} must take the prompt as its parameter.")
    first = parameters[0]
    noted = first.annotation
    return first.name == "request" or str(getattr(noted, "__name__", noted)).endswith("Request")
