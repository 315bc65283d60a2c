import csv
import html
import io
import re

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pennyweight.render.plain import (
    clean,
    csv_table,
    markdown_code,
    markdown_table,
    markdown_text,
    one_line,
    without_ci_commands,
    wrapped,
)

texts = st.text(max_size=20)


def test_control_sequences_are_taken_out_whole() -> None:
    assert clean("a\x1b[1;31mb\x1b[0mc") == "abc"
    assert clean("a\x1b]8;;http://evil\x07link\x1b]8;;\x1b\\b") == "alinkb"
    assert clean("a\x9b2Jb\x1bcd\x00\x07\x08\x7f") == "a2Jbcd"
    assert clean("a\u202eb\u2066c\u2069\u200fd") == "abcd"
    assert clean("a\tb\nc — 你好 é 😀") == "a\tb\nc — 你好 é 😀"


@given(texts | st.text(alphabet="\x1b[]\x07\\;m0a\x9b\u202e", max_size=12))
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    cleaned = clean(text)
    assert not set(cleaned) & {"\x1b", "\x9b", "\x07", "\x00", "\r", "\u202e", "\u2066"}
    assert clean(cleaned) == cleaned


@given(texts, st.integers(2, 30))
def test_one_line_is_one_and_short(text: str, width: int) -> None:
    line = one_line(text, width)
    assert len(line) <= width
    assert len(line.splitlines()) <= 1


def test_a_number_with_a_sign_is_no_formula() -> None:
    numbers = ["-5.0", "+1.5", "-3e5", "-1,000", "-.5", "-5%", "+$3"]
    assert csv_table([[n] for n in numbers]).replace('"', "").split() == numbers
    for formula in ("-5+cmd", "-A1", "+SUM(1)", "-1-2", "=-5", "-", "+-5", "-5\n=1", "-$A$1"):
        assert csv_table([[formula]]).strip('"').startswith("'"), formula


cells = st.text(alphabet="=+-@\t\r\n,\"'ab é", max_size=6) | st.floats(allow_nan=False) | st.none()


@given(st.lists(st.lists(cells, min_size=2, max_size=2), min_size=1, max_size=4))
def test_csv_reads_back_and_runs_nothing(rows: list[list[object]]) -> None:
    read = list(csv.reader(io.StringIO(csv_table(rows), newline=""), strict=True))
    assert len(read) == len(rows)
    for row, found in zip(rows, read, strict=True):
        for cell, text in zip(row, found, strict=True):
            if isinstance(cell, str):
                assert text in {cell, f"'{cell}"}
                assert not text.startswith(("=", "+", "-", "@", "\t", "\r"))
            else:
                assert text == ("" if cell is None else repr(cell))


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=3))
def test_markdown_rows_stay_rows(rows: list[tuple[str, str]]) -> None:
    table = markdown_table([("a", "b"), *rows], right=(1,))
    lines = table.split("\n")
    assert len(lines) == len(rows) + 3
    for line in lines[:-1]:
        bare = line.replace("\\\\", "").replace("\\|", "")
        assert bare.count("|") == 3
        assert "<" not in bare.replace("\\<", "").replace("<!-- -->", "")


def test_nothing_in_markdown_is_alive() -> None:
    parse = MarkdownIt("gfm-like", {"linkify": False}).render
    for text in (
        "@team",
        "see #12",
        "https://evil.example/x",
        "www.evil.example",
        "GH-7",
        "~~no~~",
    ):
        shown = parse(markdown_text(text))
        assert not re.search(r"<(a|s)\b|@\w|#\d|GH-\d|://|www\.", shown), shown
        assert re.sub(r"<!-- -->|</?p>|\s+$", "", shown) == text
        assert parse(markdown_code(text)) == f"<p><code>{text}</code></p>\n"


@given(st.text(alphabet="`|a \\<@", min_size=1, max_size=12))
def test_code_holds_whatever_it_is_given(text: str) -> None:
    parse = MarkdownIt("gfm-like", {"linkify": False}).render
    flat = " ".join(text.split())
    inside = re.fullmatch(r"<p><code>(.*)</code></p>\n", parse(markdown_code(text)))
    assert inside
    assert html.unescape(inside[1]).strip() == flat
    cell = parse(f"| a |\n| --- |\n| {markdown_code(text, table=True)} |\n")
    assert cell.count("<td>") == 1


def test_no_line_is_a_command_of_a_ci_runner() -> None:
    text = "a::b\n::error::x\n \t::set-output name=a::b\nx ##[add-mask]y\n"
    shown = without_ci_commands(text)
    assert shown.splitlines()[0] == "a::b"
    assert not [line for line in shown.splitlines() if line.strip().startswith("::")]
    assert "##[" not in shown


@given(st.integers(20, 60))
def test_no_line_begins_with_a_unit(width: int) -> None:
    text = "Of 12 tasks, 80 % took 12 ms, 2 min 5 s or 3.5 points more than the well-known others."
    lines = wrapped(text, "  ", width)
    assert " ".join(line.strip() for line in lines) == text
    assert all(len(line) <= width and line.startswith("  ") for line in lines)
    assert not any(line.strip().startswith(("%", "ms", "min", "points", "known")) for line in lines)
