"""How often the screens of reasoning are right: equations and support, on texts of this repository.

Chains of thought are put together from the lines of data/chains.txt, with drawn numbers, and from
those of data/chains_held_out.txt, which came after the reader. A flag in a chain without mistakes
is a false one; a planted mistake is found if an equation of its line is flagged. The sentences of
data/contexts.txt are labelled by hand.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from bench.measure import Result
from pennyweight.text.equations import equations
from pennyweight.text.support import TAU, overlap, support

DATA = Path(__file__).parent / "data"
HELD_OUT = "chains_held_out.txt"
_SLOT = re.compile(r"\{\{|\}\}|\{(!?)([^{}:]+)(?::([^{}]*))?\}")


def lines(name: str) -> list[str]:
    """Return the lines of a data file; a line that begins with a space continues the one before."""
    found: list[str] = []
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            found[-1] += "\n" + line
        elif line and not line.startswith("#"):
            found.append(line)
    return found


def written(template: str, rng: random.Random, *, planted: bool = False) -> str | None:
    """Fill in a line; with `planted`, change one of its results, or return None if it has none."""
    values = {name: rng.randint(2, 40) for name in "abcde"}
    results = [m.start() for m in _SLOT.finditer(template) if m[1]]
    if planted and not results:
        return None
    target = rng.choice(results) if planted else None

    def fill(slot: re.Match[str]) -> str:
        if slot[2] is None:
            return slot[0][0]
        value = eval(slot[2], {"__builtins__": {}}, values)  # an expression of our own data file
        if slot.start() == target:
            value = _changed(value, slot[3] or "", rng)
        return format(int(value) if slot[3] is None else value, slot[3] or "")

    return _SLOT.sub(fill, template)


def _changed(value: float, spec: str, rng: random.Random) -> float:
    """Make a plausible mistake: off by one or ten, two digits swapped, a digit too many."""
    if "f" in spec:
        return value + rng.choice([-0.1, 0.1, 1, -1, 0.5])
    digits = list(str(abs(int(value))))
    options = [value + 1, value - 1, value + 10, value * 10]
    if value > 9 and digits[0] != digits[1]:
        options.append(int("".join([digits[1], digits[0], *digits[2:]])))
    return rng.choice([v for v in options if v != value])


def equation_figures(
    name: str = "chains.txt", chains: int = 4_000, seed: int = 1
) -> dict[str, float]:
    """Count false flags and found mistakes, and measure the speed."""
    rng = random.Random(seed)
    templates = lines(name)
    right = [
        "\n".join(written(rng.choice(templates), rng) or "" for _ in range(5))
        for _ in range(chains)
    ]
    found = [one for chain in right for one in equations(chain)]
    speed = _per_second(right)
    hits = planted = 0
    for _ in range(chains):
        text = written(rng.choice(templates), rng, planted=True)
        if text is not None:
            planted += 1
            hits += any(not e.holds for e in equations(text))
    return {
        "equations": len(found),
        "false_flags": sum(not one.holds for one in found) / len(found),
        "planted": planted,
        "found": hits / planted,
        "per_second": speed,
        "new_per_second": _per_second([_unseen(chain) for chain in right]),
    }


def _per_second(chains: list[str]) -> float:
    started = time.process_time()
    for chain in chains:
        equations(chain)
    return len(chains) / (time.process_time() - started)


def _unseen(chain: str) -> str:
    """Begin each line with a word that no line began with before: no line looks like another."""
    return "\n".join(f"{_word()}: {line}" for line in chain.splitlines())


_NUMBERS = count()


def _word() -> str:
    return "".join(chr(97 + int(digit)) for digit in f"{next(_NUMBERS):08}")


def sentences() -> Iterator[tuple[str, str, str]]:
    """Yield contexts with a sentence and its label: `=` copied, `~` reworded, `!` unsupported."""
    context = ""
    for line in lines("contexts.txt"):
        if line.startswith(">"):
            context = line[2:]
        else:
            yield context, line[2:], line[0]


def support_figures() -> dict[str, float]:
    """Return the AUROC of the overlap, and the shares that the screen flags."""
    rows = list(sentences())
    unsupported = [overlap(c, s) for c, s, label in rows if label == "!"]

    def auroc(label: str) -> float:
        good = [overlap(c, s) for c, s, one in rows if one == label]
        wins = [(g > u) + (g == u) / 2 for g in good for u in unsupported]
        return sum(wins) / len(wins)

    def flagged(label: str) -> float:
        flags = [support(c, s).unsupported for c, s, one in rows if one == label]
        return sum(flags) / len(flags)

    return {
        "auroc_copied": auroc("="),
        "auroc_reworded": auroc("~"),
        "flagged_copied": flagged("="),
        "flagged_reworded": flagged("~"),
        "flagged_unsupported": flagged("!"),
        "tau": TAU,
    }


def figures() -> dict[str, dict[str, float]]:
    """Return all figures that the docs show; the speed is not one of them."""
    known, fresh = equation_figures(), equation_figures(HELD_OUT)
    for name in ("per_second", "new_per_second"):
        del known[name], fresh[name]
    return {"equations": known, "held_out": fresh, "support": support_figures()}


def run() -> list[Result]:
    """Check the bounds that the docs state."""
    equation, supported, fresh = equation_figures(), support_figures(), equation_figures(HELD_OUT)
    print(f"{equation['new_per_second']:,.0f} chains a second if no line is like another")
    return [
        Result("false flags among equations that hold", 100 * equation["false_flags"], 0.5, " %"),
        Result("planted mistakes that are missed", 100 * (1 - equation["found"]), 5, " %"),
        Result("false flags, held-out lines", 100 * fresh["false_flags"], 0.5, " %"),
        Result("planted mistakes missed, held-out lines", 100 * (1 - fresh["found"]), 5, " %"),
        Result(
            "reworded sentences that are flagged", 100 * supported["flagged_reworded"], 25, " %"
        ),
        Result("unsupported ones missed", 100 * (1 - supported["flagged_unsupported"]), 25, " %"),
        Result("chains of five lines a second", equation["per_second"], 20_000, "", True),
    ]
