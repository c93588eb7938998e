"""Act and confirm: take each open intent as far as this pass allows, one recorded step after the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evalstopd.core.binding import Bound, Proof
from evalstopd.core.caps import Decision, held_back
from evalstopd.core.handover import handed_to
from evalstopd.core.intent import (
    REQUEUED_ENDS,
    Cancel,
    Confirm,
    GiveUp,
    Hold,
    Intent,
    NoteCancelled,
    Promote,
    SendSignal,
    Situation,
    State,
    Step,
    Undo,
    Wait,
    Warn,
    next_step,
)
from evalstopd.core.model import Ending, Job, JobKey, Life, Rung, StopAction
from evalstopd.core.rules import Rules, standing
from evalstopd.core.watch import Pin, PinState, Remark, Watch
from evalstopd.core.wishes import Wishes, parse_comment
from evalstopd.core.words import how, kept, run_tags, sentence, told_before, undo_line, veto_line, when
from evalstopd.errors import (
    CheckpointFailed,
    CheckpointIncomplete,
    CheckpointMissing,
    NotRequeueable,
    Rejected,
    Unavailable,
)
from evalstopd.loop.ledger import Ledger
from evalstopd.loop.observe import Observation, ending_query
from evalstopd.loop.pins import PinDesk
from evalstopd.loop.report import Tally
from evalstopd.loop.telling import STOPPED, UNDER_WAY, UNDONE, WARNING
from evalstopd.loop.undo import UndoDesk, at_most
from evalstopd.ports import Changes, EndingQuery, Message, Ports, Receipt

_HANDOVER_S = 600.0
_WRITE_PATIENCE_S = 900.0
_CAP = "cap"


@dataclass(frozen=True, slots=True)
class Acts:
    """What one pass may do with the intents; everything is looked at again before the act itself."""

    ports: Ports
    rules: Rules
    seen: Observation
    watches: Mapping[JobKey, Watch]
    pins: Mapping[tuple[JobKey, int], Pin]
    desk: PinDesk
    ledger: Ledger
    tally: Tally
    decisions: Sequence[Decision] = ()
    said: frozenset[tuple[str, str]] = frozenset()

    def serve(self, intents: Sequence[Intent]) -> None:
        """Take every open intent its steps; the cancels of a pass go out together after one last look."""
        waiting = [self._advance(intent) for intent in intents if not intent.closed]
        ready = [intent for intent in waiting if isinstance(self._step(intent, self._job(intent)), Cancel | SendSignal)]
        if ready and not self.ports.should_stop():
            self._end_jobs(self._within_caps(ready))
        closed = [intent for intent in intents if intent.closed]
        for intent in (*closed, *waiting):
            if intent.state in (State.CONFIRMED, State.HELD) and not intent.handed_to:
                self._hand_over(intent)
        for intent, why in self._undo_desk.resumed():
            self._undo(intent, why)

    @property
    def _undo_desk(self) -> UndoDesk:
        return UndoDesk(self.ports.store, self.seen, self.watches, self.ledger)

    def _advance(self, intent: Intent) -> Intent:
        """Take the steps that touch no running job, until the intent must wait."""
        while not intent.closed and not self.ports.should_stop():
            after = self._take(intent, self._step(intent, self._job(intent)))
            if after is intent:
                break
            intent = after
        return intent

    def _take(self, intent: Intent, step: Step) -> Intent:
        match step:
            case Warn():
                return self._warn(intent)
            case Promote(pin=pin):
                return self._promote(intent, pin)
            case GiveUp(state=state, why=why):
                return self._give_up(intent, state, why)
            case NoteCancelled() | Confirm() | Hold() | Undo():
                return self._take_after(intent, step)
            case Cancel() | SendSignal() | Wait():
                return intent

    def _take_after(self, intent: Intent, step: NoteCancelled | Confirm | Hold | Undo) -> Intent:
        """Take a step that follows a request to end the job."""
        match step:
            case NoteCancelled():
                return self._moved(intent, State.CANCELLED, "the job was seen to be ending")
            case Confirm(ending=ending):
                return self._held_gone(intent) if intent.state is State.HELD else self._confirm(intent, ending)
            case Hold(ending=ending, life=life):
                return self._hold(intent, ending, life)
            case Undo(how=why):
                return self._undo(intent, why)

    def _step(self, intent: Intent, job: Job | None) -> Step:
        return next_step(intent, self._situation(intent, job), self.ledger.now_s)

    def _job(self, intent: Intent) -> Job | None:
        sighting = self.seen.sightings.get(intent.key.job_id)
        return sighting.job if sighting is not None else None

    def _situation(self, intent: Intent, job: Job | None) -> Situation:
        """Return what is seen of an intent's job; the wishes are those in the comment of this very look."""
        watch = self.watches.get(intent.key)
        wishes = parse_comment(job.comment if job is not None else "")
        rung = self._rung(watch, wishes)
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
            later=self.seen.endings.get(ending_query(intent)),
        )

    def _rung(self, watch: Watch | None, wishes: Wishes) -> Rung:
        """Return the rung that the job has by these wishes, and by what was read of it in this pass."""
        if watch is None:
            return Rung.OFF
        return self.seen.at_most(watch, standing(watch.terms, wishes, self.rules)).terms.rung

    def _fresh(self, key: JobKey, watch: Watch | None, wishes: Wishes) -> bool:
        """Tell whether this pass read the run that the job still goes by: its comment's, else the one proven."""
        bound = self.seen.decisions.get(key)
        if watch is None or key not in self.seen.readings or not isinstance(bound, Bound):
            return False
        needs_no_comment = bound.proof is not Proof.COMMENT
        return watch.run_id == (wishes.run_id or (bound.run_id if needs_no_comment else None))

    def _same_terms(self, intent: Intent, watch: Watch | None, wishes: Wishes) -> bool:
        """Tell whether the job is still judged by the rule, metric and direction that the stop was decided on."""
        if watch is None:
            return True
        now, then = standing(watch.terms, wishes, self.rules).terms, intent.evidence
        return wishes.faults != () or (now.rule, now.metric, now.mode) == (then.rule, then.metric, then.mode)

    def _moved(self, intent: Intent, to: State, text: str, *, watch: Watch | None = None, **fields: object) -> Intent:
        self.tally.add(to.value)
        return self.ledger.move(intent, to, text, watch=watch, **fields)

    # --- steps that touch no running job

    def _warn(self, intent: Intent) -> Intent:
        """Tell the owner once: the message is recorded as being sent first, and never sent again."""
        if intent.told_s is not None:
            intent = self._moved(intent, State.WARNED, told_before(intent))
        elif intent.telling == WARNING:
            told = "whether the owner was told is unknown: the message is not sent again"
            intent = self._moved(intent, State.WARNED, told, telling="")
        else:
            text = f"{sentence(intent)}; {_notice(intent)}; {veto_line(intent)}"
            intent = self.ledger.note(intent, "warning", text, telling=WARNING)
            receipt = self._tell(intent, WARNING, "your job is past its best", text)
            told, telling = (receipt.text, "") if receipt is not None else (UNDER_WAY, WARNING)
            intent = self._moved(intent, State.WARNED, told, telling=telling)
        self._tag(intent)
        return intent

    def _promote(self, intent: Intent, pin: Pin) -> Intent:
        place = self.desk.place(pin)
        if place is None:
            return self._give_up(intent, State.ABANDONED, "the run names no output folder any more")
        try:
            report = self.ports.keeper.publish(place)
        except (Rejected, CheckpointFailed, CheckpointMissing, CheckpointIncomplete) as error:
            lost = replace(pin, state=PinState.LOST, why=str(error))
            self.ports.store.record(Changes(pins=(lost,)))
            return self._give_up(intent, State.ABANDONED, f"no safe checkpoint: {error}")
        except Unavailable as error:
            self.tally.trouble(f"keeper: {error}")
            return intent
        self.ports.store.record(Changes(pins=(replace(pin, state=PinState.PUBLISHED),)))
        text = f"step {pin.step} published as {report.path}, {report.files} files, manifest {report.manifest}"
        watch = self.watches.get(intent.key)
        kept_s = max(pin.wanted_s, (watch.started_s if watch is not None else None) or 0.0)
        intent = self._moved(intent, State.PROMOTED, text, kept_path=report.path, kept_s=kept_s)
        self._tag(intent)
        return intent

    def _give_up(self, intent: Intent, state: State, why: str) -> Intent:
        intent = self._moved(intent, state, why, note=why)
        self._tag(intent)
        return intent

    # --- the acts on running jobs

    def _end_jobs(self, intents: Sequence[Intent]) -> None:
        """Look again, record, then signal or cancel; an exit code proves nothing, so look once more."""
        looked = self._look(intents) if intents else None
        if looked is None:
            return
        intents = [self._renewed(intent, looked.get(intent.key.job_id)) for intent in intents]
        steps = [(intent, self._step(intent, looked.get(intent.key.job_id))) for intent in intents]
        for intent, step in steps:
            if isinstance(step, SendSignal):
                self._signal(intent, step)
        going = [self._announce(intent) for intent, step in steps if isinstance(step, Cancel)]
        if going:
            self._stop(going)

    def _within_caps(self, intents: Sequence[Intent]) -> list[Intent]:
        """Return the intents that the site's caps let act in this pass; one that has begun is never held."""
        asking = [self._asking(intent) for intent in intents if intent.acted_s is None]
        running = sum(job.gpus for job in self.seen.snapshot.jobs if job.holds_gpus)
        held = held_back(asking, self.decisions, running, self.rules.caps, self.ledger.now_s)
        for key, why in held.items():
            self.tally.add("held by caps")
            if (key.text, _CAP) not in self.said:
                self.ports.store.record(Changes(remarks=(Remark(key.text, _CAP, f"waits: {why}", self.ledger.now_s),)))
        return [intent for intent in intents if intent.key not in held or intent.acted_s is not None]

    def _asking(self, intent: Intent) -> Decision:
        watch = self.watches.get(intent.key)
        return Decision(intent.key, watch.account if watch is not None else "", intent.gpus, intent.created_s)

    def _renewed(self, intent: Intent, job: Job | None) -> Intent:
        """Give up what the last look withdraws; leave all else as it is."""
        step = self._step(intent, job)
        return self._take(intent, step) if isinstance(step, GiveUp) else intent

    def _look(self, intents: Sequence[Intent]) -> Mapping[str, Job] | None:
        try:
            return self.ports.cluster.look([intent.key.job_id for intent in intents])
        except (Unavailable, Rejected) as error:
            self.tally.trouble(f"last look: {error}")
            return None

    def _announce(self, intent: Intent) -> Intent:
        tries = intent.cancel_tries + 1
        began_s = self.ledger.now_s if intent.acted_s is None else intent.acted_s
        what = "end the job" if intent.action is StopAction.CANCEL else "requeue the job and hold it"
        text = f"request {tries} to {what}"
        return self.ledger.note(intent, "cancelling", text, cancel_tries=tries, acted_s=began_s)

    def _signal(self, intent: Intent, step: SendSignal) -> None:
        signal = step.signal
        text = f"{signal.name} to the batch script, then {signal.grace_s} s of grace, as the owner asked"
        intent = self._moved(intent, State.SIGNALLED, text, acted_s=self.ledger.now_s)
        try:
            self.ports.cluster.signal(intent.key.job_id, signal.name)
        except (Unavailable, Rejected) as error:
            self.ledger.note(intent, "signal-failed", str(error))
            self.tally.trouble(f"signal: {error}")

    def _stop(self, intents: Sequence[Intent]) -> None:
        """Ask for the end of each job in its own way, all cancels together, then look at what came of it."""
        cancels = [each for each in intents if each.action is StopAction.CANCEL]
        holds = [each for each in intents if each.action is not StopAction.CANCEL]
        intents = [*(self._cancel(cancels) if cancels else ()), *(self._requeue_hold(each) for each in holds)]
        intents = [each for each in intents if not each.closed]
        looked = (self._look(intents) if intents else None) or {}
        for intent in intents:
            job = looked.get(intent.key.job_id)
            step = self._step(intent, job) if job is not None else Wait("not seen after the cancel")
            if isinstance(step, NoteCancelled):
                self._take(intent, step)

    def _cancel(self, intents: Sequence[Intent]) -> Sequence[Intent]:
        try:
            self.ports.cluster.cancel([intent.key.job_id for intent in intents])
        except (Unavailable, Rejected) as error:
            self.tally.trouble(f"cancel: {error}")
            return [self.ledger.note(intent, "cancel-unsure", str(error)) for intent in intents]
        return intents

    def _requeue_hold(self, intent: Intent) -> Intent:
        try:
            self.ports.cluster.requeue_hold(intent.key.job_id)
        except NotRequeueable as error:
            return self._not_requeued(intent, str(error))
        except (Unavailable, Rejected) as error:
            self.tally.trouble(f"requeuehold: {error}")
            return self.ledger.note(intent, "cancel-unsure", str(error))
        return intent

    def _not_requeued(self, intent: Intent, why: str) -> Intent:
        """Slurm refused, so nothing was done: a cancel follows if the site says so, else the job is only warned of."""
        acted_s = intent.acted_s if intent.signal is not None else None
        before = {"cancel_tries": intent.cancel_tries - 1, "acted_s": acted_s}
        if intent.action is StopAction.HOLD_OR_CANCEL:
            return self.ledger.note(intent, "to-cancel", why, action=StopAction.CANCEL, **before)
        watch = self.watches.get(intent.key)
        warned = at_most(watch, Rung.WARN) if watch is not None else None
        intent = self._moved(intent, State.ABANDONED, why, watch=warned, note=why, **before)
        self._tag(intent)
        return intent

    # --- after the end

    def _confirm(self, intent: Intent, ending: Ending) -> Intent:
        if self.ports.kill_switch.engaged():
            return intent
        written = self._write_run(intent, State.CONFIRMED, ending)
        if written is None:
            return intent
        text = f"{sentence(intent, done=True)}; the job ended as {ending.state}; {kept(intent)}; {undo_line(intent)}"
        intent = self._moved(intent, State.CONFIRMED, text, ending=ending, note=written)
        return self._stopped(intent, text, written)

    def _hold(self, intent: Intent, ending: Ending, life: Life) -> Intent:
        """Note that the job's life ended and that it waits, held; its GPUs are free."""
        if self.ports.kill_switch.engaged():
            return intent
        written = self._write_run(intent, State.HELD, ending)
        if written is None:
            return intent
        text = f"{sentence(intent, done=True)}; it waits in the queue, held; {kept(intent)}; {undo_line(intent)}"
        intent = self._moved(intent, State.HELD, text, ending=ending, held_life=life, note=written)
        return self._stopped(intent, text, written)

    def _stopped(self, intent: Intent, text: str, written: str) -> Intent:
        intent = self.ledger.note(intent, "run", written)
        intent = self.ledger.note(intent, "telling", text, telling=STOPPED)
        receipt = self._tell(intent, STOPPED, "your job was stopped, its best checkpoint is kept", text)
        return intent if receipt is None else self.ledger.note(intent, receipt.event, receipt.text, telling="")

    def _held_gone(self, intent: Intent) -> Intent:
        """Close a stop whose job left the queue without having been seen to run again."""
        self._tag(replace(intent, state=State.CONFIRMED))
        return self._moved(intent, State.CONFIRMED, "the held job is not in the queue any more")

    def _undo(self, intent: Intent, how: str) -> Intent:
        """Close a stop that was taken back, and tell the owner, who need not be the one who did it."""
        self._tag(replace(intent, state=State.UNDONE))  # first: nobody comes back to a closed intent
        self.tally.add(State.UNDONE.value)
        intent = self._undo_desk.undo(intent, how)
        text = f"the stop of job {intent.key.job_id} was undone: {how}; the job is not stopped again"
        intent = self.ledger.note(intent, "telling", text, telling=UNDONE)
        receipt = self._tell(intent, UNDONE, "the stop of your job was undone", text)
        return intent if receipt is None else self.ledger.note(intent, receipt.event, receipt.text, telling="")

    def _write_run(self, intent: Intent, to: State, ending: Ending) -> str | None:
        """Write the outcome into the run if it is proven both ways; None asks for another try."""
        if not self._may_write(intent):
            return "nothing was written to the run: its tags do not name the job"
        final = replace(intent, state=to)
        try:
            self.ports.runs.tag(intent.evidence.run_id, run_tags(final))
            if ending.state in REQUEUED_ENDS:
                return f"run tagged; its status was left alone, the job was {ending.state}"
            return f"run tagged, status {self.ports.runs.mark_killed(intent.evidence.run_id)}"
        except Rejected as error:
            return f"the run could not be written: {error}"
        except Unavailable as error:
            self.tally.trouble(f"MLflow: {error}")
            late = self.ledger.now_s - intent.changed_s > _WRITE_PATIENCE_S
            return f"the run could not be written: {error}" if late else None

    def _hand_over(self, intent: Intent) -> None:
        if self.ledger.now_s - intent.changed_s > _HANDOVER_S:
            return
        takers = handed_to(intent, self.seen.snapshot.jobs)
        if sum(job.gpus for job in takers) >= intent.gpus > 0:
            ids = tuple(job.job_id for job in takers)
            self.ledger.note(intent, "handed", f"its {intent.gpus} GPUs went to {', '.join(ids)}", handed_to=ids)

    # --- telling

    def _tell(self, intent: Intent, kind: str, subject: str, text: str) -> Receipt | None:
        return self.ports.notifier.tell(Message(intent.key, intent.user, subject, text, kind, intent.id))

    def _may_write(self, intent: Intent) -> bool:
        """Writing to a run needs the proof both ways, now or, once the job is over, at the decision."""
        watch = self.watches.get(intent.key)
        return watch.two_way if watch is not None else intent.evidence.two_way

    def _tag(self, intent: Intent) -> None:
        """Tell the run's readers where the intent stands; a failure is noted and holds nothing up."""
        if not self._may_write(intent) or self.ports.kill_switch.engaged():
            return
        try:
            self.ports.runs.tag(intent.evidence.run_id, run_tags(intent))
        except (Unavailable, Rejected) as error:
            self.tally.trouble(f"MLflow: {error}")


def _notice(intent: Intent) -> str:
    """Return when and how the job will be stopped, if it will be."""
    return when(intent) if intent.rung < Rung.ENFORCE else f"{when(intent)}; {how(intent.action)}"


def _next_life(intent: Intent, job: Job | None) -> Life | None:
    """Return the life that a job is in after the one that the stop was decided on; None if it is another job."""
    if job is None or job.uid != intent.key.uid or job.restarts <= intent.life.restarts:
        return None
    return job.life
