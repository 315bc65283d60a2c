"""The files that make reads besides its makefiles."""

import pytest

from pennyweight.agent.answer_files import AnswerRules
from pennyweight.suite.values import Workspace

RULE = "tells make what to do"


@pytest.mark.parametrize(
    ("makefile", "verify", "path", "why"),
    [
        ("include rules.inc\n", "make test", "rules.inc", RULE),
        ("-include a.inc \\\n  b.inc # all\n", "make test", "b.inc", RULE),
        ("sinclude $(TOP)/conf/*.inc\n", "make test", "conf/x.inc", RULE),
        ("include first.inc\n", "make test", "second.inc", RULE),
        ("all:\n\ttrue\n", "make -f build.rules test", "build.rules", RULE),
        ("all:\n\ttrue\n", "make -C sub test", "sub/rules.inc", RULE),
        ("all:\n\ttrue\n", "make test", "GNUmakefile", RULE),
        ("all:\n\ttrue\n", "make test", "sub/makefile", RULE),
        ("include rules.inc\n", "make test", "main.c", None),
        ("-include $(OBJECTS:.o=.d)\n", "make test", "main.c", None),
        ("include rules.inc\n", "pytest -q", "rules.inc", None),
        ("\techo include main.c\n", "make test", "main.c", None),
    ],
)
@pytest.mark.parametrize("hidden", [False, True])
def test_what_a_makefile_includes_is_no_answer(tmp_path, makefile, verify, path, why, hidden):
    initial, after = tmp_path / "initial", tmp_path / "after"
    for folder in (initial, after):
        (folder / "sub").mkdir(parents=True)
    (initial / "first.inc").write_text("include ./second.inc\n")
    (initial / "sub" / "Makefile").write_text("include rules.inc\n")
    if not hidden:
        (initial / "Makefile").write_text(makefile)
    files = {"Makefile": makefile.encode()} if hidden else {}
    work = Workspace(verify=(("sh", "-c", verify),), verify_files=files)
    assert AnswerRules(initial, after, work).why_left_out(path) == why
