"""The tables of docs/believe.md, from the saved results of the simulations."""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "believe.md"
RESULTS = ROOT / "bench" / "results"
STATISTICS, PEERS = RESULTS / "statistics.json", RESULTS / "peers.json"
ERRORS = 2
"""Monte-Carlo errors by which a row may be worse than its bound; `bench.findings.ERRORS`."""


def page() -> str:
    """Return the page with its tables filled in."""
    text = PAGE.read_text("utf-8")
    tables = {"statistics": statistics_tables(), "missed": missed(), "peers": peer_tables()}
    for name, table in tables.items():
        parts = re.split(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", text, flags=re.DOTALL)
        if len(parts) != 4:
            raise SystemExit(f"{PAGE.name}: it needs one pair of marks named {name}.")
        text = f"{parts[0]}{parts[1]}{table}{parts[2]}{parts[3]}"
    return text


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def statistics_tables() -> str:
    """One table for each section of the simulation."""
    saved = _read(STATISTICS)
    rows: list[dict[str, Any]] = saved["rows"]
    missed = sum(not row["met"] for row in rows)
    drawn = [row["sets"] for row in rows if row["error"]]
    lines = [
        f"Seed {saved['seed']}, {min(drawn):,} to {max(drawn):,} data sets a row: "
        f"{len(rows) - missed} of {len(rows)} rows hold.\n"
    ]
    for section in dict.fromkeys(row["section"] for row in rows):
        chosen = [row for row in rows if row["section"] == section]
        wide = any(row["width"] is not None for row in chosen)
        lines.append(f"### {section}\n")
        lines.append(f"| what | world | size | observed | bound |{' width |' * wide}  |".strip())
        lines.append(f"| --- | --- | --: | --: | --: |{' --: |' * wide} --- |")
        lines += [_row(row, wide=wide) for row in chosen]
        lines.append("")
    return "\n".join(lines) + "\n"


def _row(row: dict[str, Any], *, wide: bool) -> str:
    what = re.sub(r"\b([a-z]+_[a-z_0-9]+|precision|recall|brier)\b", r"`\1`", row["what"], count=1)
    error = f" ± {100 * row['error']:.1f}" if row["error"] else ""
    cells = [what, row["world"], row["size"], f"{100 * row['rate']:.1f}{error} %", _bound(row)]
    if wide:
        cells.append("" if row["width"] is None else f"{row['width']:.2f}")
    cells.append("" if row["met"] else "**missed**")
    return f"| {' | '.join(cells)} |"


def _bound(row: dict[str, Any]) -> str:
    if row["low"] > 0 and row["high"] < 1:
        return f"{100 * row['low']:.0f} to {100 * row['high']:.0f} %"
    return f"≥ {100 * row['low']:.0f} %" if row["low"] > 0 else f"≤ {100 * row['high']:.0f} %"


def missed() -> str:
    """The rows that miss their bound, in words."""
    rows = [row for row in _read(STATISTICS)["rows"] if not row["met"]]
    if not rows:
        return "No row misses its bound.\n"
    lines = []
    for row in rows:
        width = row["width"]
        wide = width is not None and row["widest"] is not None and width > row["widest"]
        found = f"{100 * row['rate']:.1f} %"
        if wide:
            found += f", {width:.1f} times the ideal width"
        lines.append(f"- {row['what']}; {row['world']}; {row['size']}: {found}.")
    return "\n".join(lines) + "\n"


def peer_tables() -> str:
    """One table for each claim that a gate can make."""
    saved = _read(PEERS)
    rows: list[dict[str, Any]] = saved["rows"]
    lines = [f"Seed {saved['seed']}, {saved['sets']:,} data sets a row.\n"]
    for claim, title in CLAIMS.items():
        chosen = [row for row in rows if row["claim"] == claim]
        gates = {row["gate"]: row["version"] for row in chosen}
        names = " | ".join(f"{gate} {version}" for gate, version in gates.items())
        lines += [f"### {title}\n", f"| release | size | true difference | right | {names} |"]
        lines.append(f"| --- | --: | --: | --- |{' --- |' * len(gates)}")
        keys = dict.fromkeys((row["world"], row["size"], row["difference"]) for row in chosen)
        for world, size, difference in keys:
            found = {
                row["gate"]: row
                for row in chosen
                if (row["world"], row["size"], row["difference"]) == (world, size, difference)
            }
            right = next(iter(found.values()))["right"]
            unit = "%" if world.startswith("costs") else "points"
            change = 0.0 - difference if world.startswith("costs") else difference
            cells = [_tally(found[gate]) if gate in found else "—" for gate in gates]
            told = f"{100 * change:+.3g} {unit}".replace("-", "−").replace("+0 ", "0 ")
            either = "at the limit" if right == "inconclusive" else right
            lines.append(f"| {world} | {size} | {told} | {either} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines) + "\n"


CLAIMS = {
    "no worse": "No worse than the baseline by more than 2 points (costs: 20 %)",
    "better": "Better than the baseline",
}


def _tally(row: dict[str, Any]) -> str:
    wrong = {"pass": row["passed"], "fail": row["failed"]}
    wrong.pop(row["right"], None)
    told = ", ".join(f"wrong {word} {100 * rate:.0f}" for word, rate in wrong.items())
    return f"{told}; open {100 * row['inconclusive']:.0f}"
