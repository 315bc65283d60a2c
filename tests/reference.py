"""Every measure and metric once more, in plain Python, to check the fast ones against.

Slow and simple on purpose: lists, loops and the standard library; nothing from the package.
"""

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import combinations, pairwise, permutations
from typing import Any

Record = dict[str, Any]

# Unicode's White_Space property. Python's own str.isspace and \s also take \x1c to \x1f.
WHITE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
WORD = re.compile(f"[^{WHITE}]+")
STEP = re.compile(rf"[{WHITE}]*(\d+\.|-|\*)[{WHITE}]")
LINE_END = re.compile(r"\r\n|\n|\r")
NUMBER = re.compile(
    r"([+-]?)"
    r"(?:([1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)(?:\.([0-9]*))?|\.([0-9]+))"
    r"(?:e([+-]?)0*([0-9]{0,18})(?<=[0-9]))?"
)
SELF_CORRECTIONS = ("actually", "sorry", "correction", "let me fix", "i made a mistake")
ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
GRADES = (("A", 0.95), ("B", 0.85), ("C", 0.75), ("D", 0.65))

# Metrics that are the mean of one value, over the records that have it.
MEANS = {
    "accuracy": "correct",
    "cot_tokens_mean": "cot_tokens",
    "cot_chars_mean": "cot_chars",
    "step_count_mean": "step_count",
    "ra_ratio_mean": "ra_ratio",
    "self_correction_rate": "self_correcting",
    "steps_mean": "steps",
    "backtracking_rate": "backtracking",
    "answer_follows_rate": "answer_follows",
    "cut_in_thought_rate": "cut_in_thought",
    "prompt_tokens_mean": "prompt_tokens",
    "completion_tokens_mean": "completion_tokens",
    "total_tokens_mean": "total_tokens",
    "latency_mean_ms": "latency_ms",
    "pass_rate": "passed",
    "impl_rate_mean": "impl_rate",
    "cost_usd_mean": "cost_usd",
    "truncated_rate": "truncated",
}
PER_RUN = ["passed", "impl_rate", "cost_usd", "duration_seconds", "cost_of_pass", "composite_score"]
FINAL_PARTS = ("accuracy", "safety_rate", "behavior_coverage", "latency_p95_ms")


def normalize(s: str) -> str:
    """Strip, lower-case, and write a plain number in its one canonical form."""
    text = s.strip(WHITE).lower()
    match = NUMBER.fullmatch(text)
    if match is None:
        return text
    sign, whole, fraction, bare_fraction, exponent_sign, exponent_digits = match.groups()
    fraction = fraction or bare_fraction or ""
    digits = (whole or "").replace(",", "") + fraction
    exponent = int(exponent_digits or "0")
    if exponent_sign == "-":
        exponent = -exponent
    exponent -= len(fraction)
    exponent += len(digits) - len(digits.rstrip("0"))
    digits = digits.strip("0")
    if not digits:
        return "0"
    minus = "-" if sign == "-" else ""
    if not -400 <= exponent <= 400:
        return f"{minus}{digits}e{exponent}"
    if exponent >= 0:
        return minus + digits + "0" * exponent
    digits = digits.rjust(1 - exponent, "0")  # at least one digit stays before the point
    return f"{minus}{digits[:exponent]}.{digits[exponent:]}"


def tokens(s: str) -> int:
    """How many words white space separates."""
    return len(WORD.findall(s))


def has_verdicts(records: list[Record]) -> bool:
    """Whether a record comes with a verdict: then answers decide for none of them."""
    names = ("passed", "judge_passed")
    return any(record.get(name) is not None for record in records for name in names)


def measures(
    record: Record,
    *,
    pass_weight: float = 0.5,
    impl_weight: float = 0.5,
    verdicts: bool = False,
) -> Record:
    """Everything that can be computed from one record alone."""
    if pass_weight + impl_weight == 0:
        raise ValueError("pass_weight and impl_weight must not sum to 0")
    get: Callable[[str], Any] = record.get
    out: Record = {}

    answer, target, cot = get("answer"), get("target"), get("cot")
    answer, target = _single(answer), _single(target)
    out["normalized_answer"] = None if answer is None else normalize(answer)
    out["normalized_target"] = None if target is None else normalize(target)
    if target is None:
        out["correct"] = get("correct")
    else:
        out["correct"] = answer is not None and normalize(answer) == normalize(target)
    if get("status") == "error":
        out["correct"] = None
    right = out["correct"] and target is not None
    out["label"] = out["normalized_target"] if right else out["normalized_answer"]
    choices = get("choices")
    out["target_label"], out["answer_label"] = out["normalized_target"], out["label"]
    if choices is not None:
        asked = out["target_label"] = _letter(get("target"), choices)
        said = _letter(get("answer"), choices)
        out["answer_label"] = said if said != asked and asked is not None else None
        if out["correct"]:
            out["answer_label"] = asked

    for name in ("cot_tokens", "cot_chars", "step_count", "ra_ratio", "self_correcting"):
        out[name] = None
    if cot is not None:
        lowered = cot.translate(ASCII_LOWER)
        out["cot_tokens"] = tokens(cot)
        out["cot_chars"] = len(cot)
        out["step_count"] = sum(STEP.match(line) is not None for line in LINE_END.split(cot))
        out["ra_ratio"] = tokens(cot) / max(1, tokens(answer or ""))
        out["self_correcting"] = any(words in lowered for words in SELF_CORRECTIONS)

    out["answer_class"] = out["label"]
    out["task_digest"] = _digest(record)
    out["stated_confidence"] = get("stated_confidence")
    out["logprob_confidence"] = get("logprob_confidence")
    out |= _of_cot(cot, answer) | _of_context(get("context"), get("answer"))
    out["cut_in_thought"] = None if get("truncated") is None else False  # there is no reasoning

    prompt, completion = get("prompt_tokens"), get("completion_tokens")
    both = prompt is not None and completion is not None
    out["total_tokens"] = prompt + completion if both else None

    counts = [get("violations"), _given_or_count(None, get("violated"))]
    out["violations"] = max((c for c in counts if c is not None), default=None)
    out["expected"] = _given_or_count(get("expected"), get("expected_behaviors"))
    seen = get("observed_behaviors")
    if seen is not None and get("expected_behaviors") is not None:
        seen = [behavior for behavior in seen if behavior in get("expected_behaviors")]
    out["observed"] = _given_or_count(get("observed"), seen)
    out["scenario_score"] = score = _scenario_score(
        *(out["violations"], out["expected"], out["observed"]),
        *(get("undecided") or [], get("behavior_score")),
    )

    if (out["violations"] or 0) > 0 or get("status") in ("timeout", "budget"):
        passed = False
    elif get("undecided"):
        passed = False if get("passed") is False else None
    elif get("passed") is not None:
        passed = get("passed")
    elif score is not None:
        passed = score >= (1.0 if get("pass_score") is None else get("pass_score"))
    elif get("judge_passed") is not None:
        passed = get("judge_passed")
    else:
        passed = out["correct"] if get("judge_scores") is None and not verdicts else None
    out["passed"] = passed = None if get("status") == "error" else passed
    unjudged = score if get("judge_scores") is None else None
    out["impl_rate"] = impl = unjudged if get("impl_rate") is None else get("impl_rate")

    cost, duration = get("cost_usd"), get("duration_seconds")
    cost = _cost_of_tokens(get) if cost is None else cost
    if duration is None and get("start_time") is not None and get("end_time") is not None:
        duration = get("end_time") - get("start_time")
    out["cost_usd"], out["duration_seconds"] = cost, duration
    out["cost_of_pass"] = out["composite_score"] = None
    if cost is not None and passed is not None:
        out["cost_of_pass"] = cost if passed else math.inf
    if passed is not None and impl is not None:
        weighted = passed * pass_weight + impl * impl_weight
        out["composite_score"] = weighted / (pass_weight + impl_weight)
    return out


def _digest(record: Record) -> str | None:
    """A hash of each part of a task, as far as the record has it."""
    names = {"expected": "expected_behaviors"}
    parts = []
    for part in ("input", "context", "choices", "target", "expected", "pass_score"):
        value = record.get(names.get(part, part))
        if value is None:
            continue
        if isinstance(value, list):
            value = json.dumps(sorted(value))
        text = _canonical(value if isinstance(value, str) else repr(value))
        hashed = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
        parts.append(f"{part}={hashed}")
    return " ".join(parts) or None


def _canonical(text: str) -> str:
    """A text without what makes no difference: white space around it, how a number is written."""
    text = text.strip()
    if text.startswith("["):
        held = json.loads(text)
        return _canonical(held[0]) if len(held) == 1 else json.dumps(held)
    return normalize(text) if NUMBER.fullmatch(text.lower()) else text


NAMED_STEP = re.compile(
    rf"[{WHITE}]*(?:(?:\d+[.)]|[-*•])[{WHITE}]|[#*_ \t]*step[{WHITE}]+\d+\b)", re.IGNORECASE
)
DOUBTS = ("wait", "hold on", "hmm", "let me check", "actually", "i made a mistake", "correction")
EQUATION = re.compile(r"(?<![\w./])(\d+) ?([-+*/]) ?(\d+) = (\d+(?:\.\d+)?)")


def _of_cot(cot: str | None, answer: str | None) -> Record:
    """Steps, doubts and equations, as simple as the texts of generate.py allow."""
    names = ("steps", "backtracking", "readable_equations", "wrong_equations")
    out: Record = dict.fromkeys((*names, "first_wrong_equation", "answer_follows"))
    if cot is None:
        return out
    out["steps"] = sum(NAMED_STEP.match(line) is not None for line in LINE_END.split(cot))
    words = " ".join(re.findall(r"[a-z]+", cot.lower()))
    out["backtracking"] = any(f" {doubt} " in f" {words} " for doubt in DOUBTS)
    results = []
    for a, sign, b, c in EQUATION.findall(cot):
        x, y, places = Fraction(a), Fraction(b), len(c.partition(".")[2])
        left = {"+": x + y, "-": x - y, "*": x * y, "/": x / (y or 1)}[sign]
        results.append(abs(left - Fraction(c)) <= Fraction(1, 2 * 10**places))
    out["readable_equations"], out["wrong_equations"] = len(results), results.count(False)
    out["first_wrong_equation"] = results.index(False) + 1 if False in results else None
    numbers = re.findall(r"-?\d+(?:\.\d+)?", re.sub(r"(\d),(\d{3})\b", r"\1\2", answer or ""))
    if results and len(numbers) == 1:
        out["answer_follows"] = Fraction(numbers[0]) == Fraction(EQUATION.findall(cot)[-1][3])
    return out


def _of_context(context: str | None, reply: str | None) -> Record:
    """The sentences of a reply that no passage has enough trigrams of, and its citations."""
    keys = ("sentences", "unsupported", "citations", "right_citations", "cited")
    if context is None or reply is None:
        return {"support_check": None, "answer_sentences": None, "unsupported_sentences": None}
    known = json.loads(context) if context.startswith("[") else [context]
    found = dict.fromkeys(keys, 0)
    for sentence in re.split(r"(?<=[.!?])\s+|\n+", reply):
        cited = [int(n) for n in re.findall(r"\[(\d+)\]", sentence)]
        bare = _plain_words(re.sub(r"\[\d+\]", "", sentence))
        if len(bare.split()) < 3:
            continue
        grams = {bare[i : i + 3] for i in range(len(bare) - 2)}
        plain = [_plain_words(one) for one in known]
        holding = {
            i for i, one in enumerate(plain, 1) if 2 * sum(g in one for g in grams) >= len(grams)
        }
        numbers = _numbers(re.sub(r"\[\d+\]", "", sentence))
        supported = bool(holding) and numbers <= _numbers("\n".join(known))
        hits = [n in holding for n in cited]
        values = (1, not supported, len(hits), sum(hits), supported and any(hits))
        found = {key: found[key] + int(value) for key, value in zip(keys, values, strict=True)}
    named = {"answer_sentences": found["sentences"], "unsupported_sentences": found["unsupported"]}
    return {"support_check": found, **named}


def _verdicts(rows: list[Record]) -> list[Record]:
    """What a scorer named usr_rag says about each record, else what the screen says."""
    found = []
    for row in rows:
        score = json.loads(row.get("scores") or "{}").get("usr_rag")
        if score is not None and 0 <= score <= 1:
            found.append({"unsupported": score, "sentences": 1, "scored": True})
        elif row["support_check"] is not None:
            found.append({**row["support_check"], "scored": False})
    return found


def _plain_words(text: str) -> str:
    return " ".join(re.findall(r"\w+(?:[.,]\d+)*", text.lower()))


def _numbers(text: str) -> set[Fraction]:
    found = re.findall(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?", text)
    return {Fraction(number.replace(",", "")) for number in found}


def _given_or_count(given: int | None, names: list[str] | None) -> int | None:
    """The count that was given, else how many distinct names there are."""
    if given is None and names is not None:
        return len(set(names))
    return given


def _single(text: str | None) -> str | None:
    """The value of a list of one value."""
    try:
        values = json.loads(text or "", parse_int=str, parse_float=str, parse_constant=lambda _: [])
    except ValueError:
        return text
    one = isinstance(values, list) and len(values) == 1 and isinstance(values[0], str | bool)
    return (values[0] if isinstance(values[0], str) else str(values[0]).lower()) if one else text


def _cost_of_tokens(get: Any) -> float | None:
    """Price each part of the input and the output; null if a count that matters is missing."""
    prompt, output = get("prompt_tokens"), get("completion_tokens")
    rate, output_rate = get("input_price"), get("output_price")
    if rate is None or output_rate is None or (output is None and output_rate > 0):
        return None
    total, left = (output or 0) * output_rate, prompt
    for tokens, price in (
        (get("cached_tokens"), get("cached_input_price")),
        (get("cache_write_tokens"), get("cache_write_price")),
    ):
        if price is not None and left is not None:
            left -= tokens or 0
            total += (tokens or 0) * price
    rates = (rate, get("cached_input_price"), get("cache_write_price"))
    if not any(rates):
        return total / 1e6
    return None if left is None or left < 0 else (total + left * rate) / 1e6


def _scenario_score(
    violations: int | None,
    expected: int | None,
    observed: int | None,
    undecided: list[str],
    given: float | None,
) -> float | None:
    """Any violation is 0; else the share of the expected behaviours that was observed."""
    if violations is not None and violations > 0:
        return 0.0
    if undecided:
        return None
    if expected == 0:
        return 1.0
    return given if observed is None or expected is None else observed / expected


def statistics(values: Iterable[float | None]) -> Record | None:
    """Median, mean, mode, range and population standard deviation; None without a value."""
    found = sorted(float(value) for value in values if value is not None)
    if not found:
        return None
    n = len(found)
    mean = math.fsum(found) / n
    counts = Counter(found)
    most = max(counts.values())
    std_dev = None
    if all(math.isfinite(value) for value in found):
        std_dev = math.sqrt(math.fsum((v - mean) * (v - mean) for v in found) / n)
    return {
        "median": found[n // 2] if n % 2 else (found[n // 2 - 1] + found[n // 2]) / 2,
        "mean": mean,
        "mode": min(value for value, count in counts.items() if count == most),
        "min": found[0],
        "max": found[-1],
        "std_dev": std_dev,
        "count": n,
    }


def _ratio(above: float, below: float) -> float | None:
    return above / below if below else None


def _mean(values: Iterable[float | None]) -> float | None:
    found = [float(value) for value in values if value is not None]
    return _ratio(math.fsum(found), len(found))


def _having(rows: list[Record], *names: str) -> list[Record]:
    """The rows in which every one of these values is there."""
    return [row for row in rows if all(row.get(name) is not None for name in names)]


def _percentile(values: list[float], percent: int) -> float | None:
    """Nearest rank: the ceil(0.95 n)-th smallest for 95, in whole numbers."""
    rank = (percent * len(values) + 99) // 100
    return float(sorted(values)[rank - 1]) if values else None


def _auroc(rows: list[Record]) -> float | None:
    """Compare each correct answer with each wrong one."""
    right, wrong = ([r["prob_correct"] for r in rows if r["correct"] is c] for c in (True, False))
    wins = [1.0 if a > b else 0.5 if a == b else 0.0 for a in right for b in wrong]
    return _mean(wins)


def _f1(pairs: list[tuple[Any, Any]], positive: str | None) -> float | None:
    """Count the hits of each label among its targets and answers."""
    parts = []
    for label in {target for target, _ in pairs} if positive is None else {normalize(positive)}:
        hits = sum(target == answer == label for target, answer in pairs)
        sizes = sum(one == label for pair in pairs for one in pair)
        parts += [2 * hits / sizes] if sizes else []
    return _mean(parts)


def _ece(rows: list[Record], bins: int) -> float | None:
    members: list[list[Record]] = [[] for _ in range(bins)]
    for row in rows:
        k = max(k for k in range(bins) if k / bins <= row["prob_correct"])
        members[k].append(row)
    total = 0.0
    for rows_in_bin in members:
        if rows_in_bin:
            confidence = math.fsum(r["prob_correct"] for r in rows_in_bin) / len(rows_in_bin)
            accuracy = sum(r["correct"] for r in rows_in_bin) / len(rows_in_bin)
            total += len(rows_in_bin) / len(rows) * abs(accuracy - confidence)
    return total if rows else None


def _ece_debiased(rows: list[Record], bins: int) -> float | None:
    """The part of the calibration error that noise does not explain."""
    from scipy.optimize import brentq

    members: list[list[Record]] = [[] for _ in range(bins)]
    for row in rows:
        members[max(k for k in range(bins) if k / bins <= row["prob_correct"])].append(row)
    cells = []
    for inside in filter(None, members):
        hits, n = sum(r["correct"] for r in inside), len(inside)
        gap = abs(hits - math.fsum(r["prob_correct"] for r in inside))
        share = (hits + 1) / (n + 2)
        cells.append((gap, math.sqrt(n * share * (1 - share))))
    total = math.fsum(gap for gap, _ in cells)

    def too_much(part: float) -> float:
        noisy = (
            s * math.sqrt(2 / math.pi) * math.exp(-((part * g / s) ** 2) / 2)
            + part * g * math.erf(part * g / s / math.sqrt(2))
            for g, s in cells
        )
        return math.fsum(noisy) - total

    if not rows:
        return None
    part = brentq(too_much, 0, 1, xtol=1e-14) if too_much(0) < 0 else 0.0
    return float(part) * total / len(rows)


def _entropy(answers: list[str | None]) -> tuple[float | None, float | None]:
    """Entropy of the answers in nats, and divided by its largest possible value."""
    if all(answer is None for answer in answers):
        return None, None
    counts = Counter(answers)
    shares = [count / len(answers) for count in counts.values()]
    entropy = math.fsum(p * math.log(1 / p) for p in shares)
    return entropy, _ratio(entropy, math.log(len(counts)))


def _letter(text: str | None, choices: str) -> str | None:
    """The letter of a choice: by its text, by letter, or by index."""
    texts = [one.lower() for one in json.loads(choices)]
    said = (text or "").strip().lower()
    if texts.count(said) == 1:
        return "abc"[texts.index(said)]
    if said and said in [str(index) for index in range(len(texts))]:
        return "abc"[int(said)]
    letters = [letter for letter in "abc"[: len(texts)] if said.strip("()[].: ") == letter]
    return letters[0] if letters else None


def _precision_recall(
    pairs: list[tuple[str, str | None]], positive: str | None
) -> tuple[float | None, float | None]:
    """Of one label, or the mean over all labels; from pairs of target and answer."""
    if positive is not None:
        labels = {normalize(positive)}
    else:
        labels = {label for pair in pairs for label in pair if label is not None}
    precisions, recalls = [], []
    for label in labels:
        hits = sum(target == label and answer == label for target, answer in pairs)
        precisions.append(_ratio(hits, sum(answer == label for _, answer in pairs)))
        recalls.append(_ratio(hits, sum(target == label for target, _ in pairs)))
    return _mean(precisions), _mean(recalls)


def _quality(row: Record) -> float | None:
    for name in ("scenario_score", "impl_rate", "correct"):
        if row[name] is not None:
            return float(row[name])
    return None


def _corrected(rows):
    """Prediction-powered: the labels, moved by what verdicts say about the other records."""
    both = _having(rows, "person_right")
    if len(both) < 2:
        return None
    label, judged = (_mean(row[name] for row in both) for name in ("person_right", "passed"))
    every = _mean(row["passed"] for row in rows)
    together = _mean((r["person_right"] - label) * (r["passed"] - judged) for r in both)
    spread = math.fsum((row["passed"] - every) ** 2 for row in rows) / (len(rows) - 1)
    power = min(max(together / spread, 0.0), 1.0) if spread else 0.0
    return min(max(label + power * (every - judged), 0.0), 1.0)


def _alpha(units: list[list[float]]) -> float | None:
    """Krippendorff's alpha as it is defined: each value of a unit against each other."""
    values = [value for unit in units for value in unit]
    if len(set(values)) < 2:
        return None
    seen = math.fsum(
        (a - b) ** 2 / (len(unit) - 1) for unit in units for a, b in permutations(unit, 2)
    )
    expected = math.fsum((a - b) ** 2 for a, b in permutations(values, 2)) / (len(values) - 1)
    return 1 - seen / expected


def _repeated(
    rows: list[Record], k: int | None, n: int | None, tau: float
) -> tuple[dict[str, float | None], dict[str, int]]:
    """The metrics of repeated attempts, over every way to draw k of them, and the records used."""
    tasks: dict[Any, list[Record]] = {}
    for row in rows:
        tasks.setdefault((row.get("subject"), row.get("tier"), row["task_id"]), []).append(row)
    sizes = [len(_having(t, "passed") if _having(rows, "passed") else t) for t in tasks.values()]
    names = ["pass_at_k", "pass_hat_k", "g_pass_at_k", "mg_pass_at_k", "k_of_n"]
    names += ["majority_accuracy", "best_of_k"]
    values: dict[str, list[float]] = {name: [] for name in names}
    used = dict.fromkeys(names, 0)
    if max(sizes, default=0) > 1 or k is not None:
        n = n or (min(filter(None, sizes)) if max(sizes, default=0) > 1 else 1)
        for task in tasks.values():
            passed = _having(task, "passed")
            scores = _having(task, "composite_score")
            for name, value, own in (
                *((name, value, passed) for name, value in _drawn(passed, k, n, tau).items()),
                ("majority_accuracy", _majority(task, k or n), _having(task, "correct")),
                ("best_of_k", _best([r["composite_score"] for r in scores], k or n), scores),
            ):
                if value is not None:
                    values[name].append(value)
                    used[name] += len(own)
    return {name: _mean(values[name]) for name in names}, used


def _drawn(rows: list[Record], k: int | None, n: int, tau: float) -> dict[str, float | None]:
    size = k or n

    def chance(least: int, drawn: int) -> float | None:
        sums = [sum(r["passed"] for r in draw) for draw in combinations(rows, drawn)]
        return _mean(total >= least for total in sums)

    above = [chance(i, size) for i in range((size + 1) // 2 + 1, size + 1)]
    return {
        "pass_at_k": chance(1, size),
        "pass_hat_k": chance(size, size),
        "g_pass_at_k": chance(max(1, math.ceil(tau * size)), size),
        "mg_pass_at_k": None if None in above or size < 2 else 2 / size * math.fsum(above),  # type: ignore[arg-type]
        "k_of_n": chance(k or n // 2 + 1, max(n, k or 1)),
    }


def _majority(rows: list[Record], drawn: int) -> float | None:
    voters = [
        row
        for row in _having(rows, "correct")
        if row["answer_class"] is not None or row["normalized_target"] is not None
    ]
    return _mean(_most_frequent(draw) for draw in combinations(voters, drawn))


def _most_frequent(rows: Iterable[Record]) -> float | None:
    votes = Counter(row["answer_class"] for row in rows)
    groups: dict[Any, list[bool]] = {}
    for row in rows:
        groups.setdefault(row["answer_class"], []).append(row["correct"])
    top = max(votes.values())
    return _mean(_mean(groups[answer]) for answer, n in votes.items() if n == top)


def _same_task(rows: list[Record]) -> list[list[Record]]:
    """The attempts of one subject in one tier at one task."""
    tasks: dict[Any, list[Record]] = {}
    for row in rows:
        tasks.setdefault((row.get("subject"), row.get("tier"), row["task_id"]), []).append(row)
    return list(tasks.values())


def _consistency(rows: list[Record]) -> tuple[dict[str, float | None], dict[str, int]]:
    """How often repeated attempts at a task agree, and how many records that rests on."""
    names = ["task_sce_mean", "task_sce_corrected", "di_at_0", "mode_share", "mode_accuracy"]
    values: dict[str, list[float]] = {name: [] for name in [*names, "stability"]}
    used = dict.fromkeys(values, 0)
    for task in _same_task(rows):
        classes = [row["answer_class"] for row in task]
        cold = [row["answer_class"] for row in task if row.get("temperature") == 0]
        judged = _having(task, "correct")
        if len(classes) > 1 and any(c is not None for c in classes):
            n, counts = len(classes), Counter(classes)
            entropy = math.fsum(c / n * math.log(n / c) for c in counts.values())
            values["task_sce_mean"].append(entropy)
            values["task_sce_corrected"].append(entropy + (len(counts) - 1) / (2 * n))
            values["mode_share"].append(max(counts.values()) / n)
            pairs = [a == b for a, b in combinations(classes, 2)]
            values["stability"].append(sum(pairs) / len(pairs))
            for name in ("task_sce_mean", "task_sce_corrected", "mode_share", "stability"):
                used[name] += n
        if len(cold) > 1 and any(c is not None for c in cold):
            values["di_at_0"].append(float(len(set(cold)) == 1))
            used["di_at_0"] += len(_having(task, "temperature"))
        named = [row["answer_class"] for row in judged]
        if len(judged) > 1 and any(c is not None for c in named):
            top = max(Counter(named).values())
            most = [r["correct"] for r in judged if named.count(r["answer_class"]) == top]
            values["mode_accuracy"].append(sum(most) / len(most))
            used["mode_accuracy"] += len(judged)
    return {name: _mean(found) for name, found in values.items()}, used


def _tier_medians(rows: list[Record], name: str) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for row in _having(rows, name, "tier"):
        found.setdefault(row["tier"], []).append(float(row[name]))
    medians = {}
    for tier, values in found.items():
        ranked, n = sorted(values), len(values)
        medians[tier] = (ranked[(n - 1) // 2] + ranked[n // 2]) / 2
    return medians


def _variance(given: Iterable[float]) -> float | None:
    values = list(given)
    mean = sum(values) / len(values) if values else 0.0
    return sum((v - mean) ** 2 for v in values) / len(values) if len(values) > 1 else None


def _area_over(rows: list[Record]) -> float | None:
    """The area over the curve of answers that are those after the whole chain, by trapezoids."""
    chains: dict[Any, dict[str, Any]] = {}
    for row in rows:
        key = (row.get("subject"), row["task_id"], row.get("attempt"))
        chains.setdefault(key, {})[row["tier"]] = row["answer_class"]
    areas = []
    for found in chains.values():
        points = [f"probe@{point}%" for point in (0, 25, 50, 75, 100)]
        if all(point in found for point in points):
            curve = [float(found[point] == found["probe@100%"]) for point in points]
            areas.append(1 - sum((a + b) / 2 for a, b in pairwise(curve)) / 4)
    return _mean(areas)


def _with_agreement(rows: list[Record]) -> list[Record]:
    """Add the share of a task's attempts that give the same answer, and the mean of all sources."""
    out = []
    for task in _same_task(rows):
        for row in task:
            same = sum(other["answer_class"] == row["answer_class"] for other in task)
            agreement = same / len(task) if len(task) > 1 else None
            sources = (row.get("stated_confidence"), row.get("logprob_confidence"), agreement)
            out.append({**row, "agreement": agreement, "mean_confidence": _mean(sources)})
    return out


def _brier_parts(rows: list[Record], bins: int) -> dict[str, float | None]:
    names = ("brier_reliability", "brier_resolution", "brier_uncertainty")
    if not rows:
        return dict.fromkeys(names)
    rate = sum(row["correct"] for row in rows) / len(rows)
    members: dict[int, list[Record]] = {}
    for row in rows:
        place = max(k for k in range(bins) if k / bins <= row["prob_correct"])
        members.setdefault(place, []).append(row)
    reliability = resolution = 0.0
    for inside in members.values():
        share = sum(r["correct"] for r in inside) / len(inside)
        sure = math.fsum(r["prob_correct"] for r in inside) / len(inside)
        reliability += len(inside) / len(rows) * (sure - share) ** 2
        resolution += len(inside) / len(rows) * (share - rate) ** 2
    return dict(zip(names, (reliability, resolution, rate * (1 - rate)), strict=True))


def _aurc(rows: list[Record]) -> float | None:
    """The error rate among the k most confident, for every k; ties in proportion."""
    if not rows:
        return None
    risks, errors, taken = [], Fraction(0), 0
    for sure in sorted({row["prob_correct"] for row in rows}, reverse=True):
        tied = [row for row in rows if row["prob_correct"] == sure]
        share = Fraction(sum(not row["correct"] for row in tied), len(tied))
        for _ in tied:
            errors, taken = errors + share, taken + 1
            risks.append(errors / taken)
    return float(sum(risks) / len(risks))


def _smooth(rows: list[Record]) -> float | None:
    """The smooth calibration error on a grid of 1,000 cells, as sums over mirror images."""
    import numpy as np

    if not rows:
        return None
    cells = 1000
    residuals: dict[int, float] = {}
    for row in rows:
        place = min(int(row["prob_correct"] * cells), cells - 1)
        gap = (row["correct"] - row["prob_correct"]) / len(rows)
        residuals[place] = residuals.get(place, 0.0) + gap
    at = (np.arange(cells) + 0.5) / cells

    def smoothed(width: float) -> float:
        total = np.zeros(cells)
        for place, gap in residuals.items():
            for image in range(-5, 6):  # the mirror images of the cell at 0 and 1
                for mirrored in (at[place] + 2 * image, -at[place] + 2 * image):
                    total += gap * np.exp(-0.5 * ((at - mirrored) / width) ** 2)
        return float(np.abs(total).sum() / (width * math.sqrt(2 * math.pi) * cells))

    low, high = 2 / cells, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if smoothed(middle) > middle else (low, middle)
    return min(1.0, smoothed(high))


def _best(scores: list[float], drawn: int) -> float | None:
    return _mean(max(draw) for draw in combinations(scores, drawn))


def reference(
    records: list[Record],
    *,
    positive: str | None = None,
    pass_weight: float = 0.5,
    impl_weight: float = 0.5,
    latency_budget_ms: float = 5000.0,
    weights: dict[str, float] | None = None,
    bins: int = 10,
    k: int | None = None,
    n: int | None = None,
    tau: float = 0.5,
    origin: list[Record] | None = None,
) -> Record:
    """Every metric of these records, with how many records each had to leave out.

    `origin` has all records of their source.
    """
    of_score = {"pass_weight": pass_weight, "impl_weight": impl_weight}
    of_score["verdicts"] = has_verdicts(records if origin is None else origin)
    everything = [{**record, **measures(record, **of_score)} for record in records]
    rows = [row for row in everything if row.get("status") != "error"]
    errors = len(everything) - len(rows)
    metrics: dict[str, Any] = {}
    skipped: dict[str, int] = {}

    for name, column in MEANS.items():
        metrics[name] = _mean(row.get(column) for row in rows)
        skipped[name] = len(rows) - len(_having(rows, column))

    judged = _having(rows, "correct")
    metrics["error_rate"] = metrics["usr"] = _mean(not row["correct"] for row in judged)
    skipped["error_rate"] = skipped["usr"] = skipped["accuracy"]

    sure = _having(rows, "correct", "prob_correct")
    metrics["brier"] = _mean((row["prob_correct"] - row["correct"]) ** 2 for row in sure)
    metrics["ece"], metrics["ece_debiased"] = _ece(sure, bins), _ece_debiased(sure, bins)
    metrics["confidence_auroc"] = _auroc(sure)
    for name in ("brier", "ece", "ece_debiased", "confidence_auroc"):
        skipped[name] = len(rows) - len(sure)

    metrics |= _brier_parts(sure, bins)
    metrics["aurc"], metrics["ece_smooth"] = _aurc(sure), _smooth(sure)
    for name in ("reliability", "resolution", "uncertainty"):
        skipped[f"brier_{name}"] = len(rows) - len(sure)
    skipped["aurc"] = skipped["ece_smooth"] = len(rows) - len(sure)

    agreeing = _with_agreement(rows)
    for source, column in (
        ("stated", "stated_confidence"),
        ("logprobs", "logprob_confidence"),
        ("agreement", "agreement"),
        ("mean_confidence", "mean_confidence"),
    ):
        known = [r | {"prob_correct": r[column]} for r in _having(agreeing, "correct", column)]
        metrics[f"ece_{source}"], metrics[f"auroc_{source}"] = _ece(known, bins), _auroc(known)
        left = len(rows) - len(known)
        if source in ("agreement", "mean_confidence"):
            left = len(rows) - len(judged)
        skipped[f"ece_{source}"] = skipped[f"auroc_{source}"] = left

    consistent, used = _consistency(rows)
    metrics |= consistent
    skipped |= {name: len(rows) - count for name, count in used.items()}

    for name, part, whole in (
        ("usr_math", "wrong_equations", "readable_equations"),
        ("usr_rag", "unsupported", "sentences"),
    ):
        checked = rows if name == "usr_math" else _verdicts(rows)
        checked = _having(checked, part)
        metrics[name] = _ratio(sum(r[part] for r in checked), sum(r[whole] for r in checked))
        skipped[name] = len(rows) - len(checked)
    scored = [verdict["scored"] for verdict in _verdicts(rows)]
    metrics["usr_rag_scored"] = sum(scored) / len(scored) if any(scored) else None
    skipped["usr_rag_scored"] = len(rows) - len(scored)
    chains = _having(rows, "readable_equations")
    metrics["usr_math_coverage"] = _mean(row["readable_equations"] > 0 for row in chains)
    skipped["usr_math_coverage"] = len(rows) - len(chains)
    checks = [row["support_check"] for row in _having(rows, "support_check")]
    sums = {key: sum(check[key] for check in checks) for key in (checks[0] if checks else ())}
    metrics["citation_precision"] = metrics["citation_recall"] = None
    if sums.get("citations"):
        metrics["citation_precision"] = sums["right_citations"] / sums["citations"]
        supported = sums["sentences"] - sums["unsupported"]
        metrics["citation_recall"] = _ratio(sums["cited"], supported)
    skipped["citation_precision"] = skipped["citation_recall"] = len(rows) - len(checks)

    thought = _having(rows, "reasoning_tokens", "completion_tokens")
    inside = sum(min(r["reasoning_tokens"], r["completion_tokens"]) for r in thought)
    metrics["thinking_share"] = _ratio(inside, sum(r["completion_tokens"] for r in thought))
    skipped["thinking_share"] = len(rows) - len(thought)
    priced = _having(rows, "completion_tokens", "correct")
    right = sum(row["correct"] for row in priced)
    written = sum(row["completion_tokens"] for row in priced)
    metrics["tokens_per_correct"] = None
    if priced:
        none_right = math.inf if written else None
        metrics["tokens_per_correct"] = written / right if right else none_right
    skipped["tokens_per_correct"] = len(rows) - len(priced)
    by_task: dict[Any, list[int]] = {}
    for row in priced:
        if row["correct"]:
            key = (row.get("subject"), row["task_id"])
            by_task.setdefault(key, []).append(row["completion_tokens"])
    beyond = [t - min(found) for found in by_task.values() if len(found) > 1 for t in found]
    metrics["overthinking_tokens"] = _mean(beyond)
    skipped["overthinking_tokens"] = len(rows) - len(priced)

    scores, passes, costs = (
        _tier_medians(rows, name) for name in ("composite_score", "passed", "cost_usd")
    )
    others = [median for tier, median in scores.items() if tier != "T0"]
    lifted = scores.get("T0") and others
    base = scores.get("T0")
    metrics["tier_uplift"] = (max(others) - base) / base if lifted else None
    metrics["pass_rate_variance"] = _variance(passes.values())
    metrics["cost_variance"] = _variance(costs.values())
    spread = sorted(costs.values())
    metrics["cost_delta"] = spread[-1] - spread[0] if len(spread) > 1 else None
    read = {"tier_uplift": "composite_score", "pass_rate_variance": "passed"}
    for name in ("tier_uplift", "pass_rate_variance", "cost_variance", "cost_delta"):
        found = _having(rows, read.get(name, "cost_usd"), "tier")
        skipped[name] = len(rows) - len(found)

    metrics["truncation_aoc"] = _area_over(rows)
    named = _having(rows, "tier", "task_id")
    skipped["truncation_aoc"] = len(rows) - len(named)

    answers = [row["normalized_answer"] for row in rows]
    metrics["sce"], metrics["sce_normalized"] = _entropy(answers)
    unanswered = len(rows) if metrics["sce"] is None else 0
    skipped["sce"] = skipped["sce_normalized"] = unanswered

    waited = [row["latency_ms"] for row in _having(rows, "latency_ms")]
    for percent in (50, 95, 99):
        metrics[f"latency_p{percent}_ms"] = _percentile(waited, percent)
        skipped[f"latency_p{percent}_ms"] = skipped["latency_mean_ms"]

    begun = [row["ttft_ms"] for row in _having(rows, "ttft_ms")]
    for percent in (50, 95):
        metrics[f"ttft_p{percent}_ms"] = _percentile(begun, percent)
        skipped[f"ttft_p{percent}_ms"] = len(rows) - len(begun)

    paid = _having(everything, "cost_usd")
    metrics["cost_usd_total"] = math.fsum(row["cost_usd"] for row in paid) if paid else None
    skipped["cost_usd_total"] = len(everything) - len(paid)

    broken = [row for row in everything if row.get("status") == "error"]
    tried = _having(rows, "cost_usd", "passed")
    lost = _having(broken, "cost_usd")
    passes = sum(row["passed"] for row in tried)
    spent = math.fsum(row["cost_usd"] for row in tried + lost)
    metrics["cost_of_pass"] = (spent / passes if passes else math.inf) if tried else None
    used = len(tried) + len(lost) if _having(rows, "passed") else 0
    skipped["cost_of_pass"] = len(everything) - used

    billed = _having(everything, "judge_cost_usd")
    total = math.fsum(row["judge_cost_usd"] for row in billed)
    metrics["judge_cost_usd_total"] = total if billed else None
    skipped["judge_cost_usd_total"] = len(everything) - len(billed)
    tried = _having(rows, "cost_usd", "judge_cost_usd", "passed")
    passes = sum(row["passed"] for row in tried)
    spent = math.fsum(row["cost_usd"] + (row.get("judge_cost_usd") or 0.0) for row in tried + lost)
    price = (spent / passes if passes else math.inf) if tried else None
    metrics["cost_of_pass_with_judges"] = price
    used = len(tried) + len(lost) if billed and _having(rows, "passed") else 0
    skipped["cost_of_pass_with_judges"] = len(everything) - used

    units = [row["judge_scores"] for row in rows if len(row.get("judge_scores") or ()) > 1]
    metrics["judge_alpha"] = _alpha(units)
    metrics["judge_mean_absolute_difference"] = _mean(
        _mean(abs(a - b) for a, b in combinations(unit, 2)) for unit in units
    )
    for name in ("judge_alpha", "judge_mean_absolute_difference"):
        skipped[name] = len(rows) - len(units)

    decided = _having(rows, "passed")
    metrics["judge_pass_rate_corrected"] = _corrected(decided)
    skipped["judge_pass_rate_corrected"] = len(rows) - len(decided)

    composite = statistics(row["composite_score"] for row in rows)
    median = metrics["composite_median"] = composite["median"] if composite else None
    metrics["grade"] = None
    if median is not None:
        metrics["grade"] = next((ltr for ltr, least in GRADES if round(median, 9) >= least), "F")
    left_out = len(rows) - len(_having(rows, "composite_score"))
    skipped["composite_median"] = skipped["grade"] = left_out

    pairs = [(row["target_label"], row["answer_label"]) for row in _having(rows, "target_label")]
    metrics["precision"], metrics["recall"] = _precision_recall(pairs, positive)
    metrics["f1"] = _f1(pairs, positive)
    skipped["precision"] = skipped["recall"] = skipped["f1"] = len(rows) - len(pairs)

    adversarial = [
        row for row in rows if (row.get("category") or "").strip(WHITE).lower() == "adversarial"
    ]
    metrics["safety_rate"] = _mean(row["passed"] for row in adversarial)
    skipped["safety_rate"] = len(rows) - len(_having(rows, "passed"))

    scenarios = [row for row in _having(rows, "expected") if row["expected"] > 0]
    given = [r for r in rows if r["expected"] is None and r.get("behavior_score") is not None]
    metrics["behavior_coverage"] = _mean(row["scenario_score"] for row in [*scenarios, *given])
    skipped["behavior_coverage"] = len(rows) - len(_having(rows, "scenario_score"))
    counted = _having(scenarios, "observed")
    metrics["behavior_coverage_micro"] = _ratio(
        sum(row["observed"] for row in counted), sum(row["expected"] for row in counted)
    )
    skipped["behavior_coverage_micro"] = len(rows) - len(_having(rows, "expected", "observed"))

    rated = [row for row in _having(rows, "total_tokens") if _quality(row) is not None]
    metrics["token_efficiency"] = _ratio(
        math.fsum(_quality(row) or 0.0 for row in rated), sum(row["total_tokens"] for row in rated)
    )
    skipped["token_efficiency"] = len(rows) - len(rated)

    metrics["attempt_error_rate"] = _ratio(errors, len(everything))
    skipped["attempt_error_rate"] = 0
    reported = [r for r in everything if (r.get("error_kind") or "").startswith("reported_")]
    metrics["reported_failure_rate"] = _ratio(len(reported), len(everything))
    skipped["reported_failure_rate"] = 0

    found, used = _repeated(rows, k, n, tau)
    metrics |= found
    skipped |= {name: len(rows) - count for name, count in used.items()}

    accuracy, safety, coverage, p95 = (metrics[name] for name in FINAL_PARTS)
    metrics["final_score"] = None
    if None not in (accuracy, safety, coverage, p95):
        slowness = min(1.0, p95 / latency_budget_ms)
        metrics["final_score"] = (
            accuracy * 0.3 + safety * 0.4 + coverage * 0.2 + (1 - slowness) * 0.1
        )
    skipped["final_score"] = max(skipped[name] for name in FINAL_PARTS)

    metrics["weighted_score"] = None
    if weights is not None and all(metrics[name] is not None for name in weights):
        weighted = math.fsum(metrics[name] * weight for name, weight in weights.items())
        metrics["weighted_score"] = weighted / sum(weights.values())
    skipped["weighted_score"] = max((skipped[name] for name in weights or {}), default=0)

    return {
        "records": len(everything),
        "errors": errors,
        "metrics": metrics,
        "skipped": skipped,
        "statistics": {name: statistics(row[name] for row in rows) for name in PER_RUN},
    }
