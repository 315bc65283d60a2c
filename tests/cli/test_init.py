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


def test_a_suite_of_another_tool_is_converted(tmp_path: Path) -> None:
    given = Path(__file__).parents[2] / "examples" / "suites" / "promptfoo" / "promptfooconfig.yaml"
    left = refused("init", tmp_path, "--from", given)
    assert "promptfooconfig.yaml:27: javascript: it is code; with --code" in left
    assert not (tmp_path / "suite.yaml").exists()
    said = pennyweight("init", tmp_path, "--from", given, "--partial")
    assert (said.code, said.out) == (0, "")
    assert "as promptfoo." in said.err
    assert "promptfooconfig.yaml:27: javascript: it is code; with --code" in said.err
    assert f"Next: pennyweight run {tmp_path / 'suite.yaml'}" in said.err
    assert "already exists" in refused("init", tmp_path, "--from", given, "--partial")
    code = pennyweight("init", tmp_path, "--from", given, "--code", "--force")
    assert (code.code, "Read it first." in code.err) == (0, True)
    assert (tmp_path / "assertions.cjs").is_file()
    for option in ("--code", "--partial"):
        assert f"{option} needs --from" in refused("init", tmp_path / "x", option)
    assert "no such file" in refused("init", tmp_path / "x", "--from", tmp_path / "nothing.yaml")
