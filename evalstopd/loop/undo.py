"""Stops that are taken back: the credit is booked, and the job is only observed from then on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from evalstopd.core.intent import Intent, State
from evalstopd.core.model import Job, JobKey, Rung
from evalstopd.core.watch import Watch
from evalstopd.core.wishes import UNDO, parse_comment
from evalstopd.loop.ledger import Ledger
from evalstopd.loop.observe import Observation
from evalstopd.ports import EndingQuery, Store


@dataclass(frozen=True, slots=True)
class UndoDesk:
    """Books undone stops in one pass; `watches` are as this pass recorded them."""

    store: Store
    seen: Observation
    watches: Mapping[JobKey, Watch]
    ledger: Ledger

    def undo(self, intent: Intent, how: str) -> Intent:
        """Book it. The veto is kept here as well as in the comment, as a job's script may write that anew."""
        ending = intent.ending or self.seen.endings.get(EndingQuery(intent.key.job_id, intent.life))
        watch = self.watches.get(intent.key)
        return self.ledger.undo(
            replace(intent, ending=ending), how, at_most(watch, Rung.OBSERVE) if watch is not None else None
        )

    def resumed(self) -> Iterator[tuple[Intent, str]]:
        """Yield the stops of cancelled jobs whose work a later job of the same owner takes up, and how it does.

        Its comment says so (`evalstop_undo=<id>`); Slurm proves whose it is.
        """
        later: dict[tuple[str, int], Job] = {}
        for job in (each for each in self.seen.snapshot.jobs if f"{UNDO}=" in each.comment):
            wishes = parse_comment(job.comment)
            if wishes.undo is not None and not wishes.faults:
                later[(wishes.undo, job.uid)] = job
        for intent in self._last_stops([job_id for job_id, _ in later]):
            heir = later.get((intent.key.job_id, intent.key.uid))
            if heir is not None and intent.state is State.CONFIRMED and heir.submitted_s >= intent.created_s:
                yield intent, f"job {heir.job_id} takes up its work"

    def _last_stops(self, job_ids: list[str]) -> list[Intent]:
        if not job_ids:
            return []
        last: dict[tuple[str, int], Intent] = {}
        for intent in self.store.stops_of(self.seen.snapshot.cluster, job_ids):
            last.setdefault((intent.key.job_id, intent.key.uid), intent)
        return list(last.values())


def at_most(watch: Watch, rung: Rung) -> Watch:
    """Return a watch whose job is never again taken further than a rung."""
    return replace(watch, terms=replace(watch.terms, rung=min(watch.terms.rung, rung)))
