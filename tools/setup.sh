#!/bin/sh
# Create .venv with Pennyweight and the Python packages of its tests, with uv if it is installed.
set -eu

python=""
for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
  if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  echo "Pennyweight needs Python 3.11 or newer; set one with PYTHON=/path/to/python make …" >&2
  exit 1
fi

echo "Setting up .venv with $("$python" --version) …" >&2
if command -v uv >/dev/null 2>&1; then
  uv venv --quiet --clear --python "$("$python" -c 'import sys; print(sys.executable)')" .venv
  uv pip install --quiet --python .venv/bin/python --editable '.[dev]'
else
  "$python" -m venv --clear .venv
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
fi
