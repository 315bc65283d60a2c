"""Gates: rules about estimates, and the verdicts they give.

Tested elsewhere:
    deciders.py: tests/gates/test_decision.py
    declaration.py: tests/gates/test_loader.py
    error_rate.py: tests/gates/test_decision.py
    formula.py: tests/gates/test_loader.py
    gate_reader.py: tests/gates/test_loader.py
    invariants.py: tests/gates/test_decision.py
    one_sided.py: tests/gates/test_threshold.py
    policy.py: tests/gates/test_loader.py
    policy_reader.py: tests/gates/test_loader.py
    records.py: tests/gates/test_decision.py
    threshold_tests.py: tests/gates/test_decision.py
    verdict.py: tests/render/test_verdict.py
    versions.py: tests/gates/test_fragments.py
"""
