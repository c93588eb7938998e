"""Free ports below the range that the kernel gives to outgoing connections.

A port from that range could be taken by any client while a server on it is down for a moment.
"""

import secrets
import socket

from .errors import RigError

LOWEST, HIGHEST = 12_000, 32_000
TRIES = 200


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def free_block(count: int) -> int:
    """Return the first of `count` neighbouring free ports, at a place that others hardly choose too."""
    for _ in range(TRIES):
        first = LOWEST + secrets.randbelow(HIGHEST - LOWEST - count)
        if all(is_free(port) for port in range(first, first + count)):
            return first
    raise RigError(f"no {count} neighbouring ports are free between {LOWEST} and {HIGHEST}")
