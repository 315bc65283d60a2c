"""The memory of this machine: files like those of the kernel, of both versions of cgroups."""

import pytest

from pennyweight.agent import memory


@pytest.fixture
def machine(tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text("MemTotal:    1000 kB\nMemAvailable:     800 kB\n")
    (tmp_path / "own").write_text("2:cpu:/x\n")
    monkeypatch.setattr(memory, "MEMORY_INFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")
    return tmp_path


def group(folder, **files):
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("memory_", "memory.")).write_text(text)


def test_without_a_group_it_is_that_of_the_machine(machine):
    assert (memory.total_memory(), memory.available_memory()) == (1_024_000, 819_200)


def test_a_limit_above_the_own_group_counts(machine):
    (machine / "own").write_text("0::/user/session\n")
    group(machine / "groups" / "user", memory_max="500000\n", memory_current="100000\n")
    group(machine / "groups" / "user" / "session", memory_max="max\n", memory_current="9\n")
    assert (memory.total_memory(), memory.available_memory()) == (500_000, 400_000)


def test_a_limit_of_version_1_counts(machine):
    (machine / "own").write_text("4:cpu,memory:/box\n0::/\n")
    above = machine / "groups" / "memory"
    group(above / "box", memory_limit_in_bytes="300000", memory_usage_in_bytes="400000")
    assert (memory.total_memory(), memory.available_memory()) == (300_000, 0)


def test_this_machine_has_memory():
    assert 0 < memory.available_memory() <= memory.total_memory()
