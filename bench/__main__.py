"""`make bench`: run all benchmarks, or those named; exit 1 if a ratio is missed."""

import sys

from bench import score, startup

BENCHES = {"startup": startup.run, "score": score.run}


def main() -> None:
    names = sys.argv[1:] or list(BENCHES)
    results = [result for name in names for result in BENCHES[name]()]
    print()
    for result in results:
        print(f"{'ok    ' if result.met else 'MISSED'}  {result}")
    sys.exit(0 if all(r.met for r in results) else 1)


if __name__ == "__main__":
    main()
