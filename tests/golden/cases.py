"""What is kept: each command, page, report and export with the name of its file in `data/`."""

WORLDS = (
    *("one_side", "two_sides", "close", "three_sides", "nine_sides", "many_sides"),
    *("few_errors", "many_errors", "only_errors", "ties", "one_record"),
    *("judged", "agents", "labels", "models_and_tiers"),
)
RUNS = ("three_sides", "many_errors", "judged", "agents", "nine_sides", "only_errors")
"""The worlds that are also runs in the store, under their own names."""

COMPARED = tuple(name for name in WORLDS if name not in {"one_side", "one_record", "only_errors"})


def commands() -> dict[str, str]:
    """Give the command lines."""
    lines = {f"score {name}": f"score {name}.jsonl" for name in WORLDS}
    lines |= {f"compare {name}": f"compare {name}.jsonl" for name in COMPARED}
    for form in ("json", "markdown", "csv"):
        lines[f"score three_sides {form}"] = f"score three_sides.jsonl --by tier --format {form}"
        lines[f"compare three_sides {form}"] = f"compare three_sides.jsonl --format {form}"
        lines[f"runs {form}"] = f"runs --format {form}"
        lines[f"show {form}"] = f"show three_sides --format {form}"
        lines[f"plan {form}"] = f"plan --rate 80% --difference 5% --format {form}"
    for form in ("table", "json", "markdown", "junit", "github"):
        lines[f"gate {form}"] = (
            f"gate two_sides.jsonl --policy policy.yaml --each tier --format {form}"
        )
    return lines | {
        "score by tier": "score three_sides.jsonl --by tier",
        "score all": "score one_side.jsonl --all",
        "score metric": "score three_sides.jsonl --by tier --metric accuracy,cost_of_pass",
        "score examples": "score examples/records.jsonl --by tier",
        "score scenarios": "score examples/scenarios.jsonl",
        "score missing": "score nothing.jsonl",
        "score unknown metric": "score one_side.jsonl --metric acuracy",
        "compare margin": "compare close.jsonl --metric accuracy --margin 5%",
        "compare tasks": "compare two_sides.jsonl --tasks",
        "compare files": "compare one_side.jsonl two_sides.jsonl --by source",
        "compare all pairs": "compare three_sides.jsonl --all-pairs",
        "compare run": "compare nine_sides --by subject",
        "compare scenarios": "compare examples/scenarios.jsonl examples/scenarios.jsonl",
        "gate scenarios": "gate examples/scenarios.jsonl --policy examples/gates/release.yaml",
        "gate errors": "gate many_errors.jsonl --policy policy.yaml --where tier=T1",
        "gate baseline": "gate two_sides.jsonl --policy examples/gates/no-worse.yaml"
        " --where tier=T1 --baseline two_sides.jsonl --baseline-where tier=T0",
        "plan pilot": "plan three_sides.jsonl --difference 5%",
        "runs": "runs",
        "show": "show three_sides",
        "show failed": "show three_sides --failed",
        "show task": "show three_sides q003",
        "show judged task": "show judged q003",
        "show errors": "show only_errors",
        "metrics": "metrics",
        "metrics one": "metrics ece",
        "metrics unknown": "metrics acuracy",
    }


EXPORTS = {
    "export jsonl": "export one_side_run",
    "export csv": "export one_side_run --where tier=T0 -o out/records.csv",
    "export every_eval_ever": "export one_side_run --as every_eval_ever -o out/eee",
}

REPORTS = {
    "report run": "report three_sides -o report.html",
    "report errors": "report many_errors.jsonl -o report.html",
    "report markdown": "report two_sides.jsonl -o report.md --policy policy.yaml --where tier=T1",
    "report judged": "report judged -o report.html",
}

PAGES = {
    "page runs": "/",
    **{f"page run {name}": f"/runs/{name}" for name in RUNS},
    **{f"page records {name}": f"/runs/{name}/records" for name in ("three_sides", "agents")},
    **{f"page compare {name}": f"/compare?run={name}" for name in RUNS[:5]},
    "page gates": "/gates?run=three_sides",
    "page review": "/runs/three_sides/review",
    "page new": "/new",
    "page docs": "/docs",
    "page nothing": "/nothing",
    "page record": '/runs/three_sides/record?key=["q003","model-a","T0",1]',
}
