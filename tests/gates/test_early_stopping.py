"""The plan of a run that stops early: its order, and the tasks of each gate."""

import pytest

from pennyweight.errors import UsageError
from pennyweight.gates.early_stopping import EarlyStopPlan, PlannedTask, shuffled


def test_the_order_depends_on_the_seed_alone():
    names = [f"t{i}" for i in range(50)]
    assert shuffled(names, 1) == shuffled(names[::-1], 1) != shuffled(names, 2)
    assert shuffled(names[:20], 1) == [n for n in shuffled(names, 1) if n in set(names[:20])]


def test_a_plan_is_narrowed_as_the_records_are():
    tasks = [PlannedTask(f"t{i}", "Core " if i % 2 else "other") for i in range(200)]
    some = EarlyStopPlan(tuple(tasks), 1).where({"category": "core", "tier": "T0"})
    assert [task.id for task in some.tasks][:2] == ["t1", "t3"]
    assert len(some.tasks) == 100
    assert [t.id for t in EarlyStopPlan(tuple(tasks), 1).where({"task_id": "t7"}).tasks] == ["t7"]
    with pytest.raises(UsageError, match="its plan does not have the column 'difficulty'"):
        some.where({"difficulty": "hard"})
