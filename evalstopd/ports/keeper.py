"""The privileged helper, which does what is done to owners' files."""

from dataclasses import dataclass
from typing import Protocol

from evalstopd.core.corroborate import OwnerLog


@dataclass(frozen=True, slots=True)
class PinPlace:
    """Where a pin comes from and goes: the owner's uid, the output folder, the pin's name, the checkpoint's step.

    A checkpoint that was complete before `since_s` (seconds since the epoch) is not the one meant; nor is one whose
    trainer logged another `score` of the metric at the step. `later` tells whether a later eval was logged: then all
    processes of the training have finished what they saved at the step.
    """

    uid: int
    output_dir: str
    pin: str
    step: int
    since_s: int = 0
    metric: str = ""
    score: float = 0.0
    later: bool = False


@dataclass(frozen=True, slots=True)
class PinReport:
    """A pin as the keeper left it: absolute path, number of files, bytes, manifest digest."""

    path: str
    files: int
    size: int
    manifest: str


class Keeper(Protocol):
    """The privileged helper: file work as the job's owner. Each verb is idempotent.

    Raises CheckpointMissing, CheckpointIncomplete, CheckpointFailed, Rejected (refused or changed) or Unavailable
    (no answer).
    """

    def pin(self, place: PinPlace) -> PinReport:
        """Link and verify a checkpoint into its pin."""

    def repin(self, place: PinPlace) -> PinReport:
        """Make a pin anew of what is saved now, in place of an earlier one, which stays where this raises."""

    def verify(self, place: PinPlace) -> PinReport:
        """Check a pin against its manifest and its structure."""

    def publish(self, place: PinPlace) -> PinReport:
        """Verify a pin and make it the job's `best`; the path in the report is that of `best`."""

    def drop(self, place: PinPlace) -> None:
        """Remove a pin; removing what is not there is no error."""

    def log(self, place: PinPlace) -> OwnerLog:
        """Read the newest training log below the output folder that was written since `since_s`.

        It has the place's metric and what is logged beside it; checkpoint, score and step count for nothing.
        """
