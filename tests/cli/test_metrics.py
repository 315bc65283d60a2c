import csv
import io

import pytest

from cli.command import pennyweight, refused
from pennyweight.catalogue import MEASURES, METRICS

NAMES = sorted({*METRICS, *MEASURES})
FORMATS = ("table", "json", "markdown", "csv")


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_every_number_is_explained(
    name: str, format_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = pennyweight("metrics", name, "--format", format_)
    assert (result.code, result.err) == (0, "")
    flat = " ".join(result.out.split())
    declared = [d[name] for d in (METRICS, MEASURES) if name in d]
    assert name in flat
    for one in declared:
        if format_ == "json":
            kind = "metric" if one is METRICS.get(name) else "measure"
            facts = result.json[kind]
            assert (facts["name"], facts["summary"]) == (name, one.summary)
            assert facts["example"].startswith(">>> ")
            if kind == "metric":
                assert facts["formula"]
                assert facts["interval"]
                assert facts["large_tables"]
                assert facts["better"] in {"higher", "lower", None}
        elif format_ == "csv":
            assert any(row["value"] == name for row in csv.DictReader(io.StringIO(result.out)))
        else:
            assert one.summary.split()[0] in flat
            assert one.spec in flat
    if format_ == "table":
        assert max(map(len, result.out.splitlines())) <= 80


@pytest.mark.parametrize("format_", FORMATS)
def test_the_catalogue_lists_all_of_them(format_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = pennyweight("metrics", "--format", format_)
    assert result.code == 0
    for name in METRICS:
        assert name in result.out.replace("\\_", "_")
    if format_ == "json":
        assert [m["name"] for m in result.json["measures"]] == list(MEASURES)
    if format_ == "table":
        assert max(map(len, result.out.splitlines())) <= 80
        assert "higher is better" in result.out


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    message = refused("metrics", "acuracy")
    assert (
        "Metric 'acuracy' is not known. Did you mean 'accuracy'? 'pennyweight metrics' lists"
        in message
    )
    assert "Did you mean 'cot_tokens'?" in refused("metrics", "cot_token")


def test_text_is_wrapped_once_and_broken_code_is_continued(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = pennyweight("metrics", "usr").out
    assert "so the\nvalue equals error_rate.\n" in text
    assert "passed=[True, True,\n  ...     False])\n" in pennyweight("metrics", "cost_of_pass").out
