"""Ask the gates of other projects; runs in an environment of its own, in which they are installed.

`python peer_verdicts.py GATE FILE` reads the data sets in FILE and prints a JSON list of verdicts.
Each gate is called as its documentation tells its users to, with its defaults.
"""

import json
import sys
from collections.abc import Callable
from importlib.metadata import version

import numpy as np

Side = list[list[float]]
"""The values of a side: tasks × attempts."""


def statgate(before: Side, now: Side, margin: float, *, lower: bool) -> str:
    """`statgate compare`: repeated runs have a `run_index`."""
    from statgate import GateSettings, evaluate_gate  # noqa: PLC0415
    from statgate.records import EvalRecord  # noqa: PLC0415

    assert not lower
    sides = [
        [
            EvalRecord(case_id=f"t{t}", score=value, run_index=r)
            for t, task in enumerate(side)
            for r, value in enumerate(task)
        ]
        for side in (before, now)
    ]
    found = evaluate_gate(*sides, GateSettings(margin=margin, seed=42)).verdict
    return {"SHIP": "pass", "BLOCK": "fail"}.get(found.value, "inconclusive")


def noisecheck(before: Side, now: Side, margin: float, *, lower: bool) -> str:
    """`noisecheck compare --min-effect`: repeated runs are clustered by their task."""
    from noisecheck.schema import Dataset, Record, pair  # noqa: PLC0415
    from noisecheck.stats.paired import compare_paired  # noqa: PLC0415
    from noisecheck.verdict import judge  # noqa: PLC0415

    records = [
        Record(example_id=f"t{t}", variant=name, metric="value", value=value, run_id=f"r{r}",
               cluster_id=f"t{t}" if len(task) > 1 else None)
        for name, side in (("before", before), ("now", now))
        for t, task in enumerate(side)
        for r, value in enumerate(task)
    ]  # fmt: skip
    compared = compare_paired(pair(Dataset(records), "before", "now", "value"))
    found = judge([compared], min_effect=margin, lower_is_better={"value"} if lower else ())
    return ("pass", "fail", "inconclusive")[found.exit_code]


def evalsig(before: Side, now: Side, margin: float, *, lower: bool) -> str:
    """`evalsig gate --min-delta`: it allows a candidate that is shown to be better."""
    from evalsig import gate  # noqa: PLC0415
    from evalsig.types import ItemResult, RunFrame  # noqa: PLC0415

    assert not lower
    runs = [
        RunFrame(name, name, "suite", "accuracy", [
            ItemResult(f"t{t}", value, epoch=r)
            for t, task in enumerate(side)
            for r, value in enumerate(task)
        ])
        for name, side in (("before", before), ("now", now))
    ]  # fmt: skip
    found = gate(*runs, min_delta=margin).verdict
    return {"ALLOW": "pass", "REJECT": "fail"}.get(found.value, "inconclusive")


GATES: dict[str, Callable[..., str]] = {
    "statgate": statgate,
    "noisecheck": noisecheck,
    "evalsig": evalsig,
}


def main() -> None:
    name, path = sys.argv[1:]
    data = np.load(path)
    margin, lower = float(data["margin"]), bool(data["lower"])
    words = [
        GATES[name](before, now, margin, lower=lower)
        for before, now in zip(data["before"].tolist(), data["now"].tolist(), strict=True)
    ]
    json.dump({"version": version(name), "verdicts": words}, sys.stdout)


if __name__ == "__main__":
    main()
