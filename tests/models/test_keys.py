"""A key is found nowhere."""

import json
import pickle
from base64 import b64encode, urlsafe_b64encode
from typing import Any

import pytest

from pennyweight.errors import UsageError
from pennyweight.models.keys import HIDDEN, Key, redact_environment, redact_reply

VALUE = "sk-proj-0123456789abcdef"


def test_a_key_does_not_show_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_KEY", f" {VALUE}\n")
    key = Key.read("OUR_KEY")
    assert key is not None
    assert key.reveal() == VALUE
    assert VALUE not in f"{key} {key!r} {[key]}"
    assert key.redact(f"bad {VALUE}!") == f"bad {HIDDEN}!"
    with pytest.raises(TypeError):
        pickle.dumps(key)


def test_no_key_and_a_broken_key(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Key.read("OUR_KEY_THAT_IS_NOT_SET") is None
    monkeypatch.setenv("OUR_KEY", "sk-\u201cquoted\u201d")
    with pytest.raises(UsageError) as caught:
        Key.read("OUR_KEY")
    assert "quoted" not in str(caught.value)


def test_a_short_key_does_not_change_what_a_model_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Key("K", "test").redact_body(b"a test") == b"a test"
    assert Key("K", "test").redact("a test") == f"a {HIDDEN}"
    assert Key("K", VALUE).redact_body(VALUE.encode()) == HIDDEN.encode()


@pytest.mark.parametrize("before", ["", "u", "us", "user:"])
def test_a_key_is_found_in_other_clothes(before: str) -> None:
    key = Key("K", "sk/live+0123=456789")
    worn = [
        b64encode(f"{before}sk/live+0123=456789".encode()).decode(),
        urlsafe_b64encode(f"{before}sk/live+0123=456789 and more".encode()).decode(),
        "sk%2Flive%2B0123%3D456789",
        b"sk/live+0123=456789".hex(),
    ]
    for one in worn:
        left = key.redact(one).replace(HIDDEN, "")
        assert len(left) < len(one) - 16, one
        assert key.redact_body(one.encode()) == key.redact(one).encode()


def test_escapes_of_json_do_not_hide_a_key() -> None:
    key = Key("K", "sk/live+0123=456789")
    for text in ("sk\\/live+0123=456789", "\\u0073k/live+0123=456789"):
        assert json.loads(key.redact_body(f'{{"a": ["{text}"]}}'.encode())) == {"a": [HIDDEN]}
    for body in (b'{"a": "\\u00e4"}', b'{"half": "\\u00', rb'{"a": "\\u0073k/live+0123=456789"}'):
        assert key.redact_body(body) == body


@pytest.mark.parametrize("value", ["sk-01234567-89ab", 'sk"01234567"89ab', r"sk\01234567\n89ab"])
@pytest.mark.parametrize("depth", [0, 400, 1000, 100_000])
def test_a_key_is_found_however_its_json_is_written(value: str, depth: int) -> None:
    every = "".join(f"\\u{ord(c):04X}" for c in value)
    for written in (json.dumps(value)[1:-1], every):
        deep = f'{{"x": {"[" * depth}{"]" * depth}, "n": {"1" * 5000}, "{written}": "a\\n{written}'
        cleaned = Key("K", value).redact_body(f'{deep}"}}'.encode()).decode()
        assert cleaned.endswith(f'"{HIDDEN}": "a\\n{HIDDEN}"}}')
        assert Key("K", value).redact_body(deep.encode()).decode().endswith(f"a\\n{HIDDEN}")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
@pytest.mark.parametrize(
    "text", ['{"a": "KEY"}', '{"a": "\\u0073KEY"}', "\u4f60\u597d KEY", "<KEY>"]
)
def test_no_encoding_hides_a_key(encoding: str, text: str) -> None:
    text = text.replace("\\u0073KEY", f"\\u0073{VALUE[1:]}").replace("KEY", VALUE)
    cleaned = Key("K", VALUE).redact_body(text.encode(encoding))
    assert HIDDEN.encode() in cleaned
    assert VALUE.encode() not in cleaned.replace(b"\0", b"")
    if text.startswith("{"):
        assert json.loads(cleaned) == {"a": HIDDEN}


def test_a_body_without_the_key_stays_as_it_is() -> None:
    for body in (b'{"a": "4\\u00e4\\/"}', b'{"a": "4\0"}', b"\xff\0\xfe"[:1], b""):
        assert Key("K", VALUE).redact_body(body) == body


def test_a_key_is_found_at_any_depth_of_what_a_library_gave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("THEIR_API_KEY", VALUE)
    given: Any = ({f"the {VALUE}": VALUE}, 7, None)
    for _ in range(5000):
        given = [given]
    found = redact_reply(given)
    for _ in range(5000):
        (found,) = found
    assert found == [{f"the {HIDDEN}": HIDDEN}, 7, None]


def test_a_key_in_place_of_its_variable_is_not_repeated() -> None:
    with pytest.raises(UsageError) as caught:
        Key.read(VALUE)
    assert VALUE not in str(caught.value)


def test_keys_that_a_library_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_API_KEY", VALUE)
    assert VALUE not in redact_environment(f"key {VALUE} is wrong")
