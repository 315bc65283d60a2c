"""Write the generated pages of docs/reference, or with --check say which are stale."""

import json
import os
import sys
from pathlib import Path

from click.testing import CliRunner

from pennyweight.catalogue import FAMILIES, MEASURES, METRICS, chosen
from pennyweight.checks import CHECKS, Check
from pennyweight.checks import FAMILIES as CHECK_FAMILIES
from pennyweight.cli import COMMANDS, cli
from pennyweight.gates.declaration import json_schema as policy_schema
from pennyweight.models.providers import PROVIDERS
from pennyweight.record import COLUMNS, json_schema
from pennyweight.render.catalogue import page
from pennyweight.render.schema import comparison_schema, scores_schema
from pennyweight.schema.structs import Field, Struct
from pennyweight.suite.declaration import SUITE
from pennyweight.suite.declaration import json_schema as suite_schema
from pennyweight.text.extraction import KINDS as ANSWERS
from pennyweight.text.matching import KINDS as MATCHES

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference"
NOTE = "<!-- Made by `make docs` from the code; change it there. -->\n\n"


def metrics_page() -> str:
    """One section for each metric, by family."""
    parts = ["# Metrics\n\nWhat is computed from many records.\n"]
    for family, title in FAMILIES.items():
        parts.append(f"## {title}\n")
        parts += [page(m, level=3) for m in chosen(None) if m.family == family]
    return NOTE + "\n".join(parts)


def measures_page() -> str:
    """One section for each measure."""
    parts = ["# Measures\n\nWhat is computed from one record.\n"]
    return NOTE + "\n".join(parts + [page(m) for m in MEASURES.values()])


def record_page() -> str:
    """One row for each column of the record."""
    lines = [
        "# The record\n",
        "The row that one attempt leaves behind. Every column may be missing; columns that are "
        "not listed are kept and can be grouped by. The same as a "
        "[JSON schema](record.schema.json).\n",
        "| column | type | meaning | also understood |",
        "| --- | --- | --- | --- |",
    ]
    for c in COLUMNS:
        bounds = ""
        if c.minimum is not None:
            bounds = f", {c.minimum:g} to {c.maximum:g}" if c.maximum else f", from {c.minimum:g}"
        aliases = ", ".join(f"`{a}`" for a in c.aliases)
        kind = c.type.replace("strings", "list of strings")
        lines.append(f"| `{c.name}` | {kind}{bounds} | {c.meaning} | {aliases} |")
    return NOTE + "\n".join(lines) + "\n"


def commands_page() -> str:
    """What --help says, for every command."""
    parts = ["# Commands\n"]
    for name in ("", *COMMANDS):
        help_text = (
            CliRunner().invoke(cli, [*([name] if name else []), "--help"], "pennyweight").output
        )
        parts.append(f"## `pennyweight {name}`\n".replace(" `\n", "`\n"))
        parts.append(f"```text\n{help_text.rstrip()}\n```\n")
    return NOTE + "\n".join(parts).replace("Usage: cli", "Usage: pennyweight")


def checks_page() -> str:
    """One section for each check, by what it looks at."""
    parts = [
        "# Checks\n\nHow a behaviour is observed; [Checks](../checks.md) teaches them by example. "
        "Each may have `not_` before its name, a `name`, and `of`: the text it looks at.\n"
    ]
    for family, title in CHECK_FAMILIES.items():
        parts.append(f"## {title}\n")
        for one in (c for c in CHECKS.values() if c.family == family):
            parts += [f"### `{one.name}`\n", f"{one.summary}\n"]
            parts += [f"{one.details}\n"] if one.details else []
            if one.struct.fields:
                parts.append("| parameter | value | default |\n| --- | --- | --- |")
                parts += [check_row(one, field) for field in one.struct.fields]
                parts.append("")
            parts.append(f"```pycon\n{one.example}\n```\n")
    return NOTE + "\n".join(parts)


def check_row(one: Check, field: Field) -> str:
    """One parameter of a check: its value, and what holds without it."""
    needed = field.name in {*one.struct.exactly_one, *one.struct.either}
    default = "needed" if field.required else "one of these is needed" if needed else ""
    if not default and field.default is not None:
        default = f"`{json.dumps(field.default)}`"
    return f"| `{field.name}` | {field.kind.expected} | {default} |"


def suite_page() -> str:
    """One table for each mapping of a suite, the suite itself first."""
    parts = [
        "# The suite\n\nEvery key that may stand in a suite; [Suites](../suites.md) teaches them "
        "by example. The same as a [JSON schema](suite.schema.json).\n"
    ]
    for table in tables(SUITE):
        parts.append(f"## {table.noun.removeprefix('a ').removeprefix('an ').capitalize()}\n")
        if table.open:
            parts.append("Other keys are kept, and prompts may use them.\n")
        parts.append("| key | value | meaning |\n| --- | --- | --- |")
        parts += [suite_row(field) for field in table.fields]
        parts.append("")
    for key, kinds in (("answer", ANSWERS), ("match", MATCHES)):
        parts.append(f"## The rules of `{key}`\n\n| rule | what it takes |\n| --- | --- |")
        parts += [f"| `{name}` | {meaning} |" for name, meaning in kinds.items()]
        parts.append("")
    return NOTE + "\n".join(parts)


def suite_row(field: Field) -> str:
    """One key: what may stand there, what it means, its default and its other names."""
    value = field.kind.expected.replace("|", "\\|")
    if isinstance(field.kind, Struct) or value.startswith("a mapping ("):
        value = f"a mapping, see {getattr(field.kind, 'noun', 'below')}"
    notes = [field.meaning]
    if field.required:
        notes.append("Required.")
    if field.default is not None:
        notes.append(f"Default: `{json.dumps(field.default)}`.")
    if field.aliases:
        notes.append(f"Also understood: {', '.join(f'`{a}`' for a in field.aliases)}.")
    return f"| `{field.name}` | {value} | {' '.join(notes)} |"


def tables(kind: object, seen: tuple[Struct, ...] = ()) -> tuple[Struct, ...]:
    """Find the tables that a kind is made of, each once, from the outside in."""
    if isinstance(kind, Struct):
        if kind in seen:
            return seen
        seen = (*seen, kind)
        inner: list[object] = [field.kind for field in kind.fields]
    else:
        inner = [getattr(kind, "kind", None), *getattr(kind, "kinds", ())]
    for one in inner:
        if one is not None:
            seen = tables(one, seen)
    return seen


def models_page() -> str:
    """One row for each provider."""
    lines = [
        "# Providers\n",
        "`provider/model` in a suite; [Models](../models.md) has the other forms.\n",
        "| provider | key in | address | format |",
        "| --- | --- | --- | --- |",
    ]
    for one in PROVIDERS.values():
        key = f"`{one.key_env}`" if one.key_env else "none needed"
        address = f"`{one.base_url}`" if one.base_url else f"in `{one.base_env}`"
        lines.append(f"| `{one.name}/…` | {key} | {address} | {one.wire} |")
    return NOTE + "\n".join(lines) + "\n"


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def pages() -> dict[Path, str]:
    """Every generated file with what it should hold."""
    assert METRICS
    return {
        REFERENCE / "metrics.md": metrics_page(),
        REFERENCE / "measures.md": measures_page(),
        REFERENCE / "record.md": record_page(),
        REFERENCE / "commands.md": commands_page(),
        REFERENCE / "record.schema.json": _json(json_schema()),
        REFERENCE / "scores.schema.json": _json(scores_schema()),
        REFERENCE / "policy.schema.json": _json(policy_schema()),
        REFERENCE / "comparison.schema.json": _json(comparison_schema()),
        REFERENCE / "checks.md": checks_page(),
        REFERENCE / "suite.md": suite_page(),
        REFERENCE / "suite.schema.json": _json(suite_schema()),
        REFERENCE / "models.md": models_page(),
    }


def main() -> None:
    """Write the pages, or check them."""
    os.environ["COLUMNS"] = "80"
    wanted = pages()
    stale = [p for p, t in wanted.items() if not p.exists() or p.read_text("utf-8") != t]
    stale += [p for p in REFERENCE.glob("*") if p not in wanted]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale; 'make docs' writes it anew.")
        sys.exit(bool(stale))
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for path in stale:
        if path in wanted:
            path.write_text(wanted[path], encoding="utf-8")
        else:
            path.unlink()
        print(f"{path.relative_to(ROOT)}: written anew")


if __name__ == "__main__":
    main()
