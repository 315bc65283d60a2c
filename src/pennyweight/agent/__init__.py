"""Agents: commands that work in a fresh workspace, inside a sandbox and within limits.

Tested elsewhere:
    disk_holder.py: tests/agent/test_disk.py
    line_diff.py: tests/agent/test_diff.py
    process.py: tests/agent/test_caps.py
    prompt.py: tests/agent/test_command.py
    supervisor.py: tests/agent/test_caps.py
    verification.py: tests/agent/test_checks.py
    workspace.py: tests/agent/test_folders.py
"""
