"""What people are told, and what became of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from evalstopd.core.model import JobKey

_NO_JOB = JobKey("", "", 0, 0)


@dataclass(frozen=True, slots=True)
class Message:
    """One message to a job's owner, in the words that every other place uses; or to the site's admin (`to_admin`).

    `ref` names what it is about (an intent's id, or a life's early warning), `kind` which of its messages it is.
    """

    key: JobKey
    user: str
    subject: str
    text: str
    kind: str = "notice"
    ref: str = ""

    @property
    def for_admin(self) -> bool:
        """Tell whether this is about no job, and for the site's admin."""
        return self.key == _NO_JOB

    @property
    def whom(self) -> str:
        """Return who is told."""
        return "the admin" if self.for_admin else self.user

    @property
    def about(self) -> str:
        """Return what it is about, in words."""
        return "the site" if self.for_admin else f"job {self.key.job_id}"


def to_admin(subject: str, text: str, kind: str, ref: str) -> Message:
    """Return a message to the site's admin: its key and user are empty."""
    return Message(_NO_JOB, "", subject, text, kind, ref)


_FATES = {
    "told": "{} was told",
    "logged": "{} was not told",
    "not-told": "{} could not be told",
    "perhaps-told": "whether {} was told is unknown",
}


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a message: sent, or why not; `logged`: it is in the daemon's log alone, which owners cannot read.

    The admin reads that log, so the admin is told by it. `doubtful`: not known to be sent, but it may have been.
    """

    message: Message
    sent: bool
    how: str = ""
    logged: bool = False
    doubtful: bool = False

    @property
    def event(self) -> str:
        """Return the kind of event that this is."""
        if self.logged:
            return "told" if self.message.for_admin else "logged"
        if self.doubtful:
            return "perhaps-told"
        return "told" if self.sent else "not-told"

    @property
    def text(self) -> str:
        """Return the same in words."""
        whom = "the admin" if self.message.for_admin else "the owner"
        what = f"{_FATES[self.event].format(whom)} ({self.message.kind})"
        return f"{what}: {self.how}" if self.how else what


class Notifier(Protocol):
    """Tells people. Never raises for a broken channel and never waits for one: what could not be sent is logged."""

    def tell(self, message: Message) -> Receipt | None:
        """Send one message; return what became of it, or None where only `receipts` will tell."""

    def receipts(self) -> Sequence[Receipt]:
        """Return what became of messages since the last call. None for those of a process that has ended."""

    def close(self) -> None:
        """Send what still waits, for a short while; what was not sent by then never is."""
