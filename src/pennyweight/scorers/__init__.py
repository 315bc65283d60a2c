"""Scorers: functions that give a record a score, a verdict, a label, or several of them.

A scorer is code of the user. It runs on stored records, and its scores are stored with the run:
scoring, comparing and reporting only read them. The names below are ready-made.
"""

from pennyweight.scorers.judged import (
    answer_relevancy,
    context_precision,
    context_recall,
    faithfulness,
    preference,
)
from pennyweight.scorers.text import bleu, chrf, exact_match, rouge_l, token_f1
from pennyweight.scorers.values import json_similarity, numeric_closeness

__all__ = [
    "answer_relevancy",
    "bleu",
    "chrf",
    "context_precision",
    "context_recall",
    "exact_match",
    "faithfulness",
    "json_similarity",
    "numeric_closeness",
    "preference",
    "rouge_l",
    "token_f1",
]
