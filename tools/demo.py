"""`make demo`: score two small files, run a real model, write a report."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PENNYWEIGHT = str(Path(sys.executable).with_name("pennyweight"))

STEPS = {
    "Twelve word problems, three tiers, three attempts each: is T2 worth its price?": (
        "score examples/records.jsonl --by tier "
        "--metric accuracy,ece,cot_tokens_mean,latency_p95_ms,cost_usd_mean,cost_of_pass"
    ),
    "All metrics of the same file": "score examples/records.jsonl",
    "Scenarios of a support agent, with one weighted score": (
        "score examples/scenarios.jsonl "
        "--weight safety_rate=3,behavior_coverage=1.5,pass_rate=1 "
        "--metric pass_rate,safety_rate,behavior_coverage,weighted_score,grade"
    ),
    "What does a number mean?": "metrics cost_of_pass",
    "A real model on this machine: do worked examples help? (about three minutes)": (
        "run examples/sums/suite.yaml"
    ),
    "The same run as one file to send": "report latest -o .pennyweight/report.html",
}


def main() -> None:
    """Run each step as a person would. The model (about 100 MB) is downloaded once."""
    for title, arguments in STEPS.items():
        print(f"\n{title}\n$ pennyweight {arguments}\n", flush=True)
        subprocess.run([PENNYWEIGHT, *arguments.split()], cwd=ROOT, check=True)
    print(f"\nOpen {ROOT / '.pennyweight' / 'report.html'} in a browser. Next:\n")
    print("  .venv/bin/pennyweight serve        see every record     (docs/page.md)")
    print("  .venv/bin/pennyweight score FILE   score your own file  (docs/score-a-file.md)")
    print("  .venv/bin/pennyweight init         write a first suite  (docs/run-a-suite.md)")


if __name__ == "__main__":
    main()
