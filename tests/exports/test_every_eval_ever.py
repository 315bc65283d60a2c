"""Runs for Every Eval Ever, in the shape that `every_eval_ever validate` 0.3.0 takes."""

import hashlib
import json
import re
from contextlib import closing

import pytest

from exports.runs import filled
from exports.tools import ask
from pennyweight.api.export import export
from pennyweight.api.score import score
from store.samples import RUN

PLACE = re.compile(
    r"data/s/(lab/m|unknown/n)/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f-]+"
)


@pytest.fixture
def written(tmp_path):
    with closing(filled(tmp_path / "s.db")) as store:
        export(RUN, tmp_path / "out", format="every_eval_ever", store=store)
        yield tmp_path / "out", store


def test_an_aggregate_has_the_pass_rate_its_interval_and_the_sum_of_its_samples(written):
    folder, store = written
    rates = score(RUN, by=["subject", "tier"], metrics=["pass_rate"], store=store).groups
    expected = {(one.group["subject"], one.group["tier"]): one["pass_rate"] for one in rates}
    found = [*folder.glob("data/*/*/*/*.json")]
    assert len(found) == len(expected) == 3
    for path in found:
        whole = json.loads(path.read_text())
        (result,) = whole["evaluation_results"]
        details = result["score_details"]
        rate = expected[whole["model_info"]["name"], details["details"]["tier"]]
        interval = details["uncertainty"]["confidence_interval"]
        assert (details["score"], interval["lower"], interval["upper"]) == (
            rate.value, rate.low, rate.high,
        )  # fmt: skip
        samples = whole["detailed_evaluation_results"]
        assert PLACE.fullmatch(samples["file_path"].removesuffix("_samples.jsonl"))
        data = (folder / samples["file_path"]).read_bytes()
        assert samples["checksum"] == hashlib.sha256(data).hexdigest()
        assert samples["total_rows"] == len(data.splitlines()) == 6
        assert {json.loads(line)["evaluation_id"] for line in data.splitlines()} == {
            whole["evaluation_id"]
        }


def test_a_sample_says_what_was_asked_answered_and_decided(written):
    folder, _ = written
    path = next(folder.glob("data/s/unknown/n/*_samples.jsonl"))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    first, second, agent, late, broken, undecided = rows
    assert first["input"] == {"raw": "Which city?", "reference": ["Lima"]}
    assert first["output"]["raw"] == ["So\nIt is Lima."]
    assert first["evaluation"]["is_correct"] is True
    assert first["token_usage"]["total_tokens"] == 150
    assert first["performance"] == {"latency_ms": 1234.567}
    assert (second["metadata"]["attempt"], second["metadata"]["cost_usd"]) == ("2", "0.000123")
    assert (agent["interaction_type"], "output" in agent) == ("agentic", False)
    assert agent["messages"][3]["tool_call_id"] == [agent["messages"][2]["tool_calls"][0]["id"]]
    assert [one["error"] for one in (late, broken, undecided)] == [
        "timeout", "HTTP 500", "no verdict",
    ]  # fmt: skip
    assert broken["token_usage"] is None


VALIDATE = """
import sys
from every_eval_ever.cli import main
sys.argv = ["every_eval_ever", "validate", *sys.argv[1:]]
raise SystemExit(main())
"""


def test_the_validator_of_the_schema_takes_every_file(written):
    folder, _ = written
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert len(files) == 6
    told = ask("every_eval_ever", VALIDATE, *files)
    assert "0 failed (0 errors" in told, told
    assert told.count("PASS") == 5  # the other warns of a model that names no developer
