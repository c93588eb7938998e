#!/bin/bash
# Make the Python environment that demo and tests share: environment.sh BASE EXTRAS [LAYER]
# LAYER is a folder of BASE for an environment above that one: it sees all that is there, and changes none of it.
# It lies outside the clone, where the jobs' users and the daemon's account can run it, and is made with the
# system's Python, since root's own home is closed to them; the project is installed as a user would install it.
set -euo pipefail
base=$1 extras=$2 python=${PYTHON:-/usr/bin/python3} venv=$1/${3:-venv} layer=${3:-}
say() { printf '%s\n' "$*" >&2; }

umask 022
mkdir -p "$base"
[ -O "$base" ] && [ ! -L "$base" ] || { say "$base belongs to somebody else: choose another with make BASE=DIR"; exit 1; }
chmod 755 "$base"

if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ] || { say "$python lacks the venv module: install python3-venv"; exit 1; }
  say "installing by apt-get: python3-venv"
  apt-get -o DPkg::Lock::Timeout=300 update -qq
  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends python3-venv >/dev/null
fi

want="$(sha256sum pyproject.toml | cut -c1-16) $extras $("$python" -V)"
if [ "$(cat "$venv/made-for-$extras" 2>/dev/null)" != "$want" ]; then
  say "making the Python environment for: $extras (a minute when nothing is cached)"
  [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
  [ -z "$layer" ] || (cd "$base"/venv/lib/python*/site-packages && pwd) >"$("$venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')/base.pth"
  "$venv/bin/pip" install -qq --disable-pip-version-check "hatchling>=1.24" ".[$extras]"
  printf '%s\n' "$want" >"$venv/made-for-$extras"
fi
"$venv/bin/pip" install -qq --disable-pip-version-check --no-deps --no-build-isolation --force-reinstall .
