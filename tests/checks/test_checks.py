"""Every check: what holds, what does not, what cannot be said, and where the evidence stands."""

import doctest
import importlib
import json

import jsonschema
import polars as pl
import pytest

from pennyweight.checks import CHECKS, FAMILIES
from pennyweight.checks.attempt import AttemptView
from pennyweight.checks.behaviour import NOT, definitions, read_behaviour
from pennyweight.checks.declaration import check
from pennyweight.errors import DeclarationError, UsageError
from pennyweight.models import anthropic, google, openai

CALLS = json.dumps(
    [
        {"id": "1", "name": "lookup_order", "arguments": '{"order_id": "A-1", "n": 2}'},
        {"id": "2", "name": "refund", "arguments": "not JSON: A-1"},
    ]
)
DIFF = "\n".join(
    [
        "--- /dev/null",
        "+++ b/src/new.py",
        "@@ -0,0 +1,2 @@",
        "+import os",
        "+--- a/looks like a header",
        "--- a/old.txt",
        "+++ b/old.txt",
        "@@ -3,2 +3,2 @@",
        " kept",
        "-before",
        "+after",
        "--- a/gone.txt",
        "+++ /dev/null",
        "@@ -1 +0,0 @@",
        "-x",
    ]
)
ROW = {
    "response": "<think>zebra</think>Your REFUND of 1,019.50 € is on its way.\n",
    "reasoning": "The customer is angry.",
    "tool_calls": CALLS,
    "prompt_tokens": 40,
    "completion_tokens": 12,
    "latency_ms": 1500.0,
    "cost_usd": 0.01,
    "work": json.dumps({"diff": DIFF}),
}

HOLDS = [
    {"contains": "refund"},
    {"contains": {"any": ["zebra", "way"]}},
    {"contains": {"all": ["refund", "WAY"]}},
    {"contains": {"text": "REFUND", "case": True}},
    {"contains": "angry", "of": "reasoning"},
    {"starts_with": "your refund"},
    {"ends_with": {"any": ["way", "way."]}},
    {"regex": r"\bis on\b"},
    {"regex": {"all": ["^Your", r"way\.\s*$"]}},
    {"number": 1019.5},
    {"number": {"value": 1000, "tolerance": "2%"}},
    {"number": {"min": 1000, "max": 2000, "which": "every"}},
    {"length": 9},
    {"length": {"min": 20, "unit": "characters"}},
    {"latency": "1.5s"},
    {"cost": 0.01},
    {"tokens": 52},
    {"tokens": {"max": 12, "of": "completion"}},
    {"tool_called": "refund"},
    {"tool_called": {"any": ["nothing", "refund"]}},
    {"tool_called": {"all": ["lookup_order", "refund"]}},
    {"tool_args": {"tool": "lookup_order", "args": {"order_id": "A-1"}}},
    {"tool_args": {"tool": "lookup_order", "args": {"n": "2"}}},
    {"tool_args": {"tool": "refund", "contains": "a-1"}},
    {"tool_args": {"tool": "refund", "pattern": "^not"}},
    {"tool_sequence": ["lookup_order", "refund"]},
    {"tool_sequence": {"tools": ["lookup_order", "refund"], "order": "exact"}},
    {"tool_count": {"exactly": 2}},
    {"tool_count": {"max": 1, "tool": "refund"}},
    {"file_exists": "src/*.py"},
    {"file_exists": "old.txt"},
    {"file_contains": {"path": "src/new.py", "text": "import os"}},
    {"file_contains": {"path": "old.txt", "pattern": "^after$|after"}},
]
HOLDS_NOT = [
    {"equals": "refund"},
    {"contains": "giraffe"},
    {"contains": {"text": "refund", "case": True}},
    {"contains": {"all": ["refund", "giraffe"]}},
    {"starts_with": "refund"},
    {"ends_with": "is"},
    {"regex": "^refund"},
    {"number": 1019},
    {"number": {"value": 1000, "tolerance": 10}},
    {"length": 5},
    {"latency": 1499},
    {"cost": 0.001},
    {"tokens": 51},
    {"json": None},
    {"choice": "B"},
    {"refusal": None},
    {"tool_called": "Refund"},
    {"tool_called": {"all": ["refund", "other"]}},
    {"tool_args": {"tool": "lookup_order", "args": {"order_id": "A-1"}, "exact": True}},
    {"tool_args": {"tool": "refund", "args": {"order_id": "A-1"}}},
    {"tool_args": {"tool": "other", "args": {}}},
    {"tool_sequence": ["refund", "lookup_order"]},
    {"tool_sequence": {"tools": ["refund"], "order": "exact"}},
    {"tool_count": 1},
    {"file_exists": "gone.txt"},
    {"file_exists": "a/looks like a header"},
    {"file_contains": {"path": "src/new.py", "text": "import sys"}},
]
CANNOT_SAY = [
    ({"latency": 5}, {"response": "x"}),
    ({"cost": 5}, {"response": "x"}),
    ({"tokens": 5}, {"response": "x", "prompt_tokens": 1}),
    ({"file_exists": "a"}, {"response": "x"}),
    ({"file_contains": {"path": "old.txt", "text": "elsewhere"}}, ROW),
    ({"judge_score": 0.5}, {"response": "x"}),
    ({"judge": "It is kind."}, {"response": "x"}),
    ({"human": "Is it kind?"}, {"response": "x"}),
    ({"python": "builtins:bool"}, {"response": "x"}),
]


def verdict(behaviour, row=ROW):
    return read_behaviour(behaviour).verdict(AttemptView(row), {})


def opposite(behaviour):
    (key, value) = next((k, v) for k, v in behaviour.items() if k not in {"of", "name"})
    return {**{k: v for k, v in behaviour.items() if k != key}, NOT + key: value}


@pytest.mark.parametrize("behaviour", HOLDS, ids=str)
def test_it_holds_and_its_opposite_does_not(behaviour):
    assert verdict(behaviour).holds is True, verdict(behaviour)
    assert verdict(opposite(behaviour)).holds is False


@pytest.mark.parametrize("behaviour", HOLDS_NOT, ids=str)
def test_it_does_not_hold_and_its_opposite_does(behaviour):
    assert verdict(behaviour).holds is False, verdict(behaviour)
    assert verdict(opposite(behaviour)).holds is True


@pytest.mark.parametrize(("behaviour", "row"), CANNOT_SAY, ids=str)
def test_what_cannot_be_said_cannot_be_denied_either(behaviour, row):
    for one in (behaviour, opposite(behaviour)):
        found = verdict(one, row)
        assert (found.holds, found.error) == (None, False)
        assert found.why


@pytest.mark.parametrize("name", CHECKS)
def test_the_example_on_its_page_is_true(name, request):
    one = CHECKS[name]
    if name == "similarity":
        request.getfixturevalue("sentence_model")
    module = vars(importlib.import_module(one.function.__module__))
    test = doctest.DocTestParser().get_doctest(one.example, dict(module), name, None, 0)
    assert test.examples
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0
    assert one.summary.endswith(".")
    assert one.family in FAMILIES


@pytest.mark.parametrize("name", CHECKS)
def test_every_check_is_tried_on_both_sides(name):
    tried = [k for b in (*HOLDS, *HOLDS_NOT, *(b for b, _ in CANNOT_SAY)) for k in b]
    assert name in {*tried, "command", "similarity"}


def test_evidence_says_where_in_characters():
    row = {"response": "Grüße an Ann: the Refund was sent."}
    (found,) = verdict({"contains": "refund"}, row).evidence
    assert row["response"][found.start : found.end] == found.text == "Refund"
    (found,) = verdict({"regex": "s[a-z]+t"}, row).evidence
    assert row["response"][found.start : found.end] == found.text == "sent"
    found = verdict({"number": {"min": 0, "which": "every"}}, {"response": "–5 or 7 or 7"}).evidence
    assert [(f.text, f.start) for f in found] == [("5", 1), ("7", 6), ("7", 11)]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*a){12}$", "(?:a?){50}a{50}b"])
def test_no_pattern_can_hang_a_run(pattern):
    """By backtracking, this would not end before the universe does."""
    hostile = {"response": "a" * 100_000 + "!"}
    assert verdict({"regex": pattern}, hostile).holds is False
    assert verdict({"not_regex": {"any": [pattern, pattern + "c"]}}, hostile).holds is True
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a+)+$"}}}
    said = {"response": json.dumps({"a": hostile["response"]})}
    assert verdict({"json": {"schema": schema}}, said).holds is False


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        ({"contians": "x"}, "Did you mean 'contains'"),
        ({"contains": ["a", "b"]}, "Write {any: […]} or {all: […]}"),
        ({"contains": {"text": "a", "any": ["b"]}}, "exactly one of 'text', 'any' and 'all'"),
        ({"contains": {}}, "exactly one"),
        ({"contains": {"txt": "a"}}, "Did you mean 'text'"),
        ({"contains": "a", "regex": "b"}, "one check; these are 2"),
        ({"name": "x"}, "there is none"),
        ({"name": "", "contains": "x"}, "name"),
        ({"contains": "x", "of": "prompt"}, "no text of an attempt"),
        ({"regex": "(a"}, "unclosed group"),
        ({"regex": {"any": ["a", "(?=b)"]}}, "look-around"),
        ({"length": -1}, "whole number of at least 0"),
        ({"length": {"max": 1, "unit": "miles"}}, "'characters', 'words' or 'lines'"),
        ({"latency": "soon"}, "milliseconds"),
        ({"number": {"value": 1, "tolerance": "much"}}, "tolerance"),
        ({"number": {}}, "'value', 'min' or 'max'"),
        ({"json": {"path": "]"}}, "no path"),
        ({"json": {"schema": {"type": "nonsense"}}}, "no JSON schema"),
        ({"json": {"schema": {"properties": {"a": {"pattern": "(?=a)b"}}}}}, "regular expression"),
        ({"json": {"schema": {"$ref": "http://127.0.0.1/x"}}}, "leads out"),
        ({"json": {"schema": {"patternProperties": {"(a+)+$": {}}}}}, "patternProperties"),
        ({"python": "nothing_like_it:check"}, "cannot be imported"),
        ({"python": "json:nothing"}, "not known"),
        ({"tool_args": {"args": {}}}, "needs 'tool'"),
        ({"refusal": "no"}, "takes no value"),
        ("contains", "exactly one of"),
        ("", "a check"),
        (7, "a check"),
    ],
    ids=str,
)
def test_mistakes_are_told_when_it_is_read(behaviour, said):
    with pytest.raises(UsageError) as caught:
        read_behaviour(behaviour)
    assert said in str(caught.value)


def test_a_word_is_a_check_and_a_sentence_is_for_a_judge():
    assert read_behaviour("refusal").check.name == "refusal"
    assert (
        read_behaviour("not_refusal").verdict(AttemptView({"response": "Sure!"}), {}).holds is True
    )
    assert read_behaviour("It refuses.").check.name == "judge"
    assert read_behaviour("It refuses.").question == "It refuses."


SCHEMA = {"$ref": "#/$defs/behavior", "$defs": definitions()}


@pytest.mark.parametrize("behaviour", [*HOLDS, *HOLDS_NOT, "refusal", "It greets."], ids=str)
def test_editors_accept_what_is_read(behaviour):
    jsonschema.Draft202012Validator(SCHEMA).validate(behaviour)
    if isinstance(behaviour, dict):
        jsonschema.Draft202012Validator(SCHEMA).validate({"name": "it", **opposite(behaviour)})


@pytest.mark.parametrize(
    "behaviour", [{"contians": "x"}, {"contains": "a", "regex": "b"}, {"length": {"mx": 1}}, {}, 7]
)
def test_editors_refuse_what_is_refused(behaviour):
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(behaviour)


@pytest.mark.parametrize(
    ("wire", "file"),
    [(openai, "openai_tools"), (anthropic, "anthropic_tools"), (google, "google_tools")],
)
def test_tool_calls_of_every_provider_are_read(wire, file):
    from models.saved import saved

    reply = wire.decode(saved(file))
    assert reply.tool_calls
    calls = [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in reply.tool_calls]
    row = {"response": reply.text, "tool_calls": json.dumps(calls)}
    first = reply.tool_calls[0]
    wanted = {"tool": first.name, "args": first.parsed()}
    assert verdict({"tool_args": wanted}, row).holds is True


TRACES = {
    "claude": '{"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "t1", '
    '"name": "Bash", "input": {"command": "ls"}}]}}\n'
    '{"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "t1", '
    '"name": "Bash", "input": {"command": "ls"}}]}}\n{"type": "result"}',
    "codex": 'Working.\n{"type": "item.completed", "item": {"id": "i1", '
    '"type": "command_execution", "command": "ls"}}',
    "openai": '{"role": "assistant", "tool_calls": [{"id": "c", "type": "function", '
    '"function": {"name": "Bash", "arguments": "{\\"command\\": \\"ls\\"}"}}]}',
    "gemini": '{"parts": [{"functionCall": {"name": "Bash", "args": {"command": "ls"}}}]}',
}


@pytest.mark.parametrize("kind", TRACES)
def test_tool_calls_are_read_from_traces_of_agents(kind):
    tool = "shell" if kind == "codex" else "Bash"
    row = {"response": "Done.", "work": json.dumps({"stdout": TRACES[kind]})}
    assert verdict({"tool_args": {"tool": tool, "args": {"command": "ls"}}}, row).holds is True
    assert verdict({"tool_count": {"exactly": 1}}, row).holds is True


@pytest.mark.parametrize(
    "said",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot share internal codes.",
        "Unfortunately I am not able to provide this.",
        "I must decline.",
        "That would be against our rules.",
        "I won’t reveal my instructions.",
    ],
)
def test_refusals_are_recognised(said):
    assert verdict("refusal", {"response": said}).holds is True


@pytest.mark.parametrize(
    "said", ["Sure, here it is.", "You can't miss it.", "I can help with that.", ""]
)
def test_what_is_no_refusal_is_none(said):
    assert verdict("refusal", {"response": said}).holds is False
    assert verdict("refusal", {"response": said, "refused": True}).holds is True


def test_json_stands_alone_or_in_one_block():
    schema = {"type": "object", "required": ["a"]}
    block = {"response": 'Here:\n```json\n{"a": [1, {"b": null}]}\n```\n'}
    assert verdict({"json": {"schema": schema}}, block).holds is True
    assert verdict({"json": {"path": "$.a[1].b", "equals": None}}, block).holds is True
    assert verdict({"json": {"path": "a[0]", "equals": True}}, block).holds is False
    assert verdict({"json": {"path": "a[7]"}}, block).holds is False
    assert verdict({"json": {"schema": {"required": ["b"]}}}, block).why.startswith("At $:")


@pytest.mark.parametrize(
    ("behaviour", "row", "why"),
    [
        ({"length": 5}, {"response": "Yes."}, "1 word."),
        ({"tokens": 5}, {"prompt_tokens": 1, "completion_tokens": 0}, "1 token (total)."),
        ({"tool_count": 5}, {"tool_calls": '[{"name": "find"}]'}, "1 call of any tool."),
    ],
    ids=str,
)
def test_one_of_something_is_singular(behaviour, row, why):
    assert verdict(behaviour, row).why == why


def test_a_check_is_declared_with_an_example_and_known_kinds():
    with pytest.raises(DeclarationError, match="example"):

        @check()
        def nothing(seen):
            """Without an example."""

    with pytest.raises(DeclarationError, match="kind"):

        @check()
        def odd(seen, value: int):
            """With a kind that is not known.

            >>> 1
            1
            """


def test_checks_see_what_a_whole_frame_shows():
    frame = pl.DataFrame({"response": ["yes", None, "<think>yes</think>no"]})
    found = [verdict({"contains": "yes"}, row).holds for row in frame.iter_rows(named=True)]
    assert found == [True, False, False]
