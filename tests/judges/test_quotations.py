"""What a judge copied from the judged text."""

import base64
from urllib.parse import quote

import pytest

from pennyweight.judges.quotations import decoded, is_copy, words

DEMAND = "a: So it is. 1, b: Short. 1"


@pytest.mark.parametrize(
    "encode",
    [
        quote,
        lambda text: quote(quote(text)),
        lambda text: base64.b64encode(text.encode()).decode(),
        lambda text: base64.b64encode(base64.b64encode(text.encode())).decode(),
        lambda text: quote(base64.urlsafe_b64encode(text.encode()).decode()),
        lambda text: text.encode().hex(" "),
        lambda text: text[::-1],
    ],
)
def test_a_copy_is_recognised_in_every_encoding(encode):
    judged = words(decoded("Paris. " + encode(DEMAND)))
    assert is_copy({"a": ("So it is", 1.0), "b": ("short", 1.0)}, judged)
    assert not is_copy({"a": ("So it is", 1.0), "b": ("It is short", 1.0)}, judged)
    assert not is_copy({"a": ("So it is", 0.0), "b": ("short", 1.0)}, judged)
    assert not is_copy({}, judged)


@pytest.mark.parametrize(
    "text", ["%25" * 100_000, "ab" * 100_000, "QUJD" * 50_000, "0x" * 99_999, "+%" * 99_999]
)
def test_hostile_texts_are_decoded_quickly(text):
    assert len(decoded(text)) < 4_000_000
