#!/bin/sh
# Install what the tests of the page need on Debian and Ubuntu: Chromium, and axe-core from npm.
set -eu
cd "$(dirname "$0")/.."

AXE=4.10.3
run=""
[ "$(id -u)" = 0 ] || run=sudo

if ! command -v chromium >/dev/null 2>&1 && ! command -v chromium-browser >/dev/null 2>&1; then
  $run apt-get update -qq
  $run env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium fonts-liberation >/dev/null
fi
if [ ! -f ".cache/node_modules/axe-core/axe.min.js" ]; then
  command -v npm >/dev/null 2>&1 || {
    $run apt-get update -qq
    $run env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq npm >/dev/null
  }
  mkdir -p .cache
  npm install --silent --prefix .cache --no-save --no-audit --no-fund --ignore-scripts "axe-core@$AXE"
fi
