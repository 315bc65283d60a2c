"""A key is found nowhere."""

import json
import pickle
from base64 import b64encode, urlsafe_b64encode

import pytest

from assay.errors import UsageError
from assay.models.secret import HIDDEN, Key, redact_environment

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
    for body in (b'{"a": "\\u00e4"}', b'{"half": "\\u00'):
        assert key.redact_body(body) == body


def test_a_key_in_place_of_its_variable_is_not_repeated() -> None:
    with pytest.raises(UsageError) as caught:
        Key.read(VALUE)
    assert VALUE not in str(caught.value)


def test_keys_that_a_library_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_API_KEY", VALUE)
    assert VALUE not in redact_environment(f"key {VALUE} is wrong")
