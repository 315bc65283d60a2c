import numpy as np
import pytest

from pennyweight.stats.attempt_noise import Tries


def test_noise_is_the_pooled_variance_of_each_unit_averaged_by_task():
    tries = Tries(
        values=np.array([1.0, 2.0, 4.0, 10.0, 20.0, 30.0, 5.0, 5.0, 8.0]),
        first=np.array([1, 2, 1]),
        second=np.array([2, 1, 2]),
        tasks=np.array([0, 0, 1]),
    )
    units = [2.0 / 1 * (1 + 1 / 2), 50.0 / 1 * (1 / 2 + 1), 4.5 / 1 * (1 + 1 / 2)]
    assert tries.noise == pytest.approx([(units[0] + units[1]) / 4, units[2]])
