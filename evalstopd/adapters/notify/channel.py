"""What a way to reach people has to do: send one message, or say why not, or that nobody knows."""

from typing import Protocol

from evalstopd.errors import EvalstopError, Rejected, Unavailable
from evalstopd.ports import Message

# What a channel raises where nothing of a message can have been taken. After anything else nobody knows.
NOT_TAKEN = (Unavailable, Rejected)


class Channel(Protocol):
    """One way to reach people. It may take its time, but only a limited one."""

    def send(self, message: Message) -> str:
        """Send one message and return where it went, in words.

        Raises Unavailable or Rejected where it was not sent, InDoubt where it may have been.
        """

    def check(self) -> str:
        """Tell whether messages could be sent now, without sending any. Raises Unavailable where they could not."""


def words(error: Exception) -> str:
    """Return what went wrong; what no channel should raise is told by its kind as well."""
    return str(error) if isinstance(error, EvalstopError) else f"{type(error).__name__}: {error}"
