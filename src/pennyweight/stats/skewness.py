"""Intervals of means of skewed values, such as costs and times, over arrays.

The interval is Student's, with each end moved by the skewness of the mean. What a sample shows of a
long tail is too little, so an amount that cannot fall below 0 is taken to be at least as skewed as
its relative error suggests. docs/decisions/skewed-means.md says where the constants come from.
"""

from __future__ import annotations

import numpy as np

from pennyweight.stats.interval import Array, Floats, bounded_interval, t_quantile, z_quantile

Range = tuple[float | None, float | None]

SEEN = 2.0
"""A sample understates the skewness of its population; it is multiplied by this."""
LONG_TAIL = 6.0
"""The least skewness of a mean with one bound, as a multiple of its relative error."""
BOUNDED_TAIL = 2.5
"""The same if there is a second bound, which limits the tail."""
LOGARITHM = 1.5
"""The skewness, in relative errors, at which an end is that of an interval of the logarithm."""
MAX_EXPONENT = 1.55
"""No end is moved by more than this exponent."""
TOO_SKEWED = 0.6
"""Beyond this skewness of a mean, a few tasks decide it and the interval may be too narrow."""
ROUNDING = 1e-9
"""An error below this share of the mean is a rounding error."""


def mean_interval(
    mean: Array,
    error: Array,
    skew: Array,
    clusters: Array,
    confidence: float,
    bounds: Range = (None, None),
) -> tuple[Floats, Floats]:
    """Return the interval of a mean; NaN with fewer than two clusters.

    `skew` is the skewness of the mean: that of the clusters' values divided by the square root of
    their number. `bounds` is the range of the values. If all values are equal, amounts get the
    error of two more tasks, one at the bound and one as far above; scores get Wilson's interval;
    values without a bound get none.

    >>> one = [np.array([x]) for x in (10.0, 2.0, 0.3, 20.0)]
    >>> low, high = mean_interval(*one, 0.95, (0, None))
    >>> round(low.item(), 2), round(high.item(), 2)
    (6.54, 20.02)
    """
    lower, upper = bounds
    below = None if lower is None else np.maximum(mean - lower, 0.0)
    above = None if upper is None else np.maximum(upper - mean, 0.0)
    equal = ~(error > ROUNDING * np.abs(mean))
    room = above if below is None else below
    if room is None:
        spread = np.where(equal, np.nan, error)
    elif below is None or above is None:
        spread = np.where(equal, room * np.sqrt(2 / ((clusters + 1) * (clusters + 2))), error)
    else:
        spread = error
    bent = np.where(equal | ~np.isfinite(skew), 0.0, skew)
    t, z = t_quantile(clusters, confidence), z_quantile(confidence)
    high = mean + t * spread * _bend(z, _tail(bent, spread, clusters, below, above))
    low = mean - t * spread * _bend(z, _tail(-bent, spread, clusters, above, below))
    if below is not None and above is not None and lower == 0 and upper == 1:
        alike = bounded_interval(mean, error, clusters, confidence)
        low, high = (np.where(equal, a, b) for a, b in zip(alike, (low, high), strict=True))
    there = clusters > 1
    low = np.where(there, low if lower is None else np.maximum(low, lower), np.nan)
    return low, np.where(there, high if upper is None else np.minimum(high, upper), np.nan)


def _tail(
    skew: Floats, error: Floats, clusters: Array, behind: Floats | None, ahead: Floats | None
) -> Floats:
    """Return the skewness to allow for at an end, with the distances to the bounds.

    An end with nothing but a bound ahead of it is moved inwards by the skewness seen, at most to
    that of the logarithm. Two bounds limit how skewed the values between them can be.
    """
    seen: Floats = np.where(skew > 0, SEEN * skew, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        if behind is None:
            if ahead is None:
                return seen
            inwards = np.maximum(skew, -LOGARITHM * error / ahead)
            return np.where(skew > 0, seen, np.nan_to_num(inwards))
        if ahead is None:
            return np.fmax(seen, LONG_TAIL * error / behind)
        most = ahead / (error * clusters) - error / ahead
        return np.fmax(0.0, np.fmin(np.fmax(seen, BOUNDED_TAIL * error / behind), most))


def _bend(z: float, skew: Floats) -> Floats:
    """Return by how much an end moves outwards: (eˣ − 1) / x, with x = ⅔ · z · skewness."""
    x = np.clip(2 / 3 * z * skew, -MAX_EXPONENT, MAX_EXPONENT)
    x = np.where(np.abs(x) < 1e-9, 1e-9, x)
    factor: Floats = np.expm1(x) / x
    return factor
