"""What the page and the report share: one style sheet, one set of templates, everything escaped."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pennyweight.render.svg import MARKS

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"
    "\U000e0000-\U000e007f]"
)


def visible(text: Any) -> str:
    r"""Make what cannot be seen visible, so that text can neither hide nor turn around.

    >>> visible("a\u202eb\x1b[31m")
    'a⟨U+202E⟩b⟨U+001B⟩[31m'
    """
    return _HIDDEN.sub(lambda m: f"⟨U+{ord(m[0]):04X}⟩", str(text).replace("\r\n", "\n"))


@cache
def stylesheet() -> str:
    """Give the style sheet, with how charts look."""
    return (FOLDER / "style.css").read_text(encoding="utf-8") + MARKS + "\n"


def environment(*folders: Path) -> Environment:
    """Make the templates' environment: everything is escaped, a missing name is a mistake."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415

    from pennyweight.render import format as written  # noqa: PLC0415
    from pennyweight.render.view import difference, when  # noqa: PLC0415

    made = Environment(
        loader=FileSystemLoader([FOLDER, *folders]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        visible=visible,
        when=when,
        difference=difference,
        cell=written.cell,
        column=written.column,
        count=written.count,
        level=written.level,
        measured=lambda value, name: written.measured(name, value),
        money=written.money,
        declared=written.declared,
        plural=written.plural,
        probability=written.probability,
        share=written.share,
    )
    return made
