"""What one pass knows of its intents, and the words it has for people and runs: handed to all who act in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evalstopd.core.again import Return
from evalstopd.core.binding import Bound, Proof, Refused
from evalstopd.core.caps import Decision
from evalstopd.core.datasets import dataset_of, fits
from evalstopd.core.intent import REQUEUED_ENDS, Intent, Situation, State, Step, next_step
from evalstopd.core.model import Ending, Job, JobKey, Life, Rung, StopAction
from evalstopd.core.rules import Rules, Standing, standing
from evalstopd.core.watch import Pin, Terms, Watch
from evalstopd.core.wishes import Wishes, parse_comment
from evalstopd.core.words import run_tags
from evalstopd.errors import Rejected, Unavailable
from evalstopd.loop.ledger import NOTHING_ELSE, Ledger
from evalstopd.loop.objections import Objections
from evalstopd.loop.observe import Observation
from evalstopd.loop.pins import PinDesk
from evalstopd.loop.report import Tally
from evalstopd.loop.telling import count
from evalstopd.ports import Changes, EndingQuery, Message, Ports, Receipt


@dataclass(frozen=True, slots=True)
class Scene:
    """One pass after its decisions are recorded; `watches` and `pins` are as this pass left them.

    `decisions` are those of late, as caps count them; `said` what was remarked on before. `untagged` are the intents,
    by id, whose runs are to be tagged once the stops of the pass are asked for. `back` has the jobs whose training
    began again since their stop was decided, or may have.
    """

    ports: Ports
    rules: Rules
    seen: Observation
    watches: Mapping[JobKey, Watch]
    pins: Mapping[tuple[JobKey, int], Pin]
    desk: PinDesk
    ledger: Ledger
    tally: Tally
    objections: Objections
    decisions: Sequence[Decision] = ()
    said: frozenset[tuple[str, str]] = frozenset()
    untagged: dict[str, Intent] = field(default_factory=dict)
    back: Mapping[JobKey, Return] = field(default_factory=dict)

    def job(self, intent: Intent) -> Job | None:
        """Return the intent's job as the queue of this pass shows it."""
        sighting = self.seen.sightings.get(intent.key.job_id)
        return sighting.job if sighting is not None else None

    def step(self, intent: Intent, job: Job | None) -> Step:
        """Return the one step to take now, with the job as it was last looked at."""
        return next_step(intent, self._situation(intent, job), self.ledger.now_s)

    def moved(self, intent: Intent, to: State, text: str, *, also: Changes = NOTHING_ELSE, **fields: object) -> Intent:
        """Commit a change of state with its event and what else it changes, and count it."""
        self.tally.add(to.value)
        return self.ledger.move(intent, to, text, also=also, **fields)

    def tell(self, intent: Intent, kind: str, subject: str, text: str) -> Receipt | None:
        """Send the owner one message; None where only a later pass will know what became of it."""
        receipt = self.ports.notifier.tell(Message(intent.key, intent.user, subject, text, kind, intent.id))
        count(self.tally, receipt)
        return receipt

    def may_write(self, intent: Intent) -> bool:
        """Writing to a run needs the proof both ways, now or, once the job is over, at the decision."""
        watch = self.watches.get(intent.key)
        proven = watch.two_way if watch is not None else intent.evidence.two_way
        return proven and intent.key not in self.seen.doubtful

    def tag_later(self, intent: Intent) -> None:
        """Have the run tagged with where the intent stands, or with where it stands by then."""
        self.untagged[intent.id] = intent

    def write_tags(self) -> None:
        """Tag what was put off."""
        while self.untagged:
            _, intent = self.untagged.popitem()
            self.tag(intent)

    def tag(self, intent: Intent) -> None:
        """Tell the run's readers where the intent stands; a failure is noted and holds nothing up."""
        if not self.may_write(intent) or self.ports.kill_switch.engaged():
            return
        try:
            self.ports.runs.tag(intent.evidence.run_id, run_tags(intent))
        except (Unavailable, Rejected) as error:
            self.tally.trouble(f"MLflow: {error}")

    def _situation(self, intent: Intent, job: Job | None) -> Situation:
        """Return what is seen of an intent's job; the wishes are those in the comment of this very look."""
        watch = self.watches.get(intent.key)
        wishes = parse_comment(job.comment if job is not None else "")
        now = self._standing(watch, wishes, corroborated=bool(intent.evidence.corroborated))
        rung = now.terms.rung if now is not None else Rung.OFF
        good_s = watch.reads.good_s if watch is not None else None
        since_s = good_s if good_s is not None else intent.created_s
        return Situation(
            phase=job.phase if job is not None else None,
            same_life=job is not None and job.uid == intent.key.uid and job.life == intent.life,
            keep=wishes.keep,
            rung=rung if job is not None else intent.rung,
            fresh=self._fresh(intent.key, watch, wishes),
            stale=self.ledger.now_s - since_s > self.rules.stale_s,
            best_step=watch.best_step if watch is not None else None,
            pin=self.pins.get((intent.key, intent.evidence.kept_step)),
            killed=self.ports.kill_switch.engaged(),
            same_terms=self._same_terms(intent, watch, wishes),
            ending=self.seen.endings.get(EndingQuery(intent.key.job_id, intent.life)),
            next_life=_next_life(intent, job),
            held=job is not None and job.held,
            later=self._later(intent),
            logged_models=watch is not None and self._terms(watch, wishes).logged_models,
            unread=self._unread(intent.key),
            back=self.back.get(intent.key),
            unasked=now is not None and now.unasked,
        )

    def _unread(self, key: JobKey) -> str:
        """Say why the run that the job claims was not read, where the fault is the run's own."""
        decision, error = self.seen.decisions.get(key), self.seen.unread.get(key)
        if isinstance(decision, Refused):
            return decision.text
        return str(error) if isinstance(error, Rejected) else ""

    def was_requeued(self, intent: Intent) -> bool:
        """Tell whether the life that a cancel was asked for is known to have been requeued."""
        asked = intent.action is StopAction.CANCEL and intent.cancel_tries > 0
        ending = self.seen.endings.get(EndingQuery(intent.key.job_id, intent.life))
        return asked and ending is not None and ending.state in REQUEUED_ENDS

    def _later(self, intent: Intent) -> Ending | None:
        life = intent.held_life
        return self.seen.endings.get(EndingQuery(intent.key.job_id, life)) if life is not None else None

    def _standing(self, watch: Watch | None, wishes: Wishes, *, corroborated: bool) -> Standing | None:
        """Return how the job stands by these wishes, and by what was read of it in this pass; None if unwatched."""
        if watch is None:
            return None
        now = standing(watch.terms, wishes, self.rules, partition=watch.partition, corroborated=corroborated)
        return self.seen.at_most(watch, now)

    def _fresh(self, key: JobKey, watch: Watch | None, wishes: Wishes) -> bool:
        """Tell whether this pass read the run that the job still goes by: its comment's, else the one proven."""
        bound = self.seen.decisions.get(key)
        if watch is None or key not in self.seen.readings or not isinstance(bound, Bound):
            return False
        if key in self.seen.doubtful:
            return False
        needs_no_comment = bound.proof is not Proof.COMMENT
        return watch.run_id == (wishes.run_id or (bound.run_id if needs_no_comment else None))

    def _terms(self, watch: Watch, wishes: Wishes) -> Terms:
        """Return the terms that the job is judged by with these wishes."""
        return standing(watch.terms, wishes, self.rules).terms

    def _same_terms(self, intent: Intent, watch: Watch | None, wishes: Wishes) -> bool:
        """Tell whether the job is still judged by the rule, metric, direction and dataset that the stop rests on."""
        if watch is None:
            return True
        now, then = self._terms(watch, wishes), intent.evidence
        same = (now.rule, now.metric, now.mode) == (then.rule, then.metric, then.mode)
        return wishes.faults != () or (same and _same_dataset(watch, now.dataset, then.dataset))


def _same_dataset(watch: Watch, asked: str, then: str) -> bool:
    """Tell whether a job's points are still told apart, or not, as they were, and the same dataset is asked for."""
    return watch.dataset_now == then and (not then or fits(asked, dataset_of(then)))


def _next_life(intent: Intent, job: Job | None) -> Life | None:
    """Return the life that a job is in after the one that the stop was decided on; None if it is another job."""
    if job is None or job.uid != intent.key.uid or job.restarts <= intent.life.restarts:
        return None
    return job.life
