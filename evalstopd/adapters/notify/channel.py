"""What a way to reach people has to do: send one message, or say why not."""

from typing import Protocol

from evalstopd.ports import Message


class Channel(Protocol):
    """One way to reach people. It may take its time, but only a limited one."""

    def send(self, message: Message) -> str:
        """Send one message and return where it went, in words. Raises Unavailable or Rejected where it was not sent."""

    def check(self) -> str:
        """Tell whether messages could be sent now, without sending any. Raises Unavailable where they could not."""
