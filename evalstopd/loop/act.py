"""Act: take each open intent as far as this pass allows, one recorded step after the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evalstopd.core.caps import Decision, Held, held_back
from evalstopd.core.intent import (
    Cancel,
    Confirm,
    GiveUp,
    Hold,
    Intent,
    NoteCancelled,
    NoteNext,
    Promote,
    SendSignal,
    State,
    Step,
    Undo,
    Wait,
    Warn,
)
from evalstopd.core.model import Job, JobKey, Rung
from evalstopd.core.registry import WANTED
from evalstopd.core.watch import Pin, PinState, Remark
from evalstopd.core.words import LOGGED, back_code, cap_code, how, sentence, told_before, veto_line, when
from evalstopd.errors import (
    CheckpointFailed,
    CheckpointIncomplete,
    CheckpointMissing,
    Rejected,
    Unavailable,
)
from evalstopd.loop.aftermath import Aftermath
from evalstopd.loop.giving_up import give_up
from evalstopd.loop.late import still_as_read
from evalstopd.loop.registering import RegistryDesk
from evalstopd.loop.requests import Requests
from evalstopd.loop.scene import Scene
from evalstopd.loop.telling import UNDER_WAY, WARNING
from evalstopd.ports import Changes

# So long is the first of many stops kept for others to be asked for with it. Seconds.
_TOGETHER_S = 0.5


@dataclass(frozen=True, slots=True)
class Acts:
    """What one pass may do with the intents; everything is looked at again before the act itself."""

    scene: Scene

    def serve(self, intents: Sequence[Intent]) -> bool:
        """Take every open intent its steps; cancels go out together, after one last look.

        What is written into runs waits for them: a slow tracker must not keep GPUs. Tell whether GPUs may come free: a
        stop was due now, or is not seen to have ended yet.
        """
        intents = RegistryDesk(self.scene).serve(intents)
        waiting, due = self._serve_open([intent for intent in intents if not intent.closed])
        self.scene.write_tags()
        waiting = [self._finish(intent) for intent in waiting]
        closed = [intent for intent in intents if intent.closed]
        self._aftermath.close_up((*closed, *waiting))
        return due or any(intent.state is State.CANCELLED for intent in waiting)

    def _serve_open(self, intents: Sequence[Intent]) -> tuple[list[Intent], bool]:
        """Take each as far as it may go; return the intents as they were before their jobs' end, and if any was due.

        Where many are promoted, those that are ready do not wait for all others: unless a cap could hold one of them,
        for then whose turn it is can be told only of all together.
        """
        waits_for_all, due = bool(self._held([each for each in intents if each.rung is Rung.ENFORCE])), False
        waiting, ready, since_s = list[Intent](), list[Intent](), 0.0
        for intent in intents:
            waiting.append(self._advance(intent))
            if not isinstance(self.scene.step(waiting[-1], self.scene.job(waiting[-1])), Cancel | SendSignal):
                continue
            since_s = since_s if ready else self.scene.ledger.now_s
            ready.append(waiting[-1])
            due = True
            if not waits_for_all and self.scene.ledger.now_s - since_s >= _TOGETHER_S:
                self._end_jobs(ready)
                ready = []
        self._end_jobs(ready)
        return waiting, due

    @property
    def _aftermath(self) -> Aftermath:
        return Aftermath(self.scene)

    @property
    def _requests(self) -> Requests:
        return Requests(self.scene)

    def _advance(self, intent: Intent) -> Intent:
        """Take the steps that touch no running job, until the intent must wait."""
        while not intent.closed and not self.scene.ports.should_stop():
            after = self._take(intent, self.scene.step(intent, self._job(intent)))
            if after is intent:
                break
            intent = after
        return intent

    def _job(self, intent: Intent) -> Job | None:
        """Return an intent's job as the queue shows it, or one that was requeued before our cancel and has left since.

        Only the controller still tells of the life that such a job had then: after a crash, say, nobody noted it.
        """
        job = self.scene.job(intent)
        if job is not None or intent.held_life is not None or not self.scene.was_requeued(intent):
            return job
        return (self._look([intent]) or {}).get(intent.key.job_id)

    def _finish(self, intent: Intent) -> Intent:
        """Take the steps that follow the end of its job."""
        while not intent.closed and not self.scene.ports.should_stop():
            step = self.scene.step(intent, self.scene.job(intent))
            after = self._aftermath.take(intent, step) if isinstance(step, Confirm | Hold | Undo) else intent
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
            case GiveUp(state=state, why=why, found=pin, over=over):
                # The run's readers are told of a logged model that was found, although it holds no stop.
                path = pin.path if pin is not None else intent.kept_path
                return give_up(self.scene, intent, state, why, over=over, kept_path=path)
            case NoteCancelled() | NoteNext():
                return self._aftermath.take(intent, step)
            case Cancel() | SendSignal() | Confirm() | Hold() | Undo() | Wait():
                return intent

    # --- steps that touch no running job

    def _warn(self, intent: Intent) -> Intent:
        """Tell the owner once: the message is recorded as being sent first, and never sent again.

        The notice runs from there by the clock, whatever becomes of the message: no mail server delays a stop.
        """
        if intent.told_s is not None:
            intent = self.scene.moved(intent, State.WARNED, told_before(intent))
        elif intent.telling == WARNING:
            told = "whether the owner was told is unknown: the message is not sent again"
            intent = self.scene.moved(intent, State.WARNED, told, telling="", not_before_s=self._noticed_s(intent))
        else:
            intent = self._tell(intent)
        self.scene.tag_later(intent)
        return intent

    def _tell(self, intent: Intent) -> Intent:
        text = f"{sentence(intent)}; {_notice(intent)}; {veto_line(intent)}"
        intent = self.scene.ledger.note(intent, "warning", text, telling=WARNING)
        receipt = self.scene.tell(intent, WARNING, "your job is past its best", text)
        told, telling = (receipt.text, "") if receipt is not None else (UNDER_WAY, WARNING)
        noticed_s = self._noticed_s(intent)
        return self.scene.moved(intent, State.WARNED, told, telling=telling, not_before_s=noticed_s)

    def _noticed_s(self, intent: Intent) -> float:
        """Return when the notice of an intent ends whose owner is being told now."""
        return self.scene.ledger.now_s + max(0.0, intent.not_before_s - intent.created_s)

    def _promote(self, intent: Intent, pin: Pin) -> Intent:
        return self._promote_model(intent, pin) if pin.state is PinState.LOGGED else self._publish(intent, pin)

    def _promote_model(self, intent: Intent, pin: Pin) -> Intent:
        """Let the logged model be the job's best, after another look: there is nothing to publish."""
        models = self.scene.ports.models
        if models is None:
            return give_up(
                self.scene, intent, State.ABANDONED, "no safe checkpoint: nobody can look at its logged model"
            )
        if self.scene.desk.mute:
            return intent
        try:
            report = models.verify(intent.evidence.run_id, pin.path)
        except Unavailable as error:
            self.scene.desk.mute.append(str(error))
            self.scene.tally.trouble(f"MLflow: {error}")
            return intent
        except (Rejected, CheckpointMissing, CheckpointIncomplete) as error:
            return self._lost(intent, pin, str(error))
        if report.listing != pin.manifest:
            return self._lost(intent, pin, "the files of its logged model are others than when it was found")
        text = f"step {pin.step} is {report.uri}, {LOGGED}: {report.files} files, {report.size} bytes by its listing"
        return self._promoted(intent, pin, text, report.uri)

    def _lost(self, intent: Intent, pin: Pin, why: str) -> Intent:
        self.scene.ports.store.record(Changes(pins=(replace(pin, state=PinState.LOST, why=why),)))
        return give_up(self.scene, intent, State.ABANDONED, f"no safe checkpoint: {why}")

    def _publish(self, intent: Intent, pin: Pin) -> Intent:
        place = self.scene.desk.place(pin)
        if place is None:
            return give_up(self.scene, intent, State.ABANDONED, "the run names no output folder any more")
        shares = self.scene.desk.shares
        if not shares.left(place.uid, held=True):
            return intent
        try:
            with shares.of(place.uid):
                report = self.scene.ports.keeper.publish(place)
        except (Rejected, CheckpointFailed, CheckpointMissing, CheckpointIncomplete) as error:
            return self._lost(intent, pin, str(error))
        except Unavailable as error:
            self.scene.tally.trouble(f"keeper: {error}")
            return intent
        text = f"step {pin.step} published as {report.path}, {report.files} files, manifest {report.manifest}"
        return self._promoted(intent, replace(pin, state=PinState.PUBLISHED), text, report.path)

    def _promoted(self, intent: Intent, pin: Pin, text: str, path: str) -> Intent:
        watch = self.scene.watches.get(intent.key)
        kept_s = max(pin.wanted_s, (watch.started_s if watch is not None else None) or 0.0)
        model = WANTED if self.scene.ports.registry is not None else ""
        also = Changes(pins=(pin,))
        intent = self.scene.moved(intent, State.PROMOTED, text, also=also, kept_path=path, kept_s=kept_s, model=model)
        self.scene.tag_later(intent)
        return intent

    # --- the acts on running jobs

    def _end_jobs(self, intents: Sequence[Intent]) -> None:
        """Look again, record, then signal or cancel; an exit code proves nothing, so look once more."""
        if self.scene.ports.should_stop():
            return
        intents = self._unopposed(self._within_caps(intents))
        intents = still_as_read(self.scene, intents) if intents else []
        looked = self._look(intents) if intents else None
        if looked is None:
            return
        intents = [self._renewed(intent, looked.get(intent.key.job_id)) for intent in intents]
        steps = [(intent, self.scene.step(intent, looked.get(intent.key.job_id))) for intent in intents]
        for intent, step in steps:
            if isinstance(step, SendSignal):
                self._signal(intent, step)
        going = [self._requests.announced(intent) for intent, step in steps if isinstance(step, Cancel)]
        if going:
            self._stop(self.scene.ledger.enter(going))

    def _within_caps(self, intents: Sequence[Intent]) -> list[Intent]:
        """Return the intents that the site's caps let act in this pass; one that has begun is never held."""
        held = self._held(intents)
        going = [intent for intent in intents if intent.key not in held or intent.acted_s is not None]
        for intent in intents:
            if intent.key in held and intent.acted_s is None:
                self._say_why(intent, held[intent.key])
        return going

    def _unopposed(self, intents: Sequence[Intent]) -> list[Intent]:
        """Return the intents that no owner's log speaks against, of those that only the owner's word allows.

        Nor an eval of an earlier step: whether the training began again with it, the next eval will tell.
        """
        going = []
        for intent in intents:
            heard = self.scene.objections.to(intent)
            if heard.against:
                give_up(self.scene, intent, State.ABANDONED, heard.against)
            elif not heard.wait and not self._doubted(intent):
                going.append(intent)
        return going

    def _doubted(self, intent: Intent) -> bool:
        back = self.scene.back.get(intent.key)
        if back is None or intent.acted_s is not None:
            return False
        text = f"an eval of step {back.step} came after the decision: whether the training began again, the next tells"
        self._say_wait(intent, back_code(intent, back), text)
        return True

    def _held(self, intents: Sequence[Intent]) -> Mapping[JobKey, Held]:
        """Return which of these stops the site's caps hold back now, and why."""
        asking = [self._asking(intent) for intent in intents if intent.acted_s is None]
        running = sum(job.gpus for job in self.scene.seen.snapshot.jobs if job.holds_gpus)
        return held_back(asking, self.scene.decisions, running, self.scene.rules.caps, self.scene.ledger.now_s)

    def _say_why(self, intent: Intent, why: Held) -> None:
        """Say once of each stop by which cap it is held."""
        self.scene.tally.add("held by caps")
        self._say_wait(intent, cap_code(intent, why), why.text)

    def _say_wait(self, intent: Intent, code: str, why: str) -> None:
        remark = Remark(intent.key.text, code, f"waits: {why}", self.scene.ledger.now_s)
        if (remark.subject, remark.code) not in self.scene.said:
            self.scene.ports.store.record(Changes(remarks=(remark,)))

    def _asking(self, intent: Intent) -> Decision:
        """Return the stop as caps weigh it: it waits from when it was due, after its notice."""
        watch = self.scene.watches.get(intent.key)
        return Decision(intent.key, watch.account if watch is not None else "", intent.gpus, intent.not_before_s)

    def _renewed(self, intent: Intent, job: Job | None) -> Intent:
        """Give up what the last look withdraws; leave all else as it is."""
        step = self.scene.step(intent, job)
        return self._take(intent, step) if isinstance(step, GiveUp) else intent

    def _look(self, intents: Sequence[Intent]) -> Mapping[str, Job] | None:
        try:
            return self.scene.ports.cluster.look([intent.key.job_id for intent in intents])
        except (Unavailable, Rejected) as error:
            self.scene.tally.trouble(f"last look: {error}")
            return None

    def _signal(self, intent: Intent, step: SendSignal) -> None:
        signal = step.signal
        text = f"{signal.name} to the batch script, then {signal.grace_s} s of grace, as the owner asked"
        intent = self.scene.moved(intent, State.SIGNALLED, text, acted_s=self.scene.ledger.now_s)
        try:
            self.scene.ports.cluster.signal(intent.key.job_id, signal.name)
        except Unavailable as error:
            self.scene.ledger.note(intent, "signal-failed", str(error))
            self.scene.tally.trouble(f"signal: {error}")
        except Rejected as error:
            self.scene.ledger.note(intent, "signal-failed", str(error), acted_s=None)
            self.scene.tally.trouble(f"signal: {error}")

    def _stop(self, intents: Sequence[Intent]) -> None:
        """Ask for the end of each job in its own way, all cancels together, then look at what came of it."""
        asked = self._requests.ask(intents)
        looked = (self._look([each.intent for each in asked]) if asked else None) or {}
        self._requests.book_refusals(asked, looked)
        jobs = [(each.intent, looked.get(each.intent.key.job_id)) for each in asked]
        cancelled = self._aftermath.note_cancelled(
            intent
            for intent, job in jobs
            if job is not None and isinstance(self.scene.step(intent, job), NoteCancelled)
        )
        for intent in cancelled:
            step = self.scene.step(intent, looked.get(intent.key.job_id))
            if isinstance(step, NoteNext):
                self._aftermath.take(intent, step)


def _notice(intent: Intent) -> str:
    """Return when and how the job will be stopped, if it will be."""
    at = when(intent, "this message")
    return at if intent.rung < Rung.ENFORCE else f"{at}; {how(intent.action)}"
