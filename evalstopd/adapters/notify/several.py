"""More than one way to reach people, each for itself: one that is broken costs the others nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from evalstopd.adapters.notify.channel import Channel
from evalstopd.adapters.notify.log import LogNotifier
from evalstopd.adapters.notify.outbox import Outbox
from evalstopd.errors import EvalstopError, Unavailable
from evalstopd.ports import Message, Receipt


@dataclass(frozen=True, slots=True)
class Several:
    """Sends each message by every channel; it counts as sent if one of them took it."""

    channels: tuple[Channel, ...]

    def send(self, message: Message) -> str:
        """Send by all. Raises Unavailable where none took it."""
        sent, failed = [], []
        for channel in self.channels:
            try:
                sent.append(channel.send(message))
            except EvalstopError as error:
                failed.append(str(error))
        if not sent:
            raise Unavailable("; ".join(failed))
        return "; ".join([*sent, *(f"but {each}" for each in failed)])

    def check(self) -> str:
        """Ask all. Raises Unavailable with what is wrong if one could not send."""
        return "; ".join(channel.check() for channel in self.channels)


@dataclass(frozen=True, slots=True)
class AlsoLogged:
    """Logs each message at once, and leaves it to the outbox to reach the owner: only that counts as told."""

    log: LogNotifier
    outbox: Outbox

    def tell(self, message: Message) -> Receipt | None:
        """Log one message and put it into the outbox."""
        self.log.tell(message)
        return self.outbox.tell(message)

    def receipts(self) -> Sequence[Receipt]:
        """Return what the outbox knows."""
        return self.outbox.receipts()

    def close(self) -> None:
        """Close the outbox."""
        self.outbox.close()
