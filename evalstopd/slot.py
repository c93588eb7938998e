"""Which of several daemons on one host this is: the lowest number that no other living process has."""

import hashlib
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass

_MOST = 9


@dataclass(frozen=True, slots=True)
class Slot:
    """A daemon's name among those on its store, the same once it is started again; `release` makes room for another."""

    name: str
    release: Callable[[], None]


def take_slot(database: str, name: str) -> Slot:
    """Return the first free slot on this host: `name`, `name#2`, ...

    It is an abstract socket's address, which the kernel frees with the process, however that ends. `database` keeps
    apart who works on different ones. Any user may occupy addresses: who takes all of them makes the daemon name itself
    by its process id, and nothing else.
    """
    address = hashlib.sha256(f"{database}\n{name}".encode("utf-8", "surrogatepass")).hexdigest()
    for number in range(1, _MOST + 1):
        held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            held.bind(f"\0evalstopd-{address}-{number}")
        except OSError:
            held.close()
            continue
        return Slot(name if number == 1 else f"{name}#{number}", held.close)
    return Slot(f"{name}#pid{os.getpid()}", lambda: None)
