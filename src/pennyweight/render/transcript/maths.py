"""Formulas in TeX as MathML. What is not known to be harmless does not get through.

The library only reads the formula. It copies names and texts of the formula into attributes and
elements, so what it returns is written here again, from a list of elements and attributes.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from pennyweight.render.page import visible

MAX_CHARACTERS = 2_000
"""Longer formulas are shown as they are written."""
MAX_DEPTH = 60
"""Formulas nested deeper are shown as they are written."""
MAX_ELEMENTS = 3_000
_ELEMENTS = frozenset((
    "math", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded", "mphantom",
    "mprescripts", "mroot", "mrow", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup",
    "mtable", "mtd", "mtext", "mtr", "munder", "munderover",
))  # fmt: skip
_ATTRIBUTES = {
    **dict.fromkeys(("displaystyle", "stretchy", "fence", "accent", "symmetric"), r"true|false"),
    **dict.fromkeys(("largeop", "movablelimits", "separator"), r"true|false"),
    "scriptlevel": r"[+-]?[0-3]",
    "linethickness": r"[0-9](\.[0-9]+)?(pt|em|ex)?",
    "mathvariant": r"[a-z-]{1,30}",
    "form": r"prefix|infix|postfix",
    **dict.fromkeys(("width", "lspace", "rspace"), r"-?[0-3]?(\.[0-9]{1,5})?em"),
    **dict.fromkeys(("minsize", "maxsize"), r"[0-3]?(\.[0-9]{1,5})?em"),
}
"""The attributes that are kept, and the form of their values: nothing can be huge."""
_CHILDREN = {
    **dict.fromkeys(("mfrac", "mroot", "msub", "msup", "munder", "mover"), 2),
    **dict.fromkeys(("msubsup", "munderover"), 3),
}
"""How many parts some elements must have; browsers show others as errors."""
_ALIGNED = {"left": "at-left", "right": "at-right"}
"""Browsers align the cells of a formula by style only."""
_PATTERNS = {name: re.compile(form) for name, form in _ATTRIBUTES.items()}


class FormulaError(Exception):
    """A formula that cannot be shown as one."""


def mathml(formula: str, *, display: bool = False) -> str:
    r"""Return a formula as MathML; one that cannot be read raises FormulaError.

    >>> mathml("x^2")
    '<math><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math>'
    >>> mathml(r"\href{javascript:alert(1)}{\text{<b>}}")
    '<math><mrow><mrow><mrow><mtext>&lt;b&gt;</mtext></mrow></mrow></mrow></math>'
    """
    if len(formula) > MAX_CHARACTERS or _depth(formula) > MAX_DEPTH:
        raise FormulaError("The formula is too large.")
    try:
        from latex2mathml.converter import convert_to_element  # noqa: PLC0415

        root = convert_to_element(_known(formula), display="block" if display else "inline")
    except Exception as error:  # the library raises many kinds of errors on broken formulas
        raise FormulaError("The formula cannot be read.") from error
    parts, left = [], MAX_ELEMENTS
    for part in _written(root, 0):
        left -= 1
        if left < 0:
            raise FormulaError("The formula is too large.")
        parts.append(part)
    text = "".join(parts)
    return text.replace("<math>", '<math display="block">', 1) if display else text


_SAME = {
    **dict.fromkeys(("aligned", "alignedat", "gather", "gathered", "multline"), "align*"),
    "dcases": "cases",
}
"""Environments that the library does not know, and those that look the same."""
_ENVIRONMENT = re.compile(r"\\(begin|end)\{([a-z]+)\*?\}")


def _known(formula: str) -> str:
    r"""Name environments as the library knows them.

    >>> _known(r"\begin{aligned} a &= b \end{aligned}")
    '\\begin{align*} a &= b \\end{align*}'
    """

    def named(found: re.Match[str]) -> str:
        if found[2] == "equation":
            return ""
        return f"\\{found[1]}{{{_SAME[found[2]]}}}" if found[2] in _SAME else found[0]

    return _ENVIRONMENT.sub(named, formula)


def _depth(formula: str) -> int:
    """Return how deep braces, scripts and commands with arguments could nest."""
    deepest = level = 0
    for sign in formula:
        level += (sign in "{[(") - (sign in "}])")
        deepest = max(deepest, level)
    runs = max((len(run) for run in re.findall(r"[_^]+", formula)), default=0)
    return max(deepest, runs)


def _written(element: Element, depth: int) -> Iterator[str]:
    """Write an element from what is known; any other element becomes a row."""
    if depth > 2 * MAX_DEPTH:
        raise FormulaError("The formula is nested too deeply.")
    tag = element.tag
    if len(element) != _CHILDREN.get(tag, len(element)):
        raise FormulaError("The formula is not complete.")
    css = (
        "boxed"
        if element.get("notation") == "box"
        else _ALIGNED.get(element.get("columnalign", ""))
    )
    name = tag if tag in _ELEMENTS else "mrow"
    given = "".join(
        f' {key}="{value}"'
        for key, value in element.attrib.items()
        if key in _PATTERNS and _PATTERNS[key].fullmatch(value)
    )
    yield f'<{name}{given} class="{css}">' if css else f"<{name}{given}>"
    if element.text:
        yield html.escape(visible(html.unescape(element.text)), quote=True)
    for child in element:
        yield from _written(child, depth + 1)
    yield f"</{name}>"
