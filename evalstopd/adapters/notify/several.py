"""More than one way to reach people, each for itself: one that is broken costs the others nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from evalstopd.adapters.notify.channel import NOT_TAKEN, Channel, words
from evalstopd.adapters.notify.log import LogNotifier
from evalstopd.adapters.notify.outbox import Outbox
from evalstopd.errors import InDoubt, Unavailable
from evalstopd.ports import Message, Receipt


@dataclass(frozen=True, slots=True)
class Several:
    """Sends each message by every channel; it counts as sent if one took it, and as not sent if none can have."""

    channels: tuple[Channel, ...]

    def send(self, message: Message) -> str:
        """Send by all. Raises Unavailable where none took it, InDoubt where none surely did, and one may have."""
        sent, doubtful, failed = list[str](), list[str](), list[str]()
        for channel in self.channels:
            try:
                sent.append(channel.send(message))
            except NOT_TAKEN as error:
                failed.append(words(error))
            except Exception as error:  # noqa: BLE001  one channel that breaks must not cost the others the message
                doubtful.append(words(error))
        if sent:
            return "; ".join([*sent, *(f"but {each}" for each in doubtful + failed)])
        text = "; ".join(doubtful + failed)
        raise InDoubt(text) if doubtful else Unavailable(text)

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
