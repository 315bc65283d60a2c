"""`make bench`: run all benchmarks, or those named; exit 1 if a ratio is missed."""

import sys

from bench import compare, gates, run, score, startup, web

BENCHES = {
    "startup": (startup.run, "seconds"),
    "score": (score.run, "half a minute"),
    "run": (run.run, "two minutes"),
    "gates": (gates.run, "a minute"),
    "compare": (compare.run, "some minutes"),
    "web": (web.run, "a quarter of an hour"),
}


def main() -> None:
    names = sys.argv[1:] or list(BENCHES)
    if unknown := set(names) - set(BENCHES):
        sys.exit(f"There is no benchmark {', '.join(unknown)}; there are {', '.join(BENCHES)}.")
    good = True
    for name in names:
        measure, long = BENCHES[name]
        print(f"{name} ({long})", flush=True)
        for result in measure():
            good = good and result.met
            print(f"{'ok    ' if result.met else 'MISSED'}  {result}", flush=True)
        print()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
