#!/bin/sh
# Install PostgreSQL for the tests, from the packages of Debian or Ubuntu, where it is missing.
# The tests start a server of their own, so no service is set up.
set -eu

IFS=:
for place in $PATH $(echo /usr/lib/postgresql/*/bin | tr ' ' ':'); do
  if [ -x "$place/initdb" ] && [ -x "$place/postgres" ]; then
    exit 0
  fi
done
unset IFS

if ! command -v apt-get >/dev/null 2>&1; then
  echo "Put PostgreSQL's initdb and postgres on the PATH; this script knows only apt-get." >&2
  exit 1
fi
root=""
if [ "$(id -u)" != 0 ]; then
  root="sudo"
fi

echo "Installing PostgreSQL …" >&2
settings=/etc/postgresql-common/createcluster.conf
if [ ! -e "$settings" ]; then
  $root mkdir -p "${settings%/*}"
  echo "create_main_cluster = false" | $root tee "$settings" >/dev/null
fi
$root apt-get update -qq
$root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
  -o Dpkg::Options::=--force-confold postgresql >/dev/null
