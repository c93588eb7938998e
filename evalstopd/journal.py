"""The journal's own protocol, a datagram a record: what a line is about is a field that can be asked for."""

import logging
import socket
import struct
from collections.abc import Mapping
from pathlib import Path

from evalstopd.report.text import plain

SOCKET = Path("/run/systemd/journal/socket")
_LONGEST_FIELD = 200


def packed(fields: Mapping[str, str]) -> bytes:
    """Return fields as the journal takes them; every value with its length, so that no end of line in it ends it."""
    return b"".join(_field(name, value.encode("utf-8", "backslashreplace")) for name, value in fields.items())


def _field(name: str, value: bytes) -> bytes:
    return b"%s\n%s%s\n" % (name.encode("ascii"), struct.pack("<Q", len(value)), value)


class JournalHandler(logging.Handler):
    """Sends each record with MESSAGE, PRIORITY and the fields that it brings in `extra={"journal": {...}}`.

    Those get EVALSTOPD_ before their names: JOB, EVENT, USER. What the journal does not take at once goes to `beside`.
    """

    def __init__(self, path: Path, priority: Mapping[int, int], beside: logging.Handler) -> None:
        super().__init__()
        self._path, self._priority, self._beside = str(path), priority, beside
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record."""
        try:
            self._socket.sendto(packed(self._fields(record)), self._path)
        except OSError:
            self._beside.handle(record)
        except Exception:  # noqa: BLE001  as in every handler: a record that cannot be formatted ends nothing
            self.handleError(record)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
        super().close()

    def _fields(self, record: logging.LogRecord) -> dict[str, str]:
        brought: Mapping[str, str] = getattr(record, "journal", {})
        number = next((number for least, number in self._priority.items() if record.levelno >= least), 7)
        return {
            "MESSAGE": self.format(record),
            "PRIORITY": str(number),
            "SYSLOG_IDENTIFIER": "evalstopd",
            **{f"EVALSTOPD_{name}": plain(value, _LONGEST_FIELD) for name, value in brought.items() if value},
        }
