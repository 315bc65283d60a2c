"""The frame of the pages of a static site: no script, one style sheet beside them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from pennyweight import __version__
from pennyweight.render.page import environment
from pennyweight.render.page.record_rows import TEXT

if TYPE_CHECKING:
    from jinja2 import Environment


def page_text(template: str, root: str, values: Mapping[str, Any]) -> str:
    """Write a page; `root` leads from it to the folder of the site."""
    return _templates().get_template(template).render({**values, "root": root})


@cache
def _templates() -> Environment:
    made = environment()
    made.globals.update(
        version=__version__, texts=TEXT, made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    )
    return made
