"""The report: one file that stands alone, prints, and says what the scores say."""

import csv
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest

import services
from cli.command import pennyweight, refused
from pennyweight import score
from pennyweight.api.pages.digest import digest
from pennyweight.api.sources import resolve
from pennyweight.gates.verdict import Decision, Verdict
from pennyweight.render.files import browser
from pennyweight.render.page import environment, visible
from pennyweight.render.verdict import verdict_view
from pennyweight.render.view import key_figures, side_rows
from pennyweight.scoring.digest import group_digest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
RECORDS = EXAMPLES / "records.jsonl"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    done = pennyweight("report", RECORDS, "-o", folder / "r.html", "--charts", folder / "charts",
                 "--tables", folder / "tables")  # fmt: skip
    assert done.code == 0, done.err
    return folder


def test_records_with_nothing_to_measure_get_a_hint(tmp_path):
    (tmp_path / "bare.jsonl").write_text('{"id": "a", "input": "hello"}\n')
    assert pennyweight("report", tmp_path / "bare.jsonl", "-o", tmp_path / "r.html").code == 0
    text = (tmp_path / "r.html").read_text()
    assert "No key figure has a value." in text
    assert 'class="toc' not in text


def test_only_characters_that_hide_are_made_visible():
    assert visible("👩\u200d🚀 co\u00adop می\u200cخواهم") == "👩\u200d🚀 co\u00adop می\u200cخواهم"
    assert visible("a\u200bb\u202ec\ud800") == "a⟨U+200B⟩b⟨U+202E⟩c⟨U+D800⟩"


def test_it_stands_alone(report):
    text = (report / "r.html").read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert not re.search(r"<(script|link|img|iframe|object)\b", text)
    addresses = set(re.findall(r"(?:https?:)?//[\w.]+[^\s\"<]*", text))
    assert addresses == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\sstyle=|\son\w+=", text)


def test_it_has_the_name_of_the_folder_it_reports_on(tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()
    lines = RECORDS.read_text().splitlines(keepends=True)
    for number in range(4):
        (folder / f"part-{number}.jsonl").write_text("".join(lines[number::4]))
    pennyweight("report", folder, "-o", tmp_path / "r.md")
    assert (tmp_path / "r.md").read_text().startswith("# results\n")


@pytest.mark.parametrize("option", ["--baseline", "--version", "--baseline-where"])
def test_what_belongs_to_a_policy_is_refused_without_one(option, tmp_path):
    path = tmp_path / "r.md"
    assert "require --policy" in refused("report", RECORDS, "-o", path, option, "tier=T0")
    assert not path.exists()


def test_by_groups_tables_and_charts_by_any_column(tmp_path):
    """Categories share no task, so nothing is compared; a policy is still decided on each tier."""
    path, tables = tmp_path / "r.md", tmp_path / "tables"
    scenarios = EXAMPLES / "scenarios.jsonl"
    policy = EXAMPLES / "gates" / "sure.yaml"
    done = pennyweight("report", scenarios, "--by", "category", "-o", path, "--tables", tables)
    assert done.code == 0, done.err
    assert "differences are not tested" in path.read_text()
    assert "pennyweight score" in path.read_text().splitlines()[-1]
    assert "--by category" in path.read_text().splitlines()[-1]
    with (tables / "metrics.csv").open() as file:
        rows = {
            r["category"]: r["value"] for r in csv.DictReader(file) if r["metric"] == "pass_rate"
        }
    scored = {
        g.group["category"]: g["pass_rate"].value for g in score(scenarios, by="category").groups
    }
    assert rows.pop("") == str(score(scenarios)["pass_rate"].value)
    assert rows == {name: str(value) for name, value in scored.items()}
    pennyweight("report", RECORDS, "--by", "subject", "--policy", policy, "-o", path)
    assert re.findall(r"^## Verdict on (\w+)", path.read_text(), re.M) == ["T0", "T1", "T2"]
    assert "'nope' is not known" in refused("report", RECORDS, "--by", "nope", "-o", path)


def test_its_numbers_are_those_of_the_scores(report):
    text = (report / "r.html").read_text()
    group = score(RECORDS).groups[0]
    accuracy = group["accuracy"]
    assert f">{accuracy.value * 100:.1f} %<" in text
    assert f"{accuracy.low * 100:.1f} to {accuracy.high * 100:.1f} %" in text
    with (report / "tables" / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    whole = {r["metric"]: r for r in rows if not r["tier"]}
    for name, e in group.estimates.items():
        expected = "" if e.value is None else str(e.value)
        assert whole[name]["value"] == expected, name
        assert int(whole[name]["left_out"]) == e.skipped
    assert {r["tier"] for r in rows} == {"", "T0", "T1", "T2"}


def test_the_words_of_the_comparison_are_in_it(report):
    said = pennyweight("compare", RECORDS, "--format", "json").json["words"]
    text = (report / "r.html").read_text()
    assert not re.search(r"<p>[^<]*\d (%|points)", text)  # a number stays with its unit
    spaced = text.replace("\N{NO-BREAK SPACE}", " ")
    assert all(line.replace("'", "&#39;") in spaced for line in said)


def test_charts_are_pictures(report):
    names = {p.name for p in (report / "charts").iterdir()}
    assert {"sides.svg", "reliability.svg", "thought.svg", "latency.svg", "frontier.svg"} <= names
    for path in (report / "charts").glob("*.svg"):
        assert "var(--" not in path.read_text()
    for path in (report / "charts").glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
    assert {n.replace("svg", "png") for n in names if n.endswith("svg")} <= names


def test_a_chart_that_stands_alone_says_what_it_is(report):
    named = {
        "latency": ("Latency", "milliseconds"),
        "thought": ("Length of reasoning and correctness", "reasoning tokens"),
    }
    for name, (title, axis) in named.items():
        text = (report / "charts" / f"{name}.svg").read_text()
        assert f">{title}</text>" in text
        assert f">{axis}" in text


def test_pairs_are_a_table_of_their_own(report):
    told = pennyweight("compare", RECORDS, "--format", "json").json["pairs"]
    with (report / "tables" / "pairs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(r["a"], r["b"], r["metric"]) for r in rows] == [
        (p["a"], p["b"], p["metric"]) for p in told
    ]
    assert [r["p_adjusted"] for r in rows] == [
        "" if p["p_adjusted"] is None else str(p["p_adjusted"]) for p in told
    ]
    lines = (report / "tables" / "pairs.tex").read_text().splitlines()
    assert sum(" & " in line and line.count(" & ") == 5 for line in lines) == len(told) + 1
    heads = [f"{b} $-$ {a}" for a, b in dict.fromkeys((p["a"], p["b"]) for p in told)]
    assert [re.search(r"textbf\{(.*?)\}\}? ", x)[1] for x in lines if "textbf" in x] == heads


def test_every_side_is_in_latex(report):
    text = (report / "tables" / "metrics.tex").read_text()
    heads = [
        rf"\textbf{{{tier}{part}}}" for tier in ("T0", "T1", "T2") for part in ("", " (continued)")
    ]
    assert text.count(r"\begin{tabular}") == 8  # of the whole and each tier, on two pages
    assert [text.count(head) for head in heads] == [1] * 6


def test_it_opens_with_the_conclusion_and_the_leaderboard(report, tmp_path):
    text = (report / "r.html").read_text("utf-8")
    places = [text.index(part) for part in ('class="conclusion', 'id="board"', 'id="charts"')]
    assert places == sorted(places)
    done = pennyweight("report", RECORDS, "-o", tmp_path / "r.md")
    assert done.code == 0, done.err
    lines = (tmp_path / "r.md").read_text("utf-8").splitlines()
    assert lines[4].startswith("**")
    assert lines.index("## Leaderboard") < lines.index("## Side by side")
    rows = [line for line in lines if re.match(r"\| [-–—\d]+ \| T\d", line)]
    assert len(rows) == 3


def test_the_leaderboard_is_one_latex_table(report):
    text = (report / "tables" / "leaderboard.tex").read_text("utf-8")
    for part in (
        r"\toprule",
        r"\midrule",
        r"\bottomrule",
        r"\caption{",
        r"\label{tab:leaderboard}",
    ):
        assert text.count(part) == 1
    assert all(f"{tier} &" in text for tier in ("T0", "T1", "T2"))
    wide = {line.count(" & ") for line in text.splitlines() if line.endswith(r"\\")}
    assert len(wide) == 1


@pytest.mark.parametrize("name", ["leaderboard", "metrics", "pairs"])
def test_latex_can_be_set(report, tmp_path, name):
    text = (report / "tables" / f"{name}.tex").read_text("utf-8")
    said = typeset(text, tmp_path)
    assert "too wide" not in said  # it fits on the page
    assert "too high" not in said


@pytest.mark.parametrize("sides", [3, 9])
@pytest.mark.parametrize(
    "name", ["m{}", "vendor/a-very-long-model-{}-instruct-preview-2026-11-18-high"]
)
def test_latex_of_sides_with_long_names_fits_on_the_page(tmp_path, sides, name):
    rows = [
        {"id": f"t{i}", "subject": name.format(n), "tier": "T1", "target": "4", "cost_usd": 0.0123}
        | {"answer": "4" if i < n + 5 else "5", "latency_ms": 1234.5 + i * n, "confidence": 0.8}
        | {"cot": "Step 1: one two " * (i + 1), "prompt_tokens": 1000, "completion_tokens": i + n}
        for n in range(sides)
        for i in range(20)
    ]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    tables = ("--by", "subject,tier", "-o", tmp_path / "r.md", "--tables", tmp_path)
    done = pennyweight("report", tmp_path / "r.jsonl", *tables)
    assert done.code == 0, done.err
    for table in ("leaderboard", "metrics", "pairs"):
        text = (tmp_path / f"{table}.tex").read_text("utf-8")
        assert all(name.format(n)[:26] in text for n in range(1, sides)), table
        said = typeset(text, tmp_path)
        assert "too wide" not in said, table
        assert "too high" not in said, table
        assert "too large" not in said, table


def test_many_sides_with_any_names_can_be_set(tmp_path):
    """They take several floats; separators and invisible characters are left out of names."""
    odd = ("\u2028", "\ufeff", "\u202e", "\\", "$", "x" * 500)
    rows = [
        {"id": f"t{i}", "subject": f"m{n:02}{odd[n % len(odd)]}y", "tier": "T0", "target": "4"}
        | {"answer": "4" if i < n else "5"}
        for n in range(30)
        for i in range(4)
    ]
    (tmp_path / "many.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    tables = ("-o", tmp_path / "r.md", "--tables", tmp_path)
    done = pennyweight("report", tmp_path / "many.jsonl", *tables)
    assert done.code == 0, done.err
    text = (tmp_path / "leaderboard.tex").read_text("utf-8")
    assert text.count(r"\begin{table}") == text.count(r"\caption{") == 2
    assert text.count(r"\label{") == text.count("(continued)") == 1
    assert all(f"m{n:02}" in text for n in range(30))
    assert max(map(len, text.splitlines())) < 300
    assert "too large" not in typeset(text, tmp_path)


def typeset(text, tmp_path):
    """Set a LaTeX text, where LaTeX is installed; return what LaTeX says."""
    program = shutil.which("pdflatex")
    if program is None:
        pytest.skip("pdflatex is missing: the form of the tables is checked, but they are not set")
    head = r"\documentclass{article}\usepackage{booktabs}\begin{document}"
    (tmp_path / "all.tex").write_text(f"{head}\n{text}\n" + r"\end{document}", "utf-8")
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout.decode(errors="replace")


def test_markdown_shows_the_charts_that_were_written(tmp_path):
    folder = tmp_path / "some charts"
    done = pennyweight("report", RECORDS, "-o", tmp_path / "r.md", "--charts", folder)
    assert done.code == 0, done.err
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (tmp_path / "r.md").read_text())
    assert "some%20charts/latency.svg" in shown
    assert all((tmp_path / unquote(way)).exists() for way in shown)


def test_what_says_the_same_is_told_once():
    group = group_digest(score(RECORDS, where={"tier": "T0"}).groups[0])
    titles = [f["title"] for f in key_figures(group)]
    assert "Accuracy" in titles
    assert "Pass rate" not in titles
    assert "Cost" in titles


def test_bins_hold_every_record():
    found = digest(resolve([str(RECORDS)]))["charts"]
    frame = score(RECORDS).groups[0]
    measured = frame["latency_mean_ms"].records
    assert sum(b["n"] for b in found["latency"]["bins"]) == measured
    thought = found["thought"]["bins"]
    assert sum(b["right"] + b["wrong"] for b in thought) == frame["cot_tokens_mean"].records
    assert sum(b["n"] for b in found["reliability"]) == frame["ece"].records


def test_latex_is_escaped(report):
    text = (report / "tables" / "metrics.tex").read_text()
    assert r"cost\_usd\_mean & \$0.00165 " in text
    assert text.startswith(r"\begingroup\noindent\footnotesize")
    assert not re.search(r"(?<!\\)[_%#$]", text.replace(r"$\infty$", ""))


def test_markdown(report, tmp_path):
    done = pennyweight("report", EXAMPLES / "scenarios.jsonl", "-o", tmp_path / "r.md")
    assert done.code == 0, done.err
    text = (tmp_path / "r.md").read_text()
    assert text.startswith("# scenarios.jsonl\n")
    assert "| pass\\_rate |" in text


def test_pdf(tmp_path):
    if browser() is None:
        services.missing("chromium")
    done = pennyweight("report", RECORDS, "-o", tmp_path / "r.pdf")
    assert done.code == 0, done.err
    assert (tmp_path / "r.pdf").read_bytes().startswith(b"%PDF")


def test_without_a_browser_a_pdf_is_refused_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    said = refused("report", RECORDS, "-o", tmp_path / "r.pdf")
    assert "Chromium" in said
    assert "report.html" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((RECORDS, "-o", "r.txt"), ".html, .md or .pdf"),
        ((RECORDS, "-o", "none/r.html"), "cannot be written"),
        (("-",), "only once"),
        (("missing.jsonl",), "no such file"),
    ],
)
def test_what_is_wrong_is_told(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in refused("report", *arguments)


POLICY = "policy: release\nthresholds:\n  blocking: {accuracy: 60%}\n  warning: {ece: 0.2}\n"


def test_a_policy_decides_on_each_side(tmp_path):
    policy = tmp_path / "release.yaml"
    policy.write_text(POLICY)
    for name in ("r.html", "r.md"):
        done = pennyweight("report", RECORDS, "-o", tmp_path / name, "--policy", policy)
        assert done.code == 0, done.err
    page, text = (tmp_path / "r.html").read_text(), (tmp_path / "r.md").read_text()
    for tier in ("T0", "T1", "T2"):
        told = pennyweight("gate", RECORDS, "--policy", policy, "--where", f"tier={tier}",
                     "--format", "json").json  # fmt: skip
        word = {"pass": "Passed", "fail": "Failed", "inconclusive": "Inconclusive"}[told["verdict"]]
        part = text.split(f"## Verdict on {tier}\n")[1].split("\n## ")[0]
        assert part.strip().startswith(word)
        assert re.search(rf"<h3>{tier}</h3>\s*<div class=\"notice[^>]*><b>{word}", page)
    assert page.count('class="limit"') >= 6
    assert not re.search(r"\sstyle=|<a href", page.split(">Verdicts<")[1].split("<h2>")[0])


def test_a_policy_that_is_missing_is_told(tmp_path):
    done = pennyweight(
        "report", RECORDS, "-o", tmp_path / "r.html", "--policy", tmp_path / "none.yaml"
    )
    assert done.code == 2
    assert "none.yaml" in done.err
    assert not (tmp_path / "r.html").exists()


def test_a_report_of_failures_says_why_and_has_no_empty_boxes(tmp_path):
    lines = [
        {"task_id": f"t{i}", "status": "error", "error": "no route" if i else "<b>boom</b>"}
        for i in range(4)
    ]
    path = tmp_path / "failed.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = pennyweight("report", path, "-o", tmp_path / "r.html")
    assert done.code == 0, done.err
    text = (tmp_path / "r.html").read_text()
    assert "4 attempts ended in an error." in text
    assert "The most frequent error, in 3 attempts:" in text
    assert "no route" in text
    assert '<div class="figures">' not in text
    assert '<div class="charts">' not in text


def test_failing_tasks_are_folded_after_five():
    gate = {"name": "g", "level": "blocking", "verdict": "fail", "sign": "✗", "value": "0.1"}
    gate |= {
        "interval": "",
        "threshold": "≥ 0.5",
        "why": "too low",
        "failing": 60,
        "test": "",
        "by": "value",
    }
    gate |= {"scenarios": [{"id": f"S-{i}", "why": "no"} for i in range(50)]}
    gate |= {"scale": {"from": 100, "width": 100, "low": 6, "high": 50, "limit": 100, "value": 20,
                       "decides": False, "first": "0", "last": "1"}}  # fmt: skip
    macros = environment().get_template("macros.html").module
    text = str(macros.decided("Failed", "fail", [gate]))
    before, _, after = text.partition("and 55 more")
    assert before.count("S-") == 5
    assert after.count("S-") == 45
    assert "and 10 more, not listed" in after
    assert text.count('<svg class="scale"') == 2  # beside the numbers, and below them on a phone
    assert "in the shaded part" in text
    assert "in the shaded part" not in str(
        macros.decided("Failed", "fail", [{**gate, "scale": None}])
    )


def test_a_sequential_test_is_described_below_its_gate():
    plain = Decision(
        "accuracy", "accuracy", "pass", "It holds.", value=0.9, threshold=0.8, sign=">="
    )
    test = {"test": "sequential", "indifference": (0.75, 0.8)}
    tested = replace(plain, **test, tasks=31, planned_tasks=100)
    macros = environment().get_template("macros.html").module
    for gate, is_described in ((tested, True), (plain, False)):
        verdict = verdict_view(Verdict("p", (gate,), 31, 0, 0.05))
        text = str(macros.decided(verdict["headline"], "pass", verdict["gates"]))
        text = text.replace("\N{NO-BREAK SPACE}", " ")
        for words in ("Sequential test after 31 of 100 tasks", "75.0 to 80.0 %"):
            assert (words in text) == is_described, text


def test_a_mean_that_a_few_tasks_decide_is_marked(tmp_path):
    costs = [0.1 + i / 1000 for i in range(19)] + [9.0]
    rows = [{"task_id": str(i), "passed": True, "cost_usd": c} for i, c in enumerate(costs)]
    path = tmp_path / "r.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    for name, words in (("r.html", "A few tasks decide this mean"), ("r.md", "A few tasks decide")):
        assert pennyweight("report", path, "-o", tmp_path / name).code == 0
        text = (tmp_path / name).read_text("utf-8")
        for said in (words, "about tasks like these (generalised accuracy)", "may be missing"):
            assert said in text.replace("\\", "")


@pytest.mark.parametrize(
    ("targets", "labels"),
    [
        (["yes", "no", "yes", "no"], True),
        (["Paris", "Rome", "Oslo", "Bern"], False),  # free answers, each once
        (["yes", "no", "yes", "maybe"], False),
    ],
)
def test_precision_and_recall_are_shown_by_themselves_only_for_labels(tmp_path, targets, labels):
    rows = [{"id": f"t{i}", "answer": "yes", "target": t} for i, t in enumerate(targets)]
    records, out = tmp_path / "records.jsonl", tmp_path / "report.md"
    records.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert pennyweight("report", records, "-o", out).code == 0
    text = out.read_text()
    assert "| accuracy |" in text
    assert ("| precision |" in text, "| recall |" in text) == (labels, labels)
    every = pennyweight("score", records, "--all").out
    assert "precision" in every


def test_a_fact_is_shown_once(report):
    text = (report / "r.html").read_text()
    assert "error_<wbr>rate" in text
    assert ">usr<" not in text
    assert "\nusr &" not in (report / "tables" / "metrics.tex").read_text()
    assert "usr " in pennyweight("score", RECORDS, "--all").out


def test_medians_of_yes_or_no_grade_no_side_in_a_table_of_sides():
    sides = (("T0", 5), ("T1", 6))
    graded = [
        {"task_id": f"t{n}", "tier": tier, "passed": n < good, "impl_rate": float(n < good)}
        for n in range(11)
        for tier, good in sides
    ]
    shown = {row["name"] for family in side_rows(digest(resolve(graded))) for row in family["rows"]}
    assert "pass_rate" in shown
    assert not shown & {"composite_median", "grade"}
