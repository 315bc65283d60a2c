"""Every format is declared once, writes a folder once, and says what it loses."""

from contextlib import closing

import pytest

from cli.command import pennyweight
from exports.runs import filled
from pennyweight.api.export import export
from pennyweight.errors import UsageError
from pennyweight.exports.registry import FORMATS, format_named
from store.samples import RUN


@pytest.fixture
def store(tmp_path):
    with closing(filled(tmp_path / "s.db")) as made:
        yield made


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_written_whole_and_nothing_is_overwritten(store, tmp_path, name):
    assert format_named(name).name == name
    assert format_named(name).lost
    export(RUN, tmp_path / "out", format=name, where={"tier": "T0"}, store=store)
    assert any((tmp_path / "out").iterdir())
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"out"}
    with pytest.raises(UsageError, match="exists already"):
        export(RUN, tmp_path / "out", format=name, store=store)


def test_mistakes_are_told_before_anything_is_written(store, tmp_path):
    with pytest.raises(UsageError, match="Did you mean 'inspect'"):
        export(RUN, tmp_path / "out", format="inspekt", store=store)
    with pytest.raises(UsageError, match="-o FOLDER"):
        export(RUN, format="inspect", store=store)
    with pytest.raises(UsageError, match="--judgments"):
        export(RUN, tmp_path / "out", format="inspect", judgments=True, store=store)
    with pytest.raises(UsageError, match="--as inspect writes a folder"):
        export(RUN, tmp_path / "out.json", format="inspect", store=store)
    assert not (tmp_path / "out").exists()


def test_the_command_lists_every_format(tmp_path):
    assert all(name in pennyweight("export", "--help").out for name in FORMATS)
