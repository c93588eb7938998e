"""How MLflow lets us down, sorted by whom it concerns, and the one way that foreign text enters a message."""

from evalstopd.errors import PastCaps, Unavailable

_SHOWN = 160
UNKNOWN_RUN = "unknown run"


class Unreachable(Unavailable):
    """No connection, or the server asks for less: this concerns every run of the pass."""


class Silent(Unavailable):
    """No whole answer in time: the server hangs, or this one run is too heavy for it."""


class NotAsked(Unavailable):
    """The pass was over before this question was put: nothing was learned of anybody."""


class TooMuch(PastCaps):
    """A run (or one answer about it) is larger than the caps: this concerns that run alone."""


def one_line(text: object, limit: int = _SHOWN) -> str:
    """Return foreign text as one printable ASCII line of at most `limit` characters, the rest escaped or cut."""
    shown = str(text)[: limit + 1].encode("unicode_escape").decode("ascii")
    return shown if len(shown) <= limit else f"{shown[: limit - 3]}..."
