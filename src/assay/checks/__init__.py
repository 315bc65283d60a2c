"""How a behaviour is observed: one small declaration a check, grouped by what it looks at."""

from assay.checks import limits, others, structure, text, tools, work
from assay.checks.declare import CHECKS, Check, Found, Verdict, check

FAMILIES = {
    module.__name__.rpartition(".")[2]: (module.__doc__ or "").partition(":")[0].rstrip(".")
    for module in (text, structure, limits, tools, work, others)
}

__all__ = ["CHECKS", "FAMILIES", "Check", "Found", "Verdict", "check"]
