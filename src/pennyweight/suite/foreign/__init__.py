"""Suites and data sets of other tools, which `pennyweight init --from FILE` turns into suites.

How to add a format:

1. Declare it in a file of its own, `FORMAT = SuiteFormat(name, title, recognise, convert)`
   (`suite_format.py`), and list it in `registry.py`. A package of yours does the same and names its
   `SuiteFormat` in the entry point group `pennyweight.suites`.
2. `recognise(root, text, path)` looks at the content only.
3. `convert(source)` returns the files of the suite. A foreign file is hostile: nothing in it is
   run, `source.find(name, place, what)` reads only what is below its folder, and values of
   environment variables are never copied. `source.miss(place, what, why)` lists what
   belongs to the exam and is lost: without `--partial` nothing is written then, and what decides
   an attempt is never replaced by another rule (`match: none`, the check `undecided`).
   `source.leave(place, what, why)` lists what is not carried over and decides nothing,
   `source.note(text)` what is measured differently. `suite_text(source, table)`
   writes the suite.
4. Test it in `tests/suite/foreign/test_NAME.py`: the verdicts of the tool itself, recorded, must be
   those of the suite that was made.

Tested elsewhere:
    *.py: tests/suite/foreign/test_promptfoo.py
"""
