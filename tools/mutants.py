"""Would the tests notice? Change one place of the source at a time and run its tests.

    python tools/mutants.py --count 100 --seed 1
    python tools/mutants.py --all --under scoring

Each mutant is a copy of `src` with one operator, constant, condition or statement changed. It
survives if its tests still pass; the survivors are listed. The same seed gives the same mutants.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "pennyweight"
sys.path[:0] = [str(ROOT / "tests")]

from test_mirror import covered_elsewhere, mirror  # noqa: E402

COMPARISONS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
ARITHMETIC = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*"}


class Mutant(NamedTuple):
    """One change: the characters from `start` to `end` of a module become `text`."""

    module: str
    line: int
    start: int
    end: int
    before: str
    text: str


def changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield what a node may become, with the part of it that changes."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield node, f"(({ast.unparse(left)}) {COMPARISONS[type(op)]} ({ast.unparse(right)}))"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
            if not isinstance(left, ast.Constant | ast.JoinedStr):
                yield node, f"(({ast.unparse(left)}) {ARITHMETIC[type(op)]} ({ast.unparse(right)}))"
        case ast.BoolOp(op=op, values=values):
            other = " or " if isinstance(op, ast.And) else " and "
            yield node, f"({other.join(f'({ast.unparse(value)})' for value in values)})"
        case ast.If(test=test) if ast.unparse(test) != "TYPE_CHECKING":
            yield test, f"(not ({ast.unparse(test)}))"
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield value, "None"
        case ast.Constant(value=bool() as value):
            yield node, str(not value)
        case ast.Constant(value=int() as value):
            yield node, str(value + 1)
        case ast.Expr(value=ast.Call()):
            yield node, "pass"


def mutants(module: str, source: bytes) -> Iterator[Mutant]:
    """Yield every mutant of a module."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in ast.walk(ast.parse(source)):
        for part, text in changes(node):
            start = starts[part.lineno - 1] + part.col_offset
            end = starts[(part.end_lineno or part.lineno) - 1] + (part.end_col_offset or 0)
            yield Mutant(module, part.lineno, start, end, source[start:end].decode(), text)


def sample(count: int, seed: int, under: str) -> list[Mutant]:
    """Draw mutants, each place of the source with the same chance."""
    places = []
    for path in sorted(SOURCE.rglob("*.py")):
        module = str(path.relative_to(SOURCE))
        if module.startswith(under):
            places += mutants(module, path.read_bytes())
    return random.Random(seed).sample(places, min(count, len(places)))


def survives(mutant: Mutant, tests: list[str], seconds: float) -> bool:
    """Whether the tests pass although the source is changed."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "src")
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        file = copy / "pennyweight" / mutant.module
        source = file.read_bytes()
        file.write_bytes(source[: mutant.start] + mutant.text.encode() + source[mutant.end :])
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def main() -> None:
    """Draw mutants, run their tests and list the survivors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--under", default="", help="Only modules whose path begins like this.")
    parser.add_argument("--all", action="store_true", help="Run all tests, not only the mirror.")
    parser.add_argument(
        "--seconds", type=float, default=600, help="A mutant that takes longer is killed."
    )
    options = parser.parse_args()
    elsewhere = covered_elsewhere()
    survivors = []
    drawn = sample(options.count, options.seed, options.under)
    for number, mutant in enumerate(drawn, 1):
        file = elsewhere.get(mutant.module, mirror(mutant.module))
        tests = ["tests"] if options.all or not (ROOT / file).exists() else [file]
        if survives(mutant, tests, options.seconds):
            survivors.append(mutant)
        sys.stderr.write(f"\r{number} of {len(drawn)}, {len(survivors)} survived")
    sys.stderr.write("\n")
    for mutant in sorted(survivors):
        sys.stdout.write(f"{mutant.module}:{mutant.line}: {mutant.before!r} → {mutant.text!r}\n")
    killed = len(drawn) - len(survivors)
    sys.stdout.write(f"{killed} of {len(drawn)} mutants were noticed.\n")


if __name__ == "__main__":
    main()
