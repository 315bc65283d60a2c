"""A template ends with a clear error, whatever it asks for, before it takes memory or time."""

import json
import subprocess
import sys

import pytest

from pennyweight.suite.templates import TemplateError, render

DOUBLED = (
    "{% set ns = namespace(x=START) %}{% for i in range(99) %}{% set ns.x = STEP %}{% endfor %}"
)
LISTS = DOUBLED.replace("START", "['a']").replace("STEP", "[ns.x, ns.x]")
LONG = "('a' * 1000000)"
STEPS, SECONDS = "characters or steps", "takes longer than 5 seconds"
BOMBS = {
    "{{ 'a' * 10**10 }}": STEPS,
    "{{ 'a'.center(9**11) }}": "center of more than 1,000,000 is not allowed",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}": "calls itself endlessly",
}
SLOW = {
    "{% macro m(n) %}{% if n %}{{ m(n-1) ~ m(n-1) }}{% endif %}{% endmacro %}{{ m(60) }}": SECONDS,
    "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}": SECONDS,
    LISTS + "{{ ns.x }}": SECONDS,
}
OTHERS = {
    "{{ 'a'|center(99999999999) }}": "center",
    "{{ 2**99999999 }}": "10,000 bits",
    "{{ '%99999999999d' % 1 }}": "wider than 1,000,000",
    "{{ '%*d' % (10**10, 1) }}": "wider",
    "{{ '{:99999999999}'.format(1) }}": "wider",
    "{{ '{:{}}'.format(1, 10**10) }}": "wider",
    "{{ '%99999999999d'|format(1) }}": "wider",
    "{{ LONG.replace('a', LONG) }}": STEPS,
    "{{ LONG|replace('a', LONG) }}": STEPS,
    "{{ LONG.translate({97: LONG}) }}": STEPS,
    "{{ LONG.join(range(100000)|map('string')) }}": STEPS,
    "{{ range(100000)|map('string')|join(LONG) }}": STEPS,
    "{{ [LONG] * 100000 }}": STEPS,
    "{{ (LONG + '\\n')|indent(1000000) }}": STEPS,
    "{{ lipsum(n=10**9) }}": "more than 1,000",
    "{{ (1).to_bytes(10000000000) }}": "to_bytes",
    "{{ 5|round(-999999999) }}": "round",
    "{{ ((range(100000)|list,) * 100000)|sum(start=[]) }}": "sum adds only numbers",
    "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}": "calls itself endlessly",
    "{% set x %}{% for i in range(100000) %}{{ 'a' * 10000 }}{% endfor %}{% endset %}": STEPS,
    DOUBLED.replace("START", "'a'").replace("STEP", "ns.x ~ ns.x"): STEPS,
    DOUBLED.replace("START", "'a'").replace("STEP", "ns.x + ns.x"): STEPS,
}  # fmt: skip


RUN = """
import atexit, sys
from pennyweight.cli import main

status = lambda: next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
atexit.register(lambda: print(status(), file=sys.stderr, end=""))
sys.argv = ["pennyweight", "run", "suite.json"]
main()
"""
"""Runs the suite, and prints the peak of the process's memory at the end."""


@pytest.mark.parametrize(("prompt", "why"), [*BOMBS.items(), *list(SLOW.items())[:1]])
def test_a_suite_with_a_bomb_is_refused_within_1_gb_and_20_s(tmp_path, prompt, why):
    tasks = [{"id": str(i), "input": "x"} for i in range(50)]
    suite = {"suite": "s", "tasks": tasks, "prompt": prompt, "subjects": ["python:os:getcwd"]}
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=20, check=False
    )
    *lines, peak = done.stderr.splitlines()
    err = "\n".join(lines)
    assert (done.returncode, done.stdout) == (2, "")
    assert why in err
    assert "line 1" in err
    assert "Traceback" not in err
    assert int(peak.split()[1]) < 1_000_000  # kB


@pytest.mark.parametrize(("source", "why"), OTHERS.items())
def test_what_a_template_makes_is_limited(source, why):
    with pytest.raises(TemplateError, match=why):
        render(source.replace("LONG", LONG), {})


@pytest.mark.parametrize(("source", "why"), list(SLOW.items())[1:])
def test_the_time_of_a_template_is_limited(monkeypatch, source, why):
    monkeypatch.setattr("pennyweight.suite.template_limits.MAX_SECONDS", 0.2)
    with pytest.raises(TemplateError, match=why.replace("5", "0.2")):
        render(source, {})


def test_what_people_write_is_not_limited():
    loop = "{% for x in xs %}{{ loop.index }}/{{ loop.length }} {{ x|upper }}{% endfor %}"
    assert render(loop, {"xs": ["a", "b"]}) == "1/2 A2/2 B"
    values = {"n": 5_000_000, "xs": ["a", "b"], "d": {"a": [1]}, "none": None}
    for source, text in {
        "{{ '{:,}'.format(n) }} {{ n * 3 }}": "5,000,000 15000000",
        "{{ missing|default(9999999) }}{{ none }}": "9999999",
        "{{ 'Order 12345678: {}'.format(n) }} {{ '%d: 12345678' % n }}": (
            "Order 12345678: 5000000 5000000: 12345678"
        ),
        "{{ [n, n]|sum }} {{ xs|join(', ') }} {{ d|tojson }}": '10000000 a, b {"a": [1]}',
        "{{ xs ~ 1 }} {{ '%5.2f' % 3.14159 }} {{ '-' * 5 }}": "['a', 'b']1  3.14 -----",
        "{% for k, v in d.items() %}{{ k }}={{ v }}{% else %}none{% endfor %}": "a=[1]",
    }.items():
        assert render(source, values) == text
    document = "word " * 1_000_000
    assert len(render("{{ text|trim|replace('word', 'words') }}", {"text": document})) > 5_999_000
