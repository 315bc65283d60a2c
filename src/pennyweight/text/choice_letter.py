"""The letter of a choice that a text names."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from string import ascii_lowercase

_LETTERED = re.compile(r"\(?([a-z])[).:]+\s*(.*)", re.DOTALL)


def choice_letter(text: str | None, choices: str | None) -> str | None:
    """Return the letter of the choice that a text names: by letter, text, both or index from 0.

    `choices` is a JSON list of texts. The text of a choice comes before an index.

    >>> paris = '["Rome", "Paris", "Oslo"]'
    >>> [choice_letter(text, paris) for text in ("(B)", "paris", "B. Paris", "1", "B. Rome", "?")]
    ['b', 'b', 'b', 'b', None, None]
    """
    if text is None or choices is None:
        return None
    texts = _texts(choices)
    said = text.strip().lower()
    bare = said.strip("()[].: ")
    known = ascii_lowercase[: len(texts)]
    if texts.count(said) == 1:
        return known[texts.index(said)]
    if len(bare) == 1 and bare in known:
        return bare
    if (both := _LETTERED.fullmatch(said)) and both[1] in known:
        same = texts[known.index(both[1])] == both[2].strip()
        return both[1] if same else None
    if said.isascii() and said.isdecimal() and int(said[:3]) < len(known) and len(said) < 3:
        return known[int(said)]
    return None


@lru_cache(4_096)
def _texts(choices: str) -> tuple[str, ...]:
    """Return the texts of choices in lower case; nothing if they cannot be read."""
    try:
        found = json.loads(choices)
    except ValueError:
        return ()
    if isinstance(found, dict):
        found = found.get("text") or list(found.values())
    listed = found if isinstance(found, list) else []
    return tuple(str(one).strip().lower() for one in listed)[: len(ascii_lowercase)]
