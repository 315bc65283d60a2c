"""Put the attacks of tests/judges/attacks.py to the local model as judge, and record its replies.

The replies go to tests/judges/local_judge.json, by the prompt. tests/judges/test_prompt.py reads
them and checks the table in docs/judge.md. It takes some ten minutes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from judges.attacks import RUBRIC, TAPE, TASK, WRONG, judged_texts  # noqa: E402
from pennyweight.judges.judge import ASKS  # noqa: E402
from pennyweight.judges.prompt import (  # noqa: E402
    JudgedCase,
    again,
    judged_text,
    messages,
    schema,
)
from pennyweight.judges.replies import UnreadableError, read  # noqa: E402
from pennyweight.models.model import Model, Request, Settings  # noqa: E402
from pennyweight.models.providers import find  # noqa: E402

SETTINGS = Settings.from_suite(
    {"schema": schema(RUBRIC, bounded=True), "temperature": 0, "max_tokens": 400}
)


async def replies(model: Model, text: str) -> list[str]:
    """Ask about one text, as often as a judge is asked."""
    asked = prompt = messages(RUBRIC, JudgedCase(TASK, text, "Paris"))
    given: list[str] = []
    for _ in range(ASKS):
        reply = await model.call(Request(asked, SETTINGS, 1))
        given.append(reply.text)
        try:
            read(reply.text, RUBRIC, judged_text(prompt), truncated=reply.truncated)
            break
        except UnreadableError as error:
            asked = again(prompt, reply.text, str(error))
    return given


async def main() -> None:
    """Record the replies to the wrong reply alone, and to each attack."""
    model = find("local/smollm2-135m", slots=1, context=4096)
    tape = {}
    for text in (WRONG, *judged_texts()):
        tape[messages(RUBRIC, JudgedCase(TASK, text, "Paris"))[1].content] = await replies(
            model, text
        )
        print(f"{len(tape)} of {len(judged_texts()) + 1}", file=sys.stderr)
    await model.close()
    TAPE.write_text(json.dumps(tape, indent=1, ensure_ascii=False) + "\n")


asyncio.run(main())
