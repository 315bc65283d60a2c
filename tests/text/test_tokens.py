"""Tokens: the quick way of counting says the same as the plain one."""

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from pennyweight.text.tokens import tokens
from reference import tokens as plain

blanks = st.sampled_from(
    [" ", "\n", "  ", " \n", "\n\n", "   ", "\t", "\r\n", "\u00a0", "\x1c", "\u2003"]
)
pieces = st.lists(blanks | st.sampled_from(["a", "bc", "é", "d."]), max_size=10)


@settings(max_examples=300)
@given(st.lists(pieces.map("".join), min_size=1, max_size=30))
def test_tokens_agree_with_the_reference(texts):
    found = pl.DataFrame({"a": texts}).select(tokens(pl.col("a"))).to_series().to_list()
    assert found == [plain(t) for t in texts]


def test_missing_stays_missing():
    frame = pl.DataFrame({"a": [None, "", "x"]}, schema={"a": pl.String})
    assert frame.select(tokens(pl.col("a"))).to_series().to_list() == [None, 0, 1]
