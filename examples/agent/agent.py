"""A small agent: it reads a note, asks a model about it, and writes the answer into a file.

It needs nothing but Python. The model speaks OpenAI's format at OPENAI_BASE_URL.
"""

import json
import os
import sys
import urllib.request
from pathlib import Path

question = sys.argv[1]
settings = json.loads(os.environ.get("PENNYWEIGHT_SETTINGS", "{}"))
guide = Path("AGENT.md")

messages = []
if guide.exists():
    messages.append({"role": "system", "content": guide.read_text()})
messages.append({"role": "user", "content": f"{Path('notes.txt').read_text()}\n{question}"})

request = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions",
    json.dumps({"messages": messages, "max_tokens": 40, **settings}).encode(),
    {"Content-Type": "application/json", "Authorization": "Bearer none"},
)
with urllib.request.urlopen(request, timeout=120) as response:
    reply = json.load(response)

text = reply["choices"][0]["message"]["content"]
Path("answer.txt").write_text(text + "\n")
print(json.dumps({"text": text, "usage": reply["usage"]}))
