"""What is told before the first call."""

from pathlib import Path

import pytest

from cli.command import pennyweight
from engine.test_hostile import suite
from models.hostile import in_a_thread, response
from pennyweight.engine.execution import open_suite
from pennyweight.engine.preflight import fetched

CANNOT: dict[str, tuple[str, str]] = {
    "{thinking: 20000}": ("m cannot be called in T0: thinking: 20000 is a budget in tokens", "T0"),
    "{thinking: 5, max_tokens: 10}": ("m cannot be called in T0: thinking: 5 is", "extra"),
}


@pytest.mark.parametrize("settings", CANNOT)
def test_settings_that_no_request_can_hold_are_told(tmp_path: Path, settings: str) -> None:
    with in_a_thread({"m": response()}) as served:
        address, seen = served["m"]
        path = suite(tmp_path, {"m": address}, tasks=3, settings=settings)
        result = pennyweight("run", path, "--store", tmp_path / "s.db")
    assert (result.code, seen) == (2, []), result.err
    assert "Traceback" not in result.err
    for what in CANNOT[settings]:
        assert what in result.err


def test_a_tier_that_cannot_be_written_is_told_before_the_others_are_paid(tmp_path: Path) -> None:
    with in_a_thread({"m": response()}) as served:
        address, seen = served["m"]
        tiers = "{T0: {}, T1: {settings: {thinking: 5}}, T2: {tools: [{description: nameless}]}}"
        path = suite(tmp_path, {"m": address}, tasks=3, tiers=tiers, prices="{}")
        path.write_text(path.read_text().replace("openai/m, ", "anthropic/m, "))
        named = pennyweight("run", path, "--store", tmp_path / "s.db")
        path.write_text(path.read_text().replace("anthropic/m, ", "openai/m, "))
        budget = pennyweight("run", path, "--store", tmp_path / "s.db")
    assert (named.code, budget.code, seen) == (2, 2, [])
    assert "m cannot be called in T2: its settings cannot be sent (KeyError: 'name')" in named.err
    assert "T1" not in named.err
    assert "m cannot be called in T1" in budget.err
    assert "T2" not in budget.err


def test_one_message_names_all_tiers_that_cannot_be_written(tmp_path: Path) -> None:
    with in_a_thread({"m": response()}) as served:
        path = suite(tmp_path, {"m": served["m"][0]}, tiers="{T0: {}, T1: {}}",
                     settings="{thinking: 5, max_tokens: 10}")  # fmt: skip
        result = pennyweight("run", path, "--store", tmp_path / "s.db")
    assert result.err.count("cannot be called in T0, T1: thinking: 5") == 1
    assert result.err.count("thinking: 5") == 1


@pytest.mark.parametrize(
    "settings", ["max_tokens: lots", "max_tokens: '10'", "stop: 5", "tools: 5", "temperature: hot"]
)
def test_a_mistake_in_a_setting_has_its_line_and_costs_no_call(
    tmp_path: Path, settings: str
) -> None:
    with in_a_thread({"m": response()}) as served:
        address, seen = served["m"]
        tiers = f"\n  T0: {{}}\n  T1: {{settings: {{{settings}}}}}"
        path = suite(tmp_path, {"m": address}, tiers=tiers)
        result = pennyweight("run", path, "--store", tmp_path / "s.db")
    assert (result.code, seen) == (2, [])
    line = path.read_text().splitlines().index(f"  T1: {{settings: {{{settings}}}}}") + 1
    name = settings.partition(":")[0]
    assert f"line {line}: tiers.T1.settings.{name} must be " in result.err


def test_a_model_that_has_to_be_fetched_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text("suite: s\ntasks: [{id: a, input: hi}]\nsubjects: [local/smollm2-135m]\n")
    told = "local/smollm2-135m is downloaded first (98 MB), once for all runs."
    monkeypatch.setenv("PENNYWEIGHT_CACHE", str(tmp_path / "cache"))
    assert list(fetched(open_suite(path))) == [told]
    place = tmp_path / "cache" / "models" / "smollm2-135m.gguf"
    place.parent.mkdir(parents=True)
    place.touch()
    assert not list(fetched(open_suite(path)))
