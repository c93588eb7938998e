"""What one pass saw and did, and the sentence that says so."""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

_ACTS = (
    "planned",
    "warned",
    "pinned",
    "promoted",
    "signalled",
    "cancelled",
    "held",
    "confirmed",
    "undone",
    "vetoed",
    "abandoned",
    "preempted",
)
_MORE = (
    "warned early",
    "moved",
    "moved back",
    "would be moved",
    "would be moved back",
    "held by caps",
    "would be stopped",
    "refused",
    "judged in parts",
    "not told",
    "perhaps told",
)


class Tracker(StrEnum):
    """What a pass had of the tracker: FAILED where none of its questions was answered, so that nobody was judged."""

    NOT_ASKED = "not asked"
    READ = "read"
    FAILED = "failed"


@dataclass(slots=True)
class Tally:
    """Counts and troubles while a pass goes on."""

    counts: Counter[str] = field(default_factory=Counter)
    troubles: list[str] = field(default_factory=list)
    cluster: str = ""
    tracker: Tracker = Tracker.NOT_ASKED

    def asked(self, *, answered: bool) -> None:
        """Note a question of this pass to the tracker: one that is answered outweighs any that are not."""
        if answered:
            self.tracker = Tracker.READ
        elif self.tracker is Tracker.NOT_ASKED:
            self.tracker = Tracker.FAILED

    def add(self, what: str, number: int = 1) -> None:
        """Count something."""
        self.counts[what] += number

    def trouble(self, text: str) -> None:
        """Note what did not work, once a pass for the same words."""
        if text not in self.troubles:
            self.troubles.append(text)


@dataclass(frozen=True, slots=True)
class TickReport:
    """The result of one pass. `good` is False where nothing could be decided at all.

    `cluster` is the one that was looked at. `instead` is what there is to say where no pass was made. A pass that had
    nothing of the tracker is good all the same: what was decided before is done, and jobs that ended are seen to have.
    """

    good: bool
    counts: Counter[str]
    troubles: tuple[str, ...]
    instead: str = ""
    cluster: str = ""
    tracker: Tracker = Tracker.NOT_ASKED

    @property
    def summary(self) -> str:
        """Return one sentence an admin can read each tick."""
        if self.instead:
            return self.instead
        if not self.good:
            return f"nothing decided, nothing done: {'; '.join(self.troubles)}"
        seen = (
            f"{self.counts['jobs']} jobs, {self.counts['watched']} watched, {self.counts['read']} read, "
            f"{self.counts['evals']} new evals"
        )
        acts = [f"{self.counts[act]} {act}" for act in (*_ACTS, *_MORE) if self.counts[act]]
        done = ", ".join(acts) or "nothing to do"
        trouble = f"; trouble: {'; '.join(self.troubles)}" if self.troubles else ""
        return f"{seen}; {done}{trouble}"
