"""What a failed call says."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from pennyweight.models.failure import address_hint, from_status, retry_after


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"Retry-After": "-4"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": ""}, None),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_retry_after_as_a_date() -> None:
    when = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    waited = retry_after({"Retry-After": when})
    assert waited is not None
    assert 85 < waited <= 90


def test_a_wait_that_is_too_long_is_not_tried_again() -> None:
    short = from_status(429, {"Retry-After": "300"}, "slow")
    long = from_status(429, {"Retry-After": "86400"}, "slow.")
    assert (short.retryable, long.retryable) == (True, False)
    assert "wait" not in str(short)
    assert str(long).endswith("slow. It asks to wait 86,400 s, which is too long.")
    assert (long.kind, long.retry_after) == ("rate_limit", 86_400.0)


def test_a_long_foreign_text_is_shortened() -> None:
    assert len(str(from_status(500, {}, "x" * 100_000))) < 700


@pytest.mark.parametrize(
    ("status", "url", "hint"),
    [
        (404, "http://h:1/chat/completions", "Does base_url lack /v1?"),
        (405, "http://h:1/chat/completions", "Does base_url lack /v1?"),
        (501, "http://h:1/v1/chat/completions", "Check base_url and the name of the model."),
    ],
)
def test_a_wrong_path_is_not_retried_and_names_the_address(status, url, hint):
    error = from_status(status, {}, "")
    assert (error.kind, error.retryable) == ("not_found", False)
    assert address_hint(error, url, versioned=True) == f"{url} was called. {hint}"


def test_other_failures_have_no_hint_about_the_address():
    for status in (401, 429, 500):
        assert address_hint(from_status(status, {}, ""), "http://h/v1", versioned=True) == ""


def test_of_a_web_page_only_the_words_are_told():
    filler = "<p>filler</p>" * 500
    page = f"<!DOCTYPE html><html><head><title>502 Bad Gateway</title><style>p {{}}</style>{filler}"
    told = str(from_status(502, {}, page))
    assert told.startswith("The server failed (HTTP 502): 502 Bad Gateway: filler filler")
    assert told.endswith("… (a web page).")
    assert "<" not in told
    assert len(told) < 200
    same = "<html><head><title>404 Not Found</title></head><body><h1>404 Not Found</h1></body>"
    assert str(from_status(404, {}, same)).endswith(": 404 Not Found (a web page).")
    assert str(from_status(500, {}, "<html>")).endswith("(HTTP 500): (a web page).")
    assert "<script>" not in str(from_status(500, {}, "<html><script>" + "x" * 50_000))
    assert str(from_status(404, {}, "no such route")).endswith("no such route.")
