"""Whether the context supports the sentences of an answer."""

from __future__ import annotations

import polars as pl

from pennyweight.define import measure
from pennyweight.text.support import TAU, Support, support
from pennyweight.text.thinking import spoken

_SCORE = "$.usr_rag"
"""Where the column of scores has the score that takes the place of the screen."""
_CHECKED = pl.Struct(dict.fromkeys(Support._fields, pl.Int64))


@measure(spec="Zeta Reason 8")
def support_check(
    context: pl.Expr, response: pl.Expr, answer: pl.Expr, *, tau_support: float = TAU
) -> pl.Expr:
    """The sentences of the reply, how many of them the context does not support, and citations.

    It is a screen by letters, numbers and quotations, not a verdict on meaning. Null without a
    context, or without a reply.

    >>> evaluate(support_check, context=["The mill opened in 1887."], answer=["It opened in 1890."])
    [{'sentences': 1, 'unsupported': 1, 'citations': 0, 'right_citations': 0, 'cited': 0}]
    """

    def check(rows: pl.Series) -> pl.Series:
        known = rows.struct.field("context").is_not_null() & rows.struct.field("said").is_not_null()
        if not known.any():
            return pl.Series(rows.name, [None], dtype=_CHECKED).new_from_index(0, len(rows))
        found: list[dict[str, int] | None] = [None] * len(rows)
        for place in known.arg_true():
            row = rows[place]
            found[place] = support(row["context"], row["said"], tau_support)._asdict()
        return pl.Series(rows.name, found, dtype=_CHECKED)

    said = pl.coalesce(spoken(response), answer)
    both = pl.struct(context.alias("context"), said.alias("said"))
    return both.map_batches(check, return_dtype=_CHECKED, is_elementwise=True)


@measure(unit="sentences", spec="Zeta Reason 8")
def answer_sentences(support_check: pl.Expr) -> pl.Expr:
    """The number of sentences in the reply that are checked against the context.

    >>> evaluate(answer_sentences, context=["The mill is old."], answer=["The mill is old. Yes."])
    [1]
    """
    return support_check.struct.field("sentences")


@measure(unit="sentences", spec="Zeta Reason 8")
def unsupported_sentences(support_check: pl.Expr) -> pl.Expr:
    """The number of sentences in the reply that the context does not support.

    >>> evaluate(unsupported_sentences, context=["The mill is old."], answer=["It has 3 floors."])
    [1]
    """
    return support_check.struct.field("unsupported")


@measure(spec="Pennyweight; Zeta Reason 8")
def support_verdict(support_check: pl.Expr, scores: pl.Expr) -> pl.Expr:
    """The `unsupported` ones of the `sentences`: by a scorer named `usr_rag`, else by the screen.

    A record that such a scorer gave a share from 0 to 1 counts as one sentence, unsupported by that
    share, and is `scored`.

    >>> evaluate(support_verdict, context=["The mill is old."] * 2, answer=["It has 3 floors."] * 2,
    ...          scores=[None, '{"usr_rag": 0.25}'])[1]
    {'unsupported': 0.25, 'sentences': 1.0, 'scored': True}
    """
    text = scores.str.json_path_match(_SCORE).replace({"true": "1", "false": "0"})
    given = text.cast(pl.Float64, strict=False)
    given = pl.when(given.is_between(0, 1)).then(given)
    scored, of_screen = given.is_not_null(), support_check.struct.field
    parts = pl.struct(
        given.fill_null(of_screen("unsupported")).alias("unsupported"),
        pl.when(scored).then(1.0).otherwise(of_screen("sentences")).alias("sentences"),
        scored.alias("scored"),
    )
    return pl.when(scored | support_check.is_not_null()).then(parts)
