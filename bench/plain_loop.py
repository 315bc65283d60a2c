"""The plain loop that `pennyweight score` is compared with. Only per-record measures."""

import json
import re
import sys
from pathlib import Path

STEP = re.compile(r"^\s*(\d+\.|-|\*)\s+")
WORDS = ("actually", "sorry", "correction", "let me fix", "i made a mistake")


def main(path: str) -> None:
    right = tokens = chars = steps = corrections = total = records = 0
    ratio = 0.0
    with Path(path).open(encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            cot, answer = record["cot"], record["answer"]
            words = len(cot.split())
            low = cot.lower()
            right += answer.strip().lower() == record["target"].strip().lower()
            tokens += words
            chars += len(cot)
            steps += sum(1 for one in cot.splitlines() if STEP.match(one))
            ratio += words / max(1, len(answer.split()))
            corrections += any(word in low for word in WORDS)
            total += record["prompt_tokens"] + record["completion_tokens"]
            records += 1
    print(right / records, tokens / records, chars / records, steps / records, ratio / records)
    print(corrections / records, total / records)


if __name__ == "__main__":
    main(sys.argv[1])
