"""Put the attacks of tests/judges/attacks.py to the local model as judge, and record its replies.

The replies go to tests/judges/local_judge.json. tests/judges/test_replies.py reads them and checks
the table in docs/judge.md. It takes some ten minutes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from judges.attacks import RUBRIC, TAPE, WRONG, judged_texts, prompt_of
from pennyweight.judges.judge import ASKS
from pennyweight.judges.prompt import again, judged_text, schema
from pennyweight.judges.replies import UnreadableError, read
from pennyweight.models.model import Model, Request, Settings
from pennyweight.models.providers import find

SETTINGS = Settings.from_suite(
    {"schema": schema(RUBRIC, bounded=True), "temperature": 0, "max_tokens": 400}
)


async def replies(model: Model, text: str) -> list[str]:
    """Ask about one text, as often as a judge is asked."""
    prompt, _ = prompt_of(text)
    asked, given = prompt, []
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
    """Record the replies about the wrong reply alone, and with each attack in it."""
    model = find("local/smollm2-135m", slots=1, context=4096)
    tape = []
    texts = [WRONG, *judged_texts()]
    for number, text in enumerate(texts, 1):
        _, digest = prompt_of(text)
        tape.append({"judged": text, "prompt": digest, "replies": await replies(model, text)})
        print(f"{number} of {len(texts)}", file=sys.stderr)
    await model.close()
    TAPE.write_text(json.dumps(tape, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
