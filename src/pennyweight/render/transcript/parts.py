"""The blocks of a Markdown text; long lists and paragraphs are several, so that they fold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.token import Token

ON = "on"
"""Marks the parts of a list or paragraph that another part follows without a gap."""
MAX_ITEMS = 12
"""Longer lists are split into their items."""
MAX_LINES = 24
"""Longer paragraphs are split."""
_LISTS = frozenset(("ordered_list_open", "bullet_list_open"))
_BREAKS = frozenset(("softbreak", "hardbreak"))


def block_parts(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the tokens of each block of the outermost level."""
    begin = 0
    for end, token in enumerate(tokens, 1):
        if token.level or token.nesting == 1:
            continue
        block = list(tokens[begin:end])
        begin = end
        if block[0].type in _LISTS:
            yield from _items(block)
        elif block[0].type == "paragraph_open":
            yield from _lines(block)
        else:
            yield block


def _items(block: list[Token]) -> Iterator[list[Token]]:
    """Split a long list into lists of one item."""
    head, *inner, tail = block
    edges = [n for n, token in enumerate(inner, 1) if token.level == 1 and token.nesting == -1]
    if len(edges) <= MAX_ITEMS:
        yield block
        return
    first = head.attrGet("start")
    for number, (begin, end) in enumerate(zip([0, *edges], edges, strict=False)):
        opening = _continued(head, last=end == edges[-1])
        if head.type == "ordered_list_open":
            opening.attrs = {**head.attrs, "start": int(first if first is not None else 1) + number}
        yield [opening, *inner[begin:end], tail]


def _lines(block: list[Token]) -> Iterator[list[Token]]:
    """Split a paragraph of many lines."""
    head, inline, tail = block
    children, depth, begin, lines = inline.children or [], 0, 0, 0
    edges = []
    for n, child in enumerate(children):
        depth += child.nesting
        lines += child.type in _BREAKS
        if child.type in _BREAKS and not depth and lines - begin >= MAX_LINES:
            edges.append(n)
            begin = lines
    for start, end in zip([-1, *edges], [*edges, len(children)], strict=True):
        some = copy(inline)
        some.children = children[start + 1 : end]
        some.content = "".join(
            "\n" if child.type in _BREAKS else child.content for child in some.children
        )
        yield [_continued(head, last=end == len(children)), some, tail]


def _continued(head: Token, *, last: bool) -> Token:
    found = copy(head)
    found.meta = {**head.meta, ON: not last}
    return found
