"""`make bench`: run all benchmarks, or the named ones; exit with 1 if a bound is missed.

`statistics` and `peers` alone have options of their own. `peers` installs other projects and runs
only if it is named.
"""

import compileall
import sys
from pathlib import Path

from bench import (
    batches,
    compare,
    gates,
    logs,
    peers,
    reasoning,
    run,
    score,
    startup,
    statistics,
    tables,
    web,
    workers,
)

BENCHES = {
    "startup": (startup.run, "seconds"),
    "score": (score.run, "half a minute"),
    "tables": (tables.run, "half an hour"),
    "logs": (logs.run, "several minutes"),
    "run": (run.run, "two minutes"),
    "gates": (gates.run, "a minute"),
    "compare": (compare.run, "several minutes"),
    "statistics": (statistics.run, "ten minutes"),
    "reasoning": (reasoning.run, "seconds"),
    "workers": (workers.run, "three minutes"),
    "batches": (batches.run, "two minutes"),
    "web": (web.run, "a quarter of an hour"),
}


def main() -> None:
    with_options = {"statistics": statistics.main, "peers": peers.main}
    if sys.argv[1:] and sys.argv[1] in with_options:
        sys.exit(with_options[sys.argv[1]](sys.argv[2:]))
    names = sys.argv[1:] or list(BENCHES)
    if unknown := set(names) - set(BENCHES):
        sys.exit(f"Unknown benchmark: {', '.join(unknown)}. Benchmarks: {', '.join(BENCHES)}.")
    # as an installed package is, also where Python writes no bytecode
    compileall.compile_dir(Path(__file__).parent.parent / "src", quiet=1)
    all_met = True
    for name in names:
        measure, duration = BENCHES[name]
        print(f"{name} (takes {duration})", flush=True)
        for result in measure():
            all_met = all_met and result.met
            print(f"{'ok    ' if result.met else 'MISSED'}  {result}", flush=True)
        print()
    sys.exit(0 if all_met else 1)


if __name__ == "__main__":
    main()
