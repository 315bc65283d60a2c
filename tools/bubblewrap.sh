#!/bin/sh
# Install bubblewrap from the distribution's packages where it is missing: agents run in it.
set -eu

if command -v bwrap >/dev/null 2>&1; then
  exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
  echo "bubblewrap is not installed, and there is no apt-get to install it with." >&2
  exit 1
fi
as_root=""
if [ "$(id -u)" != 0 ]; then
  as_root="sudo"
fi
$as_root apt-get update -qq
$as_root apt-get install -y -qq --no-install-recommends bubblewrap >/dev/null
bwrap --version
