"""Gates: rules about estimates, and the verdicts they give.

Tested elsewhere:
    declaration.py: tests/gates/test_loader.py
    formula.py: tests/gates/test_loader.py
    gate_reader.py: tests/gates/test_loader.py
    policy.py: tests/gates/test_loader.py
    policy_reader.py: tests/gates/test_loader.py
    versions.py: tests/gates/test_fragments.py
"""
