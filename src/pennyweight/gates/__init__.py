"""Gates: rules about estimates, and the verdicts they give.

Tested elsewhere:
    assumption.py: tests/cli/test_plan.py
    declaration.py: tests/gates/test_loader.py
    gate_reader.py: tests/gates/test_loader.py
    invariants.py: tests/gates/test_decision.py
    policy.py: tests/gates/test_loader.py
    records.py: tests/gates/test_decision.py
    threshold_gate.py: tests/gates/test_decision.py
    verdict.py: tests/render/test_verdict.py
"""
