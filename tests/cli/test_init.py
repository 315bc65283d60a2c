"""`pennyweight init`."""

from pathlib import Path

from cli.command import pennyweight, refused


def test_it_says_what_to_do_next(tmp_path: Path) -> None:
    said = pennyweight("init", tmp_path, "--scenarios")
    assert (said.code, said.out) == (0, "")
    assert f"Created {tmp_path / 'suite.yaml'}." in said.err
    assert f"pennyweight run {tmp_path / 'suite.yaml'}" in said.err
    assert f"--policy {tmp_path / 'policy.yaml'}" in said.err
    assert "--force" in refused("init", tmp_path)
