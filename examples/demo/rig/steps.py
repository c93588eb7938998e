"""The supervisors of running job steps (slurmstepd), found by the sockets they listen on.

They outlive slurmd and write over their own environment, where other processes of the rig carry its mark.
"""

import socket
import struct
from pathlib import Path

PEER = struct.Struct("3i")  # struct ucred: pid, uid, gid
TRY_S = 1.0


def supervisors(spool: Path) -> list[int]:
    """Return the processes that listen below the spool folders of a cluster's nodes."""
    found = (_listener(path) for path in spool.glob("*/*") if path.is_socket())
    return [pid for pid in found if pid is not None]


def _listener(path: Path) -> int | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(TRY_S)
        try:
            client.connect(str(path))
        except OSError:
            # The socket of a step that has ended without tidying up.
            return None
        pid, _, _ = PEER.unpack(client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size))
        return int(pid)
