"""Probes: a suite that asks a run's tasks again, after the beginning of each chain of thought.

A probe is an ordinary suite with a tier for each point, so its answers are stored, limited and
resumed like those of any run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from pennyweight.errors import UsageError
from pennyweight.metrics.probes import POINTS
from pennyweight.models.providers import PROVIDERS
from pennyweight.store.store import Store, StoredRun
from pennyweight.suite.plan import Attempt, settings
from pennyweight.suite.values import LoadedSuite, Subject
from pennyweight.text.extraction import MARKER, AnswerRule
from pennyweight.text.extraction import answer as find_answer
from pennyweight.text.extraction import cot as find_cot

_CONTINUE = {"continue_final_message": True, "add_generation_prompt": False}
_FORMATS: Mapping[str, Mapping[str, Any]] = {
    **{n: {} for n in ("local", "llamacpp", "ollama", "lmstudio", "openrouter", "anthropic")},
    "vllm": _CONTINUE,
    "sglang": _CONTINUE,
}
"""The providers that continue an assistant's message, with the fields that ask for it."""
_NOT_SENT = frozenset(
    {"thinking", "reasoning_effort", "tools", "schema", "response_format", "stop"}
)
"""Settings that would keep a model from answering at once."""
_COLUMNS = frozenset(
    {"subject", "tier", "task_id", "attempt", "status", "messages", "response", "reasoning"}
)
_START = "{{ opening }}{{ chain[:cut_POINT] }}{{ closing }}"
_WORD = re.compile(r"\S+\s*")


def written_probe(run: StoredRun, suite: LoadedSuite, store: Store) -> Path:
    """Write the suite of a probe into the current folder: a run that is resumed reads it again."""
    text = json.dumps(probe_suite(run, suite, store), indent=1, ensure_ascii=False)
    mark = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=3).hexdigest()
    file = Path(f"truncation-{run.id}-{mark}.json")
    try:
        file.write_text(text, encoding="utf-8", errors="surrogatepass")
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}.") from error
    return file


def probe_suite(run: StoredRun, suite: LoadedSuite, store: Store) -> dict[str, Any]:
    """Return the suite that asks for an answer after 0, 25, … 100 % of each chain of thought.

    `suite` is the run's own, narrowed to one subject and one tier. Each task continues its first
    attempt that has a chain of thought.
    """
    from yaml import safe_load  # noqa: PLC0415 - only probes need it here

    if len(suite.subjects) > 1 or len(suite.tiers) > 1:
        names = {
            "--subject": [subject.name for subject in suite.subjects],
            "--tier": [tier.name for tier in suite.tiers],
        }
        more = [f"{option} {'|'.join(of)}" for option, of in names.items() if len(of) > 1]
        raise UsageError(f"A probe is about one subject in one tier; name it: {', '.join(more)}.")
    (subject,), (tier,) = suite.subjects, suite.tiers
    continued = _continued(subject)
    tasks = list(_tasks(run, suite, store))
    if not tasks:
        raise UsageError(
            f"Run {run.id} has no chain of thought to cut: its replies have no reasoning, and "
            "nothing stands before their final answers."
        )
    given = safe_load(run.text) or {}
    prefix, rule = _forced(suite.answer, [task["target"] for task in tasks if "target" in task])
    options = settings(suite, Attempt(suite.tasks[0], subject, tier, 1))
    options = {name: value for name, value in options.items() if name not in _NOT_SENT}
    extra = {**(options.get("extra") or {}), **continued}
    model: dict[str, Any] = {"name": subject.name, "model": subject.model}
    for name in ("base_url", "key_env", "priced_as"):
        model |= {name: value} if (value := getattr(subject, name)) else {}
    return {
        "suite": f"{suite.name}: truncation of {run.id}",
        "tasks": tasks,
        "subjects": [model],
        "tiers": {
            f"probe@{point}%": {
                "messages": [
                    {"role": "user", "content": "{{ input }}"},
                    {"role": "assistant", "content": _START.replace("POINT", str(point)) + prefix},
                ]
            }
            for point in POINTS
        },
        "answer": {rule.kind: rule.value} if rule.value else rule.kind,
        "settings": {**options, **({"extra": extra} if extra else {})},
        "prices": {n: p for n, p in (given.get("prices") or {}).items() if n in model.values()},
        **{name: given[name] for name in ("match", "limits", "confidence") if name in given},
        **({} if suite.seed is None else {"seed": suite.seed}),
    }


def _forced(own: AnswerRule, targets: list[Any]) -> tuple[str, AnswerRule]:
    """Return the text that asks for the answer, and the rule that finds it in what follows.

    It is the run's own rule, except where that looks for what the text already has.
    """
    if own.kind == "json":
        return "```json\n", own
    if own.kind == "boxed":
        inside = r"(?s)\A(?:.*\\boxed\{)?([^\n]*)\}"
        return f"{MARKER} \\boxed{{", AnswerRule("regex", inside)
    if own.kind != "marker":
        bare = pl.Series([str(target) for target in targets], dtype=pl.String)
        alone = pl.select(find_answer(pl.lit(bare), own)).to_series().count() > 0
        if alone or own.kind not in {"regex", "last_regex"}:
            return MARKER, own
    marker = own.value if own.kind == "marker" else MARKER
    line = rf"(?s)\A(?:.*{re.escape(marker)})?\s*[*`]*([^\n]*?)[*`.\s]*(?:\n|\z)"
    return marker, AnswerRule("regex", line)


def _continued(subject: Subject) -> Mapping[str, Any]:
    """Return the fields that make a server continue a message; refuse a server that cannot."""
    provider = subject.model.partition("/")[0]
    if subject.agent is None:
        own = subject.base_url and provider in PROVIDERS and PROVIDERS[provider].wire == "openai"
        if own or provider in _FORMATS:
            return _CONTINUE if own else _FORMATS[provider]
    raise UsageError(
        f"{subject.name} cannot be probed: a probe sends the beginning of a reply, and "
        f"{subject.model} does not continue it. Models that do: local/…, Anthropic's before 4.6, "
        "those of OpenRouter, and of your own servers (vLLM, SGLang, llama.cpp, Ollama, LM Studio, "
        "or any base_url in OpenAI's format)."
    )


def _tasks(run: StoredRun, suite: LoadedSuite, store: Store) -> Iterator[dict[str, Any]]:
    """Yield each task with its messages, its chain of thought and the places to cut it."""
    known = {task.id: task for task in suite.tasks}
    (subject,), (tier,) = suite.subjects, suite.tiers
    done: set[str] = set()
    for frame in store.records(run.id, _COLUMNS):
        own = frame.filter(
            pl.col("subject") == subject.name,
            pl.col("tier") == tier.name,
            pl.col("status").ne_missing("error"),
        )
        chain = find_cot(pl.col("response"), pl.col("reasoning"), suite.answer)
        rows = own.with_columns(chain.alias("chain")).drop_nulls("chain")
        for row in rows.sort("task_id", "attempt").iter_rows(named=True):
            task, text = known.get(row["task_id"]), row["chain"].strip()
            if task is None or task.turns or not text or task.id in done:
                continue
            done.add(task.id)
            thought = row["reasoning"] is not None
            ends = [0, *(word.end() for word in _WORD.finditer(text))]
            yield {
                "id": task.id,
                "input": [
                    {"role": t["role"], "content": t["content"]}
                    for t in json.loads(row["messages"])
                ],
                **({} if task.target is None else {"target": task.target}),
                **({} if task.category is None else {"category": task.category}),
                **({} if task.capability is None else {"capability": task.capability}),
                "chain": text,
                "opening": "<think>\n" if thought else "",
                "closing": "\n</think>\n\n" if thought else "\n\n",
                **{f"cut_{p}": ends[(len(ends) - 1) * p // 100] for p in POINTS},
            }
