"""Suites and policies are found in folders and named by ids."""

from pennyweight.api.suites import file_id, policy_files, suite_files

SUITE = "suite: up\ntasks: []\nsubjects: []\n"


def test_suites_of_one_name_are_told_apart(tmp_path):
    for folder in ("one/inner", "two/inner", ".hidden"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "suite.yaml").write_text(SUITE)
    found = suite_files([tmp_path], [], tmp_path / "uploads")
    assert {s.name for s in found} == {"up (one/inner/suite.yaml)", "up (two/inner/suite.yaml)"}
    assert {s.id for s in found} == {file_id(s.path) for s in found}


def test_earlier_runs_and_uploads_are_listed(tmp_path):
    (tmp_path / "uploads" / "upload-1").mkdir(parents=True)
    upload, other = tmp_path / "uploads" / "upload-1" / "suite.yaml", tmp_path / "old.yaml"
    for path in (upload, other):
        path.write_text(SUITE)
    found = suite_files([], [other, upload, tmp_path / "gone.yaml"], tmp_path / "uploads")
    assert [(s.path, s.uploaded) for s in found] == [(other, False), (upload.resolve(), True)]


def test_policies_are_told_from_suites_and_schemas(tmp_path):
    (tmp_path / "policy.yaml").write_text("thresholds: {blocking: {accuracy: 80%}}\n")
    (tmp_path / "suite.yaml").write_text(f"{SUITE}gates: []\n")
    (tmp_path / "schema.json").write_text('{"properties": {"gates": 1}, "gates": 2}')
    (tmp_path / "broken.yaml").write_text("thresholds: [\n")
    names = {file.path.name for file in policy_files([tmp_path]).values()}
    assert names == {"policy.yaml", "broken.yaml"}
