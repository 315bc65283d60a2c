"""Access to object stores: what Polars is given for it, from the environment alone.

Left to itself, Polars also reads the files of other tools, such as `~/.aws/credentials`, and asks
the machine's metadata service for keys. So it is told what to use, or nothing is sent.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from pennyweight.errors import InputError

READ_SECONDS = 7
"""How long a store may send nothing. Polars asks four times: about 30 seconds in all."""
HINT = "Keys, region and address come from the environment: docs/tables.md lists them."
_RETRIES = 1
_AWS_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
_AWS_ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT")
_GOOGLE_FILES = ("GOOGLE_SERVICE_ACCOUNT", "GOOGLE_APPLICATION_CREDENTIALS")
_GOOGLE = (*_GOOGLE_FILES, "GOOGLE_SERVICE_ACCOUNT_KEY")
_AZURE = ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN")
_SECRET = ("KEY", "SECRET", "TOKEN", "PASSWORD", "SAS", "CREDENTIAL")
_SHORTEST = 4
"""Shorter values of the environment are no secrets, and would hide parts of words."""
_USER = re.compile(r"(https?://)[^/@\s]+@")


def access(address: str) -> dict[str, Any]:
    """Return what Polars needs to read an address; refuse if the environment has no keys."""
    options: dict[str, Any] = {
        "read_timeout": f"{READ_SECONDS}s",
        "connect_timeout": f"{READ_SECONDS}s",
        "max_retries": _RETRIES,
    }
    found: dict[str, Any] = {"storage_options": options, "credential_provider": None}
    store = address.partition("://")[0]
    if store == "s3":
        if _is_anonymous(address, "AWS_SKIP_SIGNATURE", [_AWS_KEYS]):
            options["aws_skip_signature"] = "true"
        else:
            names = (*_AWS_KEYS, "AWS_SESSION_TOKEN")
            keys = {name.lower(): os.environ[name] for name in names if os.environ.get(name)}
            found["credential_provider"] = lambda: (keys, None)
        options["aws_region"] = _region(address)
    elif store == "gs":
        if _is_anonymous(address, "GOOGLE_SKIP_SIGNATURE", [(name,) for name in _GOOGLE]):
            options["google_skip_signature"] = "true"
        else:
            _check_key_file(address)
    elif _is_anonymous(address, "AZURE_SKIP_SIGNATURE", [(name,) for name in _AZURE]):
        options["azure_skip_signature"] = "true"
    return found


def _is_anonymous(address: str, switch: str, choices: list[tuple[str, ...]]) -> bool:
    """Whether the store is read without keys; refuse if neither keys nor that are set."""
    if os.environ.get(switch, "").lower() in {"true", "1"}:
        return True
    if any(all(os.environ.get(name) for name in names) for names in choices):
        return False
    said = " or ".join(" and ".join(names) for names in choices)
    raise InputError(
        [f"{address}: no keys are set: set {said}, or {switch}=true for what is public."],
        hint=HINT,
    )


def _check_key_file(address: str) -> None:
    """Refuse a path without a file: Polars would say that there is no such object."""
    for name in _GOOGLE_FILES:
        path = os.environ.get(name)
        if path and not Path(path).is_file():
            raise InputError([f"{address}: {name} names no file."], hint=HINT)


def _region(address: str) -> str:
    """Return the region; services other than Amazon's take any."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        if os.environ.get(name):
            return os.environ[name]
    if any(os.environ.get(name) for name in _AWS_ENDPOINTS):
        return "us-east-1"
    raise InputError([f"{address}: no region is set: set AWS_REGION."], hint=HINT)


def without_secrets(text: str) -> str:
    """Replace the values of variables that hold keys, and passwords in addresses."""
    secrets = {
        value for name, value in os.environ.items() if any(word in name.upper() for word in _SECRET)
    }
    secrets |= {_password(os.environ.get(name, "")) for name in _AWS_ENDPOINTS}
    for value in sorted(secrets, key=len, reverse=True):
        if len(value) >= _SHORTEST:
            for form in (value, quote(value, safe=""), quote(value)):
                text = text.replace(form, "…")
    return _USER.sub(r"\1…@", text)


def _password(address: str) -> str:
    try:
        return urlsplit(address).password or ""
    except ValueError:  # no address
        return ""
