"""What people see is what is kept in `data/`; `tools/kept_outputs.py` rewrites it."""

from difflib import unified_diff
from pathlib import Path

from golden.outputs import outputs

DATA = Path(__file__).parent / "data"


def test_outputs_are_the_kept_ones(tmp_path):
    changes, names = [], set()
    for name, text in outputs(tmp_path):
        names.add(name)
        file = DATA / f"{name.replace(' ', '-')}.txt"
        kept = file.read_text("utf-8") if file.exists() else ""
        lines = unified_diff(kept.splitlines(), text.splitlines(), f"kept {name}", "now", "", "", 1)
        changes += [*lines][:20]
    assert not changes, "\n".join(changes)
    assert {f"{name.replace(' ', '-')}.txt" for name in names} == {f.name for f in DATA.iterdir()}
