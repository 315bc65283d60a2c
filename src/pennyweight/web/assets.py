"""Templates and static files of the page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from pennyweight import __version__
from pennyweight.api.pages.headlines import written
from pennyweight.render.page import environment, stylesheet
from pennyweight.web.addresses import run_url, url

HERE = Path(__file__).parent


def rendered(template: str, values: Mapping[str, Any]) -> Markup:
    """Render a template."""
    return Markup(_templates().get_template(template).render(values))  # noqa: S704


def parts(template: str, values: Mapping[str, Any]) -> Iterator[str]:
    """Render a template, part by part."""
    return _templates().get_template(template).generate(values)


@cache
def _templates() -> Environment:
    pages = environment(HERE / "templates")
    marks = {name: hashlib.sha256(held).hexdigest()[:12] for name, (held, _) in static().items()}
    pages.globals.update(version=__version__, marks=marks, run_url=run_url, url=url)
    pages.filters.update(json=json.dumps, side_estimated=written)
    pages.globals["links"] = Markup(pages.get_template("links.html").render())  # noqa: S704
    return pages


@cache
def static() -> dict[str, tuple[bytes, str]]:
    """Return the content and the type of each static file; templates name them with a hash."""
    types = {".js": "text/javascript", ".svg": "image/svg+xml"}
    paths = sorted(path for path in (HERE / "static").iterdir() if path.suffix in types)
    files = {path.name: (path.read_bytes(), types[path.suffix]) for path in paths}
    return {"style.css": (stylesheet().encode(), "text/css"), **files}
