"""Judges that count words instead of asking a model, so the docs run without a key."""

import json
import re

DATA = re.compile(r"<data-[0-9a-f]+>\n(.*?)\n</data-[0-9a-f]+>", re.DOTALL)


def words(text):
    """Find the longer words of a text."""
    return {word.lower() for word in re.findall(r"\w{4,}", text)}


def judgment(request, tolerance, sure):
    """Score a commit message by the words that it shares with the change."""
    task, message = DATA.findall(request.text)[:2]
    change = words(task.splitlines()[0])
    named = len(change & words(message)) / len(change)
    invented = len(words(message) - words(task)) / max(1, len(words(message)))
    short = len(message) <= 72 and "\n" not in message.strip()
    reason = "because" in task
    scores = {
        "change_named": 2 * min(1, named + tolerance),
        "nothing_invented": 2 * max(0, 1 - invented * (1 - tolerance)),
        "short": 1 if short else tolerance,
        "reason": float("because" in message or "so that" in message) if reason else "N/A",
    }
    evidence = f"{named:.0%} of the change's words, {len(message)} characters"
    items = {n: {"evidence": evidence, "score": s} for n, s in scores.items()}
    text = json.dumps({"items": items, "confidence": sure, "passed": True})
    usage = {"prompt_tokens": len(request.text) // 4, "completion_tokens": len(text) // 4}
    return {"text": text, "usage": usage}


def strict(request):
    """Judge by what is written."""
    return judgment(request, 0.0, 0.9)


def kind(request):
    """Judge by what may have been meant."""
    return judgment(request, 0.5, 0.6)


def third(request):
    """Judge between the two."""
    return judgment(request, 0.2, 0.8)


def friendly(request):
    """Judge how friendly a reply is, by its words."""
    score = 5 if re.search(r"\b(gladly|please|sorry|thank|welcome)", request.text) else 2
    mark = {"evidence": "It has friendly words, or none.", "score": score}
    return json.dumps({"items": {"tone": mark}, "confidence": 0.8})


def thorough(request):
    """Prefer the longer of two replies."""
    first, second = DATA.findall(request.text)[-2:]
    score = 3 if len(first) == len(second) else 1 if len(first) > len(second) else 2
    mark = {"evidence": "The longer one says more.", "score": score}
    return json.dumps({"items": {"preference": mark}, "confidence": 0.8})
