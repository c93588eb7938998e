"""Reads the site key, by which jobs' seals are checked; a key that others can read is no key."""

import os
import stat
from pathlib import Path

from evalstopd.core.mac import SHORTEST_KEY, SiteKey
from evalstopd.errors import Misconfigured

_LONGEST = 4096


def read_site_key(path: Path, credentials: str = "") -> SiteKey:
    """Return the key in a file. Raises Misconfigured where it is missing, too short, or readable by group or others.

    `credentials` is the folder in which systemd keeps this service's credentials, if any: it lets nobody else in, and
    gives its files an access list, which looks like a readable group.
    """
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            key = file.read(_LONGEST).strip()
    except OSError as error:
        raise Misconfigured(f"binding.mac_key: {path}: {error.strerror}") from None
    too_open = 0o007 if credentials and path.parent == Path(credentials) else 0o077
    if not stat.S_ISREG(status.st_mode) or status.st_mode & too_open:
        raise Misconfigured(f"binding.mac_key: {path} must be a file that only its owner can read (mode 0400)")
    if len(key) < SHORTEST_KEY:
        raise Misconfigured(f"binding.mac_key: {path} must hold at least {SHORTEST_KEY} bytes")
    return SiteKey(key)
