"""Requests, settings and replies."""

import pytest

from assay.errors import UsageError
from assay.models.model import Reply, Settings, ToolCall, Usage
from models.saved import ask


def test_an_unknown_setting_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="Did you mean 'temperature'"):
        Settings.of({"temprature": 0})


def test_a_reply_survives_as_plain_data() -> None:
    reply = Reply(
        "4", "2+2", (ToolCall("1", "f", "{}"),), Usage(1, 2, 3, 4), logprobs=(("4", -1.0),)
    )
    assert Reply.of(reply.plain()) == reply


def test_a_reply_needs_its_text() -> None:
    with pytest.raises(UsageError, match="text"):
        Reply.of({"reasoning": "none"})
    with pytest.raises(UsageError, match="Did you mean 'text'"):
        Reply.of({"texts": "4"})


def test_the_text_of_a_request() -> None:
    assert ask("one").text == "one"
