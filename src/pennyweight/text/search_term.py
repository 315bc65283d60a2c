"""What a search box takes: a text, `"a run of words"`, `beginnin*` of a word, `*nside` of words."""

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
_SPACES = re.compile(r"\s")
_SPACE = "[ \t-\r\x1c-\x1f\x85\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
_TO_LOWER = str.maketrans({chr(c): chr(c + 32) for c in range(ord("A"), ord("Z") + 1)})


@dataclass(frozen=True, slots=True)
class SearchTerm:
    """A text to look for, and where in words it may be."""

    text: str
    kind: Literal["plain", "inside", "prefix", "phrase"] = "plain"

    @classmethod
    def read(cls, written: str) -> SearchTerm:
        r"""Read what a person wrote; what is neither quoted nor starred as a whole is plain text.

        >>> SearchTerm.read('"the needle in"'), SearchTerm.read("zeb*")
        (SearchTerm(text='the needle in', kind='phrase'), SearchTerm(text='zeb', kind='prefix'))
        >>> SearchTerm.read("*eedle"), SearchTerm.read('"a" OR "b"').kind, SearchTerm.read("*").kind
        (SearchTerm(text='eedle', kind='inside'), 'plain', 'plain')
        """
        written = storable(written) or ""
        stripped = written.strip()
        quoted = stripped[1:-1].strip()
        if quoted and '"' not in quoted and stripped[0] == stripped[-1] == '"':
            return cls(quoted, "phrase")
        if written.startswith("*"):
            return cls(written[1:], "inside") if written[1:] else cls(written)
        begun = stripped.removesuffix("*")
        if begun != stripped and _WORD.match(begun[-1:]):
            return cls(begun, "prefix")
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
