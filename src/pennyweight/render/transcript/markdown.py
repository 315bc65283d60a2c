"""Markdown with code and formulas as HTML. Raw HTML stays text, links and images lead nowhere.

Marks (the answer, the evidence of checks) are set in the source by characters that no text
contains, and become elements only inside texts, so that they cannot break the structure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from pennyweight.render.page import visible
from pennyweight.render.transcript.code import code_blocks
from pennyweight.render.transcript.folds import (
    HEAD_LINES,
    LINE,
    Block,
    Folded,
    fitting,
    fitting_end,
    fold,
    lines_of,
)
from pennyweight.render.transcript.maths import FormulaError, mathml
from pennyweight.render.transcript.parts import ON, block_parts
from pennyweight.text.format import count

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

MarkedText = tuple[str, str]
"""A piece of text, and the kind of its mark: empty for none."""
MAX_CHARACTERS = 40_000
"""Of longer texts only the beginning is read as Markdown."""
MAX_FORMULAS = 4_000
"""Characters of formulas in one text that are set; the rest is shown as it is written."""
MAX_FORMULA_LINES = 60
LEFT_OUT = Markup('<p class="quiet">The middle of this text is left out here.</p>')
MAX_LINE = 400
"""Longer lines of plain text are split where they are folded."""
MAX_BLOCK_LINES = 100
"""A text with a longer paragraph, list or table is not read as Markdown, which cannot fold it."""
MAX_NESTING = 18
"""A text that nests deeper is not read as Markdown, which would leave parts of it out."""
SIGNS = {"found": "\ufdd0", "evidence": "\ufdd1", "correction": "\ufdd2"}
_END = "\ufdd3"
WRONG = "wrong:"
"""The kind of a mark that is explained; the explanation follows, shown on hover and focus."""
_EXPLAINED = [chr(code) for code in range(0xFDD4, 0xFDF0)]
"""The signs of explained marks; a text has no more of them."""
_KINDS = {sign: kind for kind, sign in SIGNS.items()}
_SIGN = re.compile(f"([{''.join((*SIGNS.values(), _END, *_EXPLAINED))}])")
_LEAD = re.compile(r"(?m:^)[ \t>]*(?:[-*+#]+[ \t]+|[0-9]{1,9}[.)][ \t]+|[|][ \t]*)?")
_BOXED = "\\boxed{"
_FENCES = {"$$": "$$", "\\[": "\\]"}
_ENVIRONMENT = re.compile(r"\\begin\{(align|aligned|equation|gather|cases|[bpv]?matrix)(\*?)\}")


def document(pieces: Sequence[MarkedText], most: int = 80_000) -> Folded:
    r"""Return Markdown as HTML of at most so many bytes, its middle folded if it is long.

    >>> print(document([("**7** is ", ""), ("$x^2$", "found")]).head)
    <p><strong>7</strong> is <mark class="found"><math><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math></mark></p>
    <BLANKLINE>
    """  # noqa: E501
    read = _read(pieces, most, fitting)
    return fold(read[0], cut=read[1]) if read else plain(pieces, most)


def plain(pieces: Sequence[MarkedText], most: int = 80_000) -> Folded:
    """Return text as it is, its middle folded if it is long."""
    blocks, cut = fitting(_chunks(pieces), most)
    return replace(fold(blocks, cut=cut), text=True)


def both_ends(
    first: Sequence[MarkedText], last: Sequence[MarkedText], most: int, *, raw: bool, again: str
) -> Folded:
    """Return the beginning and the end of a text as HTML; its middle is left out.

    As Markdown, the end begins with the text `again`.
    """
    sizes = most * 2 // 3, most // 3
    one = None if raw else _read(first, sizes[0], fitting)
    two = None if raw else _read([(again, ""), *last], sizes[1], fitting_end)
    text = one is None or two is None
    if one is None or two is None:
        one, two = fitting(_chunks(first), sizes[0]), fitting_end(_chunks(last), sizes[1])
    return replace(fold([*one[0], Block(LEFT_OUT, 1), *two[0]]), cut=True, text=text)


def _read(
    pieces: Sequence[MarkedText], most: int, fit: Callable[..., tuple[list[Block], bool]]
) -> tuple[list[Block], bool] | None:
    """Read Markdown; return also whether something was cut off. None if it stays plain text."""
    source, cut, kinds = _source(pieces)
    env: dict[str, Any] = {
        "mark": "", "kinds": kinds, "formulas": MAX_FORMULAS, "coloured": most // 4,
    }  # fmt: skip
    tokens = _reader().parse(source, env)
    if any(token.level > MAX_NESTING for token in tokens):
        return None
    blocks, more = fit(_blocks(tokens, env), most)
    large = any(block.lines > MAX_BLOCK_LINES for block in blocks if not block.folded)
    if large or (more and sum(block.lines for block in blocks) < HEAD_LINES):
        return None  # a block that cannot be folded is too large
    return blocks, cut or more


def _chunks(pieces: Sequence[MarkedText]) -> Iterator[Block]:
    """Split texts into lines; parts of very long lines are blocks of their own."""
    for text, kind in pieces:
        for line in visible(text).splitlines(keepends=True):
            for at in range(0, len(line), MAX_LINE):
                part = line[at : at + MAX_LINE]
                html = Markup(_in_mark(str(escape(part)), kind))  # noqa: S704
                yield Block(html, max(1, -(-len(part.rstrip()) // LINE)))


def _source(pieces: Sequence[MarkedText]) -> tuple[str, bool, dict[str, str]]:
    """Join pieces with the signs of their marks.

    Return also whether the end was cut off, and the kind of each sign.
    """
    parts: list[str] = []
    kinds, signs, free = _KINDS.copy(), dict(SIGNS), iter(_EXPLAINED)
    length = 0
    for text, kind in pieces:
        shown = _SIGN.sub("\ufffd", text[: MAX_CHARACTERS - length])
        length += len(text)
        shown = visible(shown)
        if kind.startswith(WRONG) and kind not in signs and (sign := next(free, None)):
            signs[kind], kinds[sign] = sign, kind
        if kind in signs:  # a mark at the start of a line comes after what makes the line a list
            lead = _LEAD.match(shown) if not parts or parts[-1].endswith("\n") else None
            at = lead.end() if lead else 0
            shown = f"{shown[:at]}{signs[kind]}{shown[at:]}{_END}"
        parts.append(shown)
        if length >= MAX_CHARACTERS:
            break
    return "".join(parts), length > MAX_CHARACTERS, kinds


def _blocks(tokens: Sequence[Token], env: dict[str, Any]) -> Iterator[Block]:
    """Render the blocks of the outermost level one by one; long lists and paragraphs in parts."""
    reader = _reader()
    for whole in block_parts(tokens):
        html = Markup(reader.renderer.render(whole, reader.options, env))  # noqa: S704
        text = "\n".join(t.content for t in whole if t.content)
        yield Block(html, lines_of(text), folded=whole[-1].type in {"fence", "code_block"})


@cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415

    reader = MarkdownIt("commonmark", {"html": False, "breaks": True})
    reader.enable(["table", "strikethrough"])
    reader.disable(["html_inline", "html_block", "reference", "lheading"])
    stops = ["paragraph", "blockquote", "list"]
    reader.block.ruler.before("fence", "formula", _block_formula, {"alt": stops})
    reader.inline.ruler.before("escape", "formula", _inline_formula)
    rules: dict[str, Callable[..., str]] = {
        "text": _text,
        "code_inline": lambda t, env: f"<code>{_marked(t.content, env)}</code>",
        "fence": _code_block,
        "code_block": _code_block,
        "formula": _formula,
        "image": _image,
        "link_open": lambda *_: '<span class="link">',
        "heading_open": lambda t, _: f'<div class="heading {t.tag}">',
        "heading_close": lambda *_: "</div>\n",
        "bullet_list_open": lambda t, _: f'<ul dir="auto"{_start(t)}>\n',
        "ordered_list_open": lambda t, _: f'<ol dir="auto"{_start(t)}>\n',
        "paragraph_open": lambda t, _: "" if t.hidden else f"<p{_start(t)}>",
        "table_open": lambda *_: '<div class="scroll" tabindex="0"><table>\n',
        "table_close": lambda *_: "</table></div>\n",
        "th_open": lambda t, _: f"<th{_aligned(t)}>",
        "td_open": lambda t, _: f"<td{_aligned(t)}>",
    }
    for name, rule in rules.items():
        reader.add_render_rule(name, _bound(rule))
    reader.add_render_rule("link_close", _link_close)
    return reader


def _bound(rule: Callable[..., str]) -> Callable[..., str]:
    """Make a render rule of a function of a token and the state of the text."""

    def render(_: Any, tokens: Sequence[Token], index: int, __: Any, env: Any) -> str:
        return rule(tokens[index], env)

    return render


def _start(token: Token) -> str:
    start = token.attrGet("start")
    number = f' start="{int(start)}"' if start is not None else ""
    return f'{number} class="on"' if token.meta.get(ON) else number


def _aligned(token: Token) -> str:
    """Align by a class: the policy of the page allows no style attributes."""
    return ' class="num"' if token.attrGet("style") == "text-align:right" else ""


def _text(token: Token, env: dict[str, Any]) -> str:
    return _marked(token.content, env)


def _marked(text: str, env: dict[str, Any]) -> str:
    """Escape a text and put its marked parts into elements."""
    if not env["mark"] and not _SIGN.search(text):
        return str(escape(text))
    parts = []
    for piece in _SIGN.split(text):
        if piece == _END:
            env["mark"] = ""
        elif piece in env["kinds"]:
            env["mark"] = env["kinds"][piece]
        elif piece:
            parts.append(_in_mark(str(escape(piece)), env["mark"]))
    return "".join(parts)


def _in_mark(html: str, kind: str) -> str:
    if not kind:
        return html
    name, _, title = kind.partition(":")
    more = f' title="{escape(title)}" tabindex="0"' if title else ""
    return f'<mark class="{name}"{more}>{html}</mark>'


def _plain(text: str, env: dict[str, Any]) -> tuple[str, str]:
    """Remove the signs from a text; return also the mark that holds in it."""
    kind = env["mark"]
    for sign in _SIGN.findall(text):
        env["mark"] = env["kinds"].get(sign, "")
        kind = kind or env["mark"]
    return _SIGN.sub("", text), kind


def _code_block(token: Token, env: dict[str, Any]) -> str:
    text, kind = _plain(token.content.removesuffix("\n"), env)
    words = _SIGN.sub("", token.info).split()
    name = f'<span class="language">{escape(words[0][:24])}</span>' if words else ""
    blocks = code_blocks(text, words[0] if words else "", env["coloured"])
    env["coloured"] -= sum(len(block.html) for block in blocks) - len(text)
    shown = fold(blocks)
    return f"{name}{code_html(shown, kind)}\n"


def code_html(shown: Folded, mark: str = "") -> Markup:
    """Write folded code."""

    def block(html: Markup) -> str:
        inner = _in_mark(str(html).removesuffix("\n"), mark)
        return f'<pre class="code">{inner}</pre>' if html else ""

    if not shown.hidden:
        return Markup(block(shown.head))  # noqa: S704
    words = f"{count(shown.hidden)} more lines"
    folded = f'<details class="fold"><summary>{words}</summary>{block(shown.middle)}</details>'
    return Markup(f"{block(shown.head)}{folded}{block(shown.tail)}")  # noqa: S704


def _formula(token: Token, env: dict[str, Any]) -> str:
    text, kind = _plain(token.content, env)
    env["formulas"] -= len(text)
    try:
        if env["formulas"] < 0:
            raise FormulaError("Too many formulas.")
        shown = mathml(text, display=token.block)
    except FormulaError:
        whole = _SIGN.sub("", token.markup.replace("…", text, 1))
        shown = f"<code>{escape(whole)}</code>"
    return _in_mark(shown, kind)


def _image(token: Token, env: dict[str, Any]) -> str:
    alt, kind = _plain(token.content, env)
    return _in_mark(f'<span class="tag">image</span> {escape(alt)} ', kind) + _address(token)


def _link_close(_: Any, tokens: Sequence[Token], index: int, __: Any, ___: Any) -> str:
    depth = 0
    for token in reversed(tokens[:index]):
        depth += (token.type == "link_close") - (token.type == "link_open")
        if depth < 0:
            return f"</span> {_address(token)}"
    return "</span>"


def _address(token: Token) -> str:
    """Show where a link or an image would lead."""
    where = _SIGN.sub("", str(token.attrGet("href") or token.attrGet("src") or ""))
    return f"<small>{escape(visible(where[:200]))}{'…' if len(where) > 200 else ''}</small>"


def _block_formula(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a formula that begins at the start of a line and may span several."""
    first = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    bare = _SIGN.sub("", first)
    opening = next((sign for sign in _FENCES if bare.startswith(sign)), "")
    named = None if opening else _ENVIRONMENT.match(bare)
    if (not opening and not named) or state.sCount[start] - state.blkIndent >= 4:
        return False
    closing = _FENCES[opening] if opening else f"\\end{{{named[1]}{named[2]}}}" if named else ""
    lines = []
    for line in range(start, min(end, start + MAX_FORMULA_LINES)):
        lines.append(state.src[state.bMarks[line] : state.eMarks[line]])
        whole = "\n".join(lines)
        at = whole.find(closing, whole.find(opening) + len(opening) if opening else 0)
        if at < 0:
            continue
        if _SIGN.sub("", whole[at + len(closing) :]).strip(" \t.,;"):
            return False  # text follows: it is a formula within a line
        if not silent:
            inner = whole[: at + len(closing)] if named else whole[:at].replace(opening, "", 1)
            token = state.push("formula", "", 0)
            token.content = inner + "".join(_SIGN.findall(whole[at:]))
            token.block, token.markup, token.map = (
                True,
                f"{opening}…{closing if opening else ''}",
                [start, line + 1],
            )
            state.line = line + 1
        return True
    return False


def _inline_formula(state: StateInline, silent: bool) -> bool:
    r"""Read `$…$`, `$$…$$`, `\(…\)` or `\[…\]`; amounts of money are none."""
    text, at = state.src, state.pos
    if text[at] not in "$\\":
        return False
    if text.startswith(_BOXED, at):
        return _boxed(state, silent)
    opening = next((o for o in ("$$", "\\[", "\\(", "$") if text.startswith(o, at)), "")
    if not opening:
        return False
    closing = {"\\[": "\\]", "\\(": "\\)"}.get(opening, opening)
    begin = at + len(opening)
    end = text.find(closing, begin, begin + 2_100)
    if end <= begin or "\n\n" in text[begin:end]:
        return False
    inner, after = text[begin:end], text[end + len(closing) : end + len(closing) + 1]
    if opening == "$" and (inner[0].isspace() or inner[-1].isspace() or after.isdecimal()):
        return False
    if not silent:
        token = state.push("formula", "", 0)
        token.content, token.markup = inner, f"{opening}…{closing}"
        token.block = opening in _FENCES
    state.pos = end + len(closing)
    return True


def _boxed(state: StateInline, silent: bool) -> bool:
    r"""Read an answer in a box outside of a formula, such as `\boxed{7}`."""
    text, at, depth = state.src, state.pos, 0
    for end in range(at, min(len(text), at + 500)):
        depth += (text[end] == "{") - (text[end] == "}")
        if text[end] == "}" and not depth:
            if not silent:
                token = state.push("formula", "", 0)
                token.content, token.markup = text[at : end + 1], "…"
            state.pos = end + 1
            return True
    return False
