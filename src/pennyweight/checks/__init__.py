"""Checks, by which behaviours are observed: each is one small declaration.

Tested elsewhere:
    combined.py: tests/checks/test_behaviour.py
    limits.py: tests/checks/test_declaration.py
    parameters.py: tests/checks/test_behaviour.py
"""

from pennyweight.checks import combined, limits, text, tools
from pennyweight.checks import delegated as others
from pennyweight.checks import files as work
from pennyweight.checks import json_values as structure
from pennyweight.checks.declaration import CHECKS, Check, CheckResult, Excerpt, check
from pennyweight.define import load_installed

FAMILIES = {
    module.__name__.rpartition(".")[2]: (module.__doc__ or "").partition(":")[0].rstrip(".")
    for module in (text, structure, limits, tools, work, others, combined)
}

__all__ = ["CHECKS", "FAMILIES", "Check", "CheckResult", "Excerpt", "check"]

load_installed("pennyweight.checks")
