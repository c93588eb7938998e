"""After the end: the outcome is confirmed, written into the run and told; a stop may be taken back."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from evalstopd.core.handover import handed_to
from evalstopd.core.intent import (
    REQUEUED_ENDS,
    Confirm,
    Hold,
    Intent,
    NoteCancelled,
    NoteNext,
    State,
    Undo,
    move,
)
from evalstopd.core.model import Ending, Life
from evalstopd.core.words import NEXT_LIFE, ended, kept, run_tags, sentence, undo_line
from evalstopd.errors import Rejected, Unavailable
from evalstopd.loop.ledger import Entry
from evalstopd.loop.scene import Scene
from evalstopd.loop.telling import STOPPED, UNDONE
from evalstopd.loop.undo import UndoDesk

_HANDOVER_S = 600.0
_WRITE_PATIENCE_S = 900.0


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What one pass does about jobs that were asked to end."""

    scene: Scene

    def take(self, intent: Intent, step: NoteCancelled | NoteNext | Confirm | Hold | Undo) -> Intent:
        """Take a step that follows a request to end the job."""
        match step:
            case NoteCancelled():
                return self.note_cancelled([intent])[0]
            case NoteNext(life=life):
                return self.scene.ledger.note(intent, "next-life", NEXT_LIFE, held_life=life)
            case Confirm():
                return self._held_gone(intent) if intent.state is State.HELD else self._confirm(intent, step)
            case Hold(ending=ending, life=life):
                return self._hold(intent, ending, life)
            case Undo(how=why):
                return self._undo(intent, why)

    def note_cancelled(self, intents: Iterable[Intent]) -> list[Intent]:
        """Note that these jobs were seen to be ending."""
        now_s, text = self.scene.ledger.now_s, "the job was seen to be ending"
        entries = [Entry(move(intent, State.CANCELLED, now_s), State.CANCELLED.value, text) for intent in intents]
        if not entries:
            return []
        self.scene.tally.add(State.CANCELLED.value, len(entries))
        return self.scene.ledger.enter(entries)

    def close_up(self, intents: Iterable[Intent]) -> None:
        """Note who got the GPUs of stopped jobs, and whose work a later job has taken up."""
        for intent in intents:
            if intent.state in (State.CONFIRMED, State.HELD) and not intent.handed_to:
                self._hand_over(intent)
        for intent, why in self._undo_desk.resumed():
            self._undo(intent, why)

    @property
    def _undo_desk(self) -> UndoDesk:
        return UndoDesk(self.scene.ports.store, self.scene.seen, self.scene.watches, self.scene.ledger)

    def _confirm(self, intent: Intent, step: Confirm) -> Intent:
        ending = step.ending
        if self.scene.ports.kill_switch.engaged():
            return intent
        written = self._write_run(intent, State.CONFIRMED, ending)
        if written is None:
            return intent
        how = f"{NEXT_LIFE}; {ended(intent, ending)}" if step.next_life else ended(intent, ending)
        text = f"{sentence(intent, done=True)}; {how}; {kept(intent)}; {undo_line(intent)}"
        note = f"{NEXT_LIFE}; {written}" if step.next_life else written
        intent = self.scene.moved(intent, State.CONFIRMED, text, ending=ending, note=note)
        return self._stopped(intent, text, written)

    def _hold(self, intent: Intent, ending: Ending, life: Life) -> Intent:
        """Note that the job's life ended and that it waits, held; its GPUs are free."""
        if self.scene.ports.kill_switch.engaged():
            return intent
        written = self._write_run(intent, State.HELD, ending)
        if written is None:
            return intent
        text = f"{sentence(intent, done=True)}; it waits in the queue, held; {kept(intent)}; {undo_line(intent)}"
        intent = self.scene.moved(intent, State.HELD, text, ending=ending, held_life=life, note=written)
        return self._stopped(intent, text, written)

    def _stopped(self, intent: Intent, text: str, written: str) -> Intent:
        self.scene.tally.add("freed GPU-seconds", self._freed_s(intent))
        intent = self.scene.ledger.note(intent, "run", written)
        intent = self.scene.ledger.note(intent, "telling", text, telling=STOPPED)
        receipt = self.scene.tell(intent, STOPPED, "your job was stopped, its best checkpoint is kept", text)
        return intent if receipt is None else self.scene.ledger.note(intent, receipt.event, receipt.text, telling="")

    def _freed_s(self, intent: Intent) -> int:
        """Return the GPU-seconds from a stop to the job's time limit; 0 for a job without one."""
        watch, ended_s = (
            self.scene.watches.get(intent.key),
            intent.ending.ended_s if intent.ending is not None else None,
        )
        if watch is None or watch.limit_end_s is None or ended_s is None:
            return 0
        return int(intent.gpus * max(0.0, watch.limit_end_s - ended_s))

    def _held_gone(self, intent: Intent) -> Intent:
        """Close a stop whose job left the queue without having been seen to run again."""
        self.scene.tag(replace(intent, state=State.CONFIRMED))
        return self.scene.moved(intent, State.CONFIRMED, "the held job is not in the queue any more")

    def _undo(self, intent: Intent, how: str) -> Intent:
        """Close a stop that was taken back, and tell the owner, who need not be the one who did it."""
        self.scene.tag(replace(intent, state=State.UNDONE))  # first: nobody comes back to a closed intent
        self.scene.tally.add(State.UNDONE.value)
        intent = self._undo_desk.undo(intent, how)
        text = f"the stop of job {intent.key.job_id} was undone: {how}; the job is not stopped again"
        intent = self.scene.ledger.note(intent, "telling", text, telling=UNDONE)
        receipt = self.scene.tell(intent, UNDONE, "the stop of your job was undone", text)
        return intent if receipt is None else self.scene.ledger.note(intent, receipt.event, receipt.text, telling="")

    def _write_run(self, intent: Intent, to: State, ending: Ending) -> str | None:
        """Write the outcome into the run if it is proven both ways; None asks for another try."""
        if not self.scene.may_write(intent):
            return "nothing was written to the run: its tags do not name the job"
        final = replace(intent, state=to)
        try:
            self.scene.ports.runs.tag(intent.evidence.run_id, run_tags(final))
            if ending.state in REQUEUED_ENDS:
                return f"run tagged; its status was left alone, the job was {ending.state}"
            return f"run tagged, status {self.scene.ports.runs.mark_killed(intent.evidence.run_id)}"
        except Rejected as error:
            return f"the run could not be written: {error}"
        except Unavailable as error:
            self.scene.tally.trouble(f"MLflow: {error}")
            late = self.scene.ledger.now_s - intent.changed_s > _WRITE_PATIENCE_S
            return f"the run could not be written: {error}" if late else None

    def _hand_over(self, intent: Intent) -> None:
        if self.scene.ledger.now_s - intent.changed_s > _HANDOVER_S:
            return
        takers = handed_to(intent, self.scene.seen.snapshot.jobs)
        if sum(job.gpus for job in takers) >= intent.gpus > 0:
            ids = tuple(job.job_id for job in takers)
            self.scene.ledger.note(intent, "handed", f"its {intent.gpus} GPUs went to {', '.join(ids)}", handed_to=ids)
