"""How MLflow lets us down, sorted by whom it concerns, and the one way that foreign text enters a message."""

from collections.abc import Iterator
from contextlib import contextmanager

from evalstopd.errors import EvalstopError, PastCaps, Rejected, Unavailable

_SHOWN = 160
UNKNOWN_RUN = "unknown run"
NO_PERMISSION = "no permission"


class Unreachable(Unavailable):
    """No connection, no such workspace, or an overloaded server: this concerns every run of the pass."""


class LockedOut(Unreachable):
    """Our login is not taken (HTTP 401), or opens nothing: no run's fault, and over as soon as it is taken again."""


class Forbidden(Rejected):
    """We may not see this one thing (HTTP 403); of all that is asked for it is our own right that is missing."""


class Busy(Unreachable):
    """The server asks to come later (HTTP 429): this concerns the one question, which may be put again.

    `after_s` is for how many seconds it asks; None where it does not say.
    """

    def __init__(self, text: str, after_s: float | None = None) -> None:
        super().__init__(text)
        self.after_s = after_s


class Silent(Unavailable):
    """No whole answer in time: the server hangs, or this one run is too heavy for it."""


class NotAsked(Unavailable):
    """The pass was over before this question was put: nothing was learned of anybody."""


class TooLong(Unavailable):
    """An answer is longer than we read of any. Of several runs it is nobody's fault: ask for fewer at a time."""


class TooMuch(PastCaps):
    """A run (or one answer about it) is larger than the caps: this concerns that run alone."""


def is_its_own(answer: object) -> bool:
    """Tell whether an answer is a failure, and not one of the whole server or of the moment."""
    return isinstance(answer, EvalstopError) and not isinstance(answer, (Unreachable, NotAsked))


@contextmanager
def about_one(what: str) -> Iterator[None]:
    """Hold an answer that is too long against the one thing that was asked about. Raises TooMuch."""
    try:
        yield
    except TooLong as error:
        raise TooMuch(f"{what}: {error}") from error


def one_line(text: object, limit: int = _SHOWN) -> str:
    """Return foreign text as one printable ASCII line of at most `limit` characters, the rest escaped or cut."""
    shown = str(text)[: limit + 1].encode("unicode_escape").decode("ascii")
    return shown if len(shown) <= limit else f"{shown[: limit - 3]}..."
