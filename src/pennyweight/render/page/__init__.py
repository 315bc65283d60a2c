"""The style sheet, the templates and the views that the page and the report share.

Tested elsewhere:
    board.py: tests/render/page/test_leaderboard.py
    board_rows.py: tests/render/page/test_leaderboard.py
    board_sides.py: tests/render/page/test_leaderboard.py
    gate_grid.py: tests/web/test_gates.py
    people.py: tests/stored_runs/test_review_queue.py
    probe_words.py: tests/render/page/test_conclusion.py
    record_rows.py: tests/web/test_record_rows.py
    what_failed.py: tests/api/pages/test_failing_parts.py
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pennyweight.render.charts.svg import MARKS
from pennyweight.render.plain import middle, side_line, unbroken
from pennyweight.text.format import (
    column,
    count,
    declared,
    level,
    money,
    plural,
    probability,
    share,
)

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: Any) -> str:
    r"""Show control characters by their codes, so that text can neither hide nor turn around.

    Joiners and soft hyphens stay: real languages and emoji need them.

    >>> visible("a\u202eb\x1b[31m")
    'a⟨U+202E⟩b⟨U+001B⟩[31m'
    """
    return _HIDDEN.sub(lambda m: f"⟨U+{ord(m[0]):04X}⟩", str(text).replace("\r\n", "\n"))


@cache
def stylesheet() -> str:
    """Return the style sheet: style.css, the styles of charts, and the files of single parts."""
    main = FOLDER / "style.css"
    parts = (path for path in sorted(FOLDER.glob("*.css")) if path != main)
    more = "\n".join(path.read_text(encoding="utf-8") for path in parts)
    return f"{main.read_text(encoding='utf-8')}{MARKS}\n{more}"


def environment(*folders: Path) -> Environment:
    """Make the environment of the templates: everything is escaped, a missing name is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415

    from pennyweight.render.format import cell, heading, measured  # noqa: PLC0415
    from pennyweight.render.page.board_rows import board_rows  # noqa: PLC0415
    from pennyweight.render.page.grid import grid_heads  # noqa: PLC0415
    from pennyweight.render.page.metric_titles import metric_title  # noqa: PLC0415
    from pennyweight.render.page.record_rows import verdict  # noqa: PLC0415
    from pennyweight.render.view import (  # noqa: PLC0415
        difference,
        family,
        interval_words,
        multiple,
        run_outcome,
        value_head,
        when,
    )

    made = Environment(
        loader=FileSystemLoader([FOLDER, *folders]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    filters = (
        *(
            visible,
            when,
            difference,
            family,
            multiple,
            cell,
            column,
            count,
            level,
            money,
            declared,
            plural,
        ),
        *(probability, share, heading, unbroken, interval_words, metric_title, middle, side_line),
        *(board_rows, grid_heads, value_head, run_outcome, verdict),
    )
    made.filters.update({function.__name__: function for function in filters})
    made.filters["measured"] = lambda value, name: measured(name, value)
    return made
