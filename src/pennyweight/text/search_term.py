"""What a search box takes: words, `"words in a row"`, `beginnin*` of a word, `*nside` of words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from pennyweight.text.safe import storable

WORD_CHARACTERS = (
    "0-9A-Za-zªµºÀ-ÖØ-ö²³¹¼-¾\u00f8-\u167f\u1681-\u1fff\u2070-\u209c\u20d0-\u2115"
    "\u2119-\u211d\u2124-\u218a\u2460-\u249b\u24ea-\u24ff\u2776-\u2793\u2c00-\u2dff"
    "\u2e2f\u3005-\u3007\u3021-\ud7ff\ue000-\ufdff\ufe70-\ufefc\uff10-\uff19"
    "\uff21-\uff3a\uff41-\uff5a\uff66-\uffdc"
    "\U00010000-\U0001efff\U0001f100-\U0001f10c\U0001fbf0-\U0001fbf9\U00020000-\U0010ffff"
)
"""Ranges with at least what SQLite's index takes for parts of words, such as letters."""
_LAST_LETTER = 0x052F
"""Latin, Greek and Cyrillic: scripts that separate words by spaces."""
_WORD = re.compile(r"[^\W_]+")
_TERM = re.compile(r'"([^"]*[^"\s][^"]*)"(?!\S)|\S+')
_SPACES = re.compile(r"\s")
_SPACE = "[ \t-\r\x1c-\x1f\x85\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
_TO_LOWER = str.maketrans({chr(c): chr(c + 32) for c in range(ord("A"), ord("Z") + 1)})


@dataclass(frozen=True, slots=True)
class SearchTerm:
    """One text to look for, and where in words it may be."""

    text: str
    kind: Literal["plain", "inside", "prefix", "phrase"] = "plain"

    @classmethod
    def read(cls, written: str) -> tuple[SearchTerm, ...]:
        r"""Read what a person wrote: terms between spaces, all of which a record must have.

        What is neither quoted nor starred as a whole is plain text, with its punctuation.

        >>> SearchTerm.read('"the needle in" zeb*')
        (SearchTerm(text='the needle in', kind='phrase'), SearchTerm(text='zeb', kind='prefix'))
        >>> [(term.text, term.kind) for term in SearchTerm.read('*eedle 3.14 *')]
        [('eedle', 'inside'), ('3.14', 'plain'), ('*', 'plain')]
        """
        found = _TERM.finditer(storable(written) or "")
        return tuple(dict.fromkeys(cls._term(term[0], term[1]) for term in found))

    @classmethod
    def _term(cls, written: str, quoted: str | None) -> SearchTerm:
        if quoted is not None:
            return cls(quoted.strip(), "phrase")
        if written.startswith("*") and written != "*":
            return cls(written[1:], "inside")
        if written.endswith("*") and _WORD.match(written[-2:-1]):
            return cls(written[:-1], "prefix")
        return cls(written)

    def words(self) -> list[str]:
        """Return the words by which an index finds the text; none if it cannot.

        >>> SearchTerm("The heat-pump's no").words(), SearchTerm("北京").words()
        (['the', 'heat', 'pump', 's', 'no'], [])
        """
        spaced = self.kind != "inside" and all(map(_is_spaced, self.text))
        return _WORD.findall(self.text.lower()) if spaced else []

    def like(self) -> str:
        """Return a pattern for LIKE with the escape `!`: the text, anywhere."""
        plain = re.sub("([!%_])", r"!\1", self.text)
        return f"%{_SPACES.sub('_', plain) if self._limited else plain}%"

    def pattern(self, *, lite: bool) -> str:
        """Return a pattern that tells whole words: for GLOB, or else for a regular expression.

        It is meant for a text in lower case between spaces. Empty where `like` says it all.
        """
        if not self._limited:
            return ""
        apart = f"[^{WORD_CHARACTERS}]"
        first = apart if _ends_word(self.text[0]) else ""
        last = apart if self.kind == "phrase" and _ends_word(self.text[-1]) else ""
        middle = "".join(_one(character, lite=lite) for character in self.text)
        return f"*{first}{middle}{last}*" if lite else f"{first}{middle}{last}"

    @property
    def _limited(self) -> bool:
        return self.kind in {"prefix", "phrase"}


def _is_spaced(character: str) -> bool:
    return ord(character) <= _LAST_LETTER and not 0x300 <= ord(character) < 0x370


def _ends_word(character: str) -> bool:
    """Whether words that begin or end with it are set apart from others."""
    return _is_spaced(character) and _WORD.match(character) is not None


def _one(character: str, *, lite: bool) -> str:
    """Return the pattern of one character, in either case; white space stands for all of it."""
    if character.isspace():
        return _SPACE
    if character.isascii():
        plain = character.translate(_TO_LOWER)
        if plain.isalnum():
            return plain
        return (f"[{plain}]" if plain in "*?[" else plain) if lite else f"\\{plain}"
    both = {character, character.lower(), character.upper()}
    return f"[{''.join(sorted(c for c in both if len(c) == 1))}]"
