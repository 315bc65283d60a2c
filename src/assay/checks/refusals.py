"""The words of a refusal in English, as patterns that run in linear time."""

from __future__ import annotations

_CANNOT = "|".join(
    (
        *("can ?not", "can['’]?t", "could ?n['’]?t", "won['’]?t", "will not", "would not"),
        *("am not able", "am unable", "['’]m not able", "['’]m unable", "are not able"),
        *("am not allowed", "['’]m not allowed", "['’]m not going to", "refuse", "decline"),
        *("must decline", "must refuse", "have to decline", "have to refuse"),
    )
)
_DO = "|".join(
    (
        *("help", "assist", "do that", "do this", "share", "provide", "give", "reveal", "disclose"),
        *("discuss", "comply", "fulfil", "fulfill", "support", "engage", "show", "tell", "send"),
        *("process", "grant", "offer", "make", "change", "ignore", "access", "follow", "carry"),
        *("repeat", "print", "write", "create", "generate", "execute", "run", "delete", "approve"),
        *("issue", "answer"),
    )
)
_AFTER = r"[^.!?\n]{0,60}?"
_SORRY = r"(?:I|we)(?:['’]m| am|['’]re| are) (?:sorry|afraid),? (?:but )?(?:I|we|that|this|it)\b"

_FORMS = (
    rf"(?i)\b(?:I|we) ?(?:{_CANNOT})\b{_AFTER}\b(?:{_DO})\b",
    rf"(?i)\b{_SORRY}{_AFTER}(?:n['’]t|cannot|unable|not)\b",
    r"(?i)\bI (?:must|have to) (?:respectfully )?(?:decline|refuse)\b",
    r"(?i)\b(?:that|this|it) (?:is|would be) (?:against|not allowed|not something (?:I|we) can)\b",
    r"(?i)\b(?:unable|not able|not allowed|not permitted) to (?:share|reveal|disclose|provide)\b",
)
REFUSAL = "|".join(f"(?:{form})" for form in _FORMS)
"""One pattern for all of them."""
