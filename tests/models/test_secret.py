"""A key is found nowhere."""

import pickle

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


def test_keys_that_a_library_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEIR_API_KEY", VALUE)
    assert VALUE not in redact_environment(f"key {VALUE} is wrong")
