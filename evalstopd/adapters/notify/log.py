"""The notifier that every site has: the daemon's own log, which the admin reads and owners cannot."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from evalstopd.ports import Message, Receipt

_log = logging.getLogger("evalstopd.notice")


@dataclass(frozen=True, slots=True)
class LogNotifier:
    """Writes each message as one line; users' text is escaped, so that it cannot forge a line."""

    def tell(self, message: Message) -> Receipt:
        """Log one message."""
        _log.warning("to %s about %s: %s: %s", *map(_line, _parts(message)), extra=journal_fields(message))
        return Receipt(message, sent=False, how="the message is in the daemon's log alone", logged=True)

    def receipts(self) -> Sequence[Receipt]:
        """Return nothing: what was logged was logged at once."""
        return ()

    def close(self) -> None:
        """Do nothing: nothing waits."""


def journal_fields(message: Message) -> dict[str, dict[str, str]]:
    """Return what a line on a message is about, for the journal's fields."""
    about = {} if message.for_admin else {"JOB": message.key.job_id, "USER": message.user}
    return {"journal": {"EVENT": message.kind, **about}}


def _parts(message: Message) -> tuple[str, str, str, str]:
    return message.whom, message.about, message.subject, message.text


def _line(text: str) -> str:
    return text.encode("unicode_escape", "backslashreplace").decode("ascii")
