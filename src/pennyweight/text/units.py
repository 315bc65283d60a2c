"""Units of numbers in running text: which of them are of one dimension."""

from __future__ import annotations

Units = frozenset[tuple[str, str]]
"""Units, each with its dimension."""

NONE: Units = frozenset()
DIMENSIONS: dict[str, Units] = {
    word: frozenset({(dimension, unit)})
    for dimension, units in {
        "time": """second/sec/s minute/min hour/hr/h day week month year decade""",
        "length": """inch/inches foot/feet/ft yard/yd mile/mi mm/millimeter/millimetre
            cm/centimeter/centimetre meter/metre/m km/kilometer/kilometre""",
        "mass": "mg/milligram gram/g kg/kilogram ounce/oz pound/lb ton",
        "volume": """cup pint quart gallon liter/litre/l ml/milliliter/millilitre tablespoon
            teaspoon""",
        "money": "cent/penny/pennies dollar nickel dime",
    }.items()
    for names in units.split()
    for unit in [names.partition("/")[0]]
    for name in names.split("/")
    for word in ([name, name + "s"] if len(name) > 1 else [name])
}
PER = frozenset({"per", "a", "an", "each", "every"})
"""A unit after one of these words is what a rate is per."""


def mixed(a: Units, b: Units) -> bool:
    """Whether both have units of one dimension and none of them is the same.

    >>> mixed(DIMENSIONS["hour"], DIMENSIONS["minutes"]), mixed(DIMENSIONS["hour"], NONE)
    (True, False)
    """
    return any(
        dimension == other and not any(d == dimension for d, _ in a & b)
        for dimension, _ in a
        for other, _ in b
    )
