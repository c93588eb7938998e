#!/bin/bash
# Install by package name what the tests' real parts need; where that cannot be, the tests say what they skip.
set -euo pipefail
needed=()
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || needed+=(postgresql)
command -v systemd-analyze >/dev/null || needed+=(systemd)
[ ${#needed[@]} -gt 0 ] || exit 0
if [ "$(id -u)" != 0 ] || [ ! -e /etc/debian_version ]; then
  echo "not installed, their tests will be skipped: ${needed[*]}" >&2
  exit 0
fi
echo "installing by apt-get (no service is started): ${needed[*]}" >&2
policy=/usr/sbin/policy-rc.d
[ -e $policy ] || { printf '#!/bin/sh\nexit 101\n' >$policy; chmod 755 $policy; trap 'rm -f $policy' EXIT; }
apt-get -o DPkg::Lock::Timeout=300 update -qq
DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "${needed[@]}" >/dev/null
