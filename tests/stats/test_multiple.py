import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from pennyweight.stats.multiple import holm


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_holm_is_that_of_statsmodels(count):
    p_values = (np.random.default_rng(count).random(count) ** 3).tolist()
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])


def test_equal_and_no_p_values():
    assert holm([0.02, 0.02, 0.9]) == pytest.approx([0.06, 0.06, 0.9])
    assert holm([]) == []
