"""Prompt templates: sandboxed Jinja without files, in which a missing variable is an error."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

import jinja2
from jinja2 import Template, meta

from pennyweight.suite.choices import listed
from pennyweight.suite.template_limits import (
    ALLOWANCE,
    LimitedEnvironment,
    LimitError,
    limited,
)

_JINJA = LimitedEnvironment(undefined=jinja2.StrictUndefined)

_JINJA.filters["lettered"] = limited("lettered", listed)
"""Writes the choices of a task, one below the other, each with its letter."""

_GLOBALS = dict(_JINJA.globals)
"""The globals of Jinja. Merging them here takes a fifth of the time that Jinja takes."""


class TemplateError(ValueError):
    """A template that cannot be used; `line` counts within it.

    `exceeded` if it exceeds a limit, so that rendering it for other tasks takes long.
    """

    def __init__(self, what: str, line: int = 1, *, exceeded: bool = False) -> None:
        self.line, self.exceeded = line, exceeded
        super().__init__(what)


@lru_cache(maxsize=4_096)
def compiled(source: str) -> Template:
    """Compile a template, once."""
    ALLOWANCE.renew()
    try:
        return _JINJA.from_string(source)
    except jinja2.TemplateSyntaxError as error:
        why = (error.message or "it cannot be read").rstrip(".")
        raise TemplateError(f"not a valid template: {why}.", error.lineno) from None
    except (RecursionError, OverflowError, SyntaxError):
        raise TemplateError("the template is nested too deeply.") from None


@lru_cache(maxsize=4_096)
def variables_of(source: str) -> frozenset[str]:
    """Return the variables of a template; including other files is an error."""
    compiled(source)
    tree = _JINJA.parse(source)
    if any(True for _ in meta.find_referenced_templates(tree)):
        raise TemplateError("a prompt cannot include, import or extend another file.")
    return frozenset(meta.find_undeclared_variables(tree)) - _JINJA.globals.keys()


_NAME = re.compile(r"\{\{[ \t]*([a-z_]\w*)[ \t]*\}\}", re.ASCII | re.IGNORECASE)


@lru_cache(maxsize=4_096)
def _plain(source: str) -> tuple[str, ...] | None:
    """Split a template into alternating texts and names; None if it contains anything else.

    >>> _plain("Answer: {{ input }}!")
    ('Answer: ', 'input', '!')
    """
    compiled(source)  # raises if it is not valid
    pieces = _NAME.split(source)
    texts, names = pieces[::2], pieces[1::2]
    if any("{" in text or "}" in text or "\r" in text for text in texts) or any(
        name in _JINJA.globals or name in _WORDS for name in names
    ):
        return None
    pieces[-1] = pieces[-1].removesuffix("\n")
    return tuple(pieces)


_WORDS = {"true", "false", "none", "True", "False", "None", "not", "self", "super", "loop"}


def always_fits(source: str, known: Collection[str]) -> bool:
    """Return whether rendering cannot fail, given values for the known variables."""
    pieces = _plain(source)
    return pieces is not None and set(known).issuperset(pieces[1::2])


_HINT = " If only some tasks have it, write '{{% if {} is defined %}}…{{% endif %}}'."
_UNDEFINED = re.compile(r"'([^\W\d]\w*)' is undefined")


def render(source: str, variables: Mapping[str, Any]) -> str:
    """Render a template; one that only names variables is rendered without Jinja."""
    if "{" not in source:
        return source
    try:
        pieces = _plain(source)
        if pieces is not None:
            filled = list(pieces)
            for at in range(1, len(filled), 2):
                if filled[at] not in variables:
                    break
                value = variables[filled[at]]
                filled[at] = "" if value is None else str(value)
            else:
                return "".join(filled)
        template = compiled(source)
        context = template.new_context({**_GLOBALS, **variables}, shared=True)
        ALLOWANCE.renew()
        return _JINJA.concat(template.root_render_func(context))
    except jinja2.TemplateError as error:
        why = (error.message or str(error)).rstrip(".")
        name = _UNDEFINED.fullmatch(why)
        hint = _HINT.format(name[1]) if name else ""
        raise TemplateError(f"{why}.{hint}", exceeded=isinstance(error, LimitError)) from None
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise TemplateError(f"{type(error).__name__}: {error}.") from None
    except RecursionError:
        raise TemplateError("a macro or a loop of the template calls itself endlessly.") from None
    except MemoryError:
        raise TemplateError("the template needs too much memory.", exceeded=True) from None
