"""The life of an intent: a stop that was decided, as a transition table, and the one next step to take.

Invariant: an intent is only closed by an observed end of its job, a veto, an undo, or a reason it was given up for.
Whatever step the process dies in, `next_step` on what is then observed leads to the same end.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from evalstopd.core.again import Kind, Return
from evalstopd.core.asking import pause_s
from evalstopd.core.model import Ending, JobKey, Life, Phase, Rung, StopAction
from evalstopd.core.watch import Pin, PinState
from evalstopd.core.wishes import Signal


class State(StrEnum):
    """Where an intent stands."""

    PLANNED = "planned"
    WARNED = "warned"
    PROMOTED = "promoted"
    SIGNALLED = "signalled"
    CANCELLED = "cancelled"
    HELD = "held"
    CONFIRMED = "confirmed"
    UNDONE = "undone"
    VETOED = "vetoed"
    ABANDONED = "abandoned"


_GIVEN_UP = frozenset({State.VETOED, State.ABANDONED})
TRANSITIONS: Mapping[State, frozenset[State]] = MappingProxyType(
    {
        State.PLANNED: frozenset({State.WARNED}) | _GIVEN_UP,
        State.WARNED: frozenset({State.PROMOTED}) | _GIVEN_UP,
        State.PROMOTED: frozenset({State.SIGNALLED, State.CANCELLED}) | _GIVEN_UP,
        State.SIGNALLED: frozenset({State.CANCELLED}) | _GIVEN_UP,
        State.CANCELLED: frozenset({State.HELD, State.CONFIRMED, State.UNDONE, State.ABANDONED}),
        State.HELD: frozenset({State.UNDONE, State.CONFIRMED}),
        State.CONFIRMED: frozenset({State.UNDONE}),
        State.UNDONE: frozenset(),
        State.VETOED: frozenset(),
        State.ABANDONED: frozenset(),
    }
)
# An undo may still come after a confirmed stop, but nothing waits for it.
CLOSED = frozenset({State.CONFIRMED, State.UNDONE, State.VETOED, State.ABANDONED})
_SIGNALLED = frozenset({State.SIGNALLED, State.CANCELLED})
REQUEUED_ENDS = frozenset({"REQUEUED", "PREEMPTED"})
"""How a life ends whose job goes on in a later one."""


UNNAMED = "the comment does not name the metric (evalstop_metric=)"
"""So begins what is said against a stop by a metric that may be a stranger's choice."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a stop was decided on, frozen: later points never change it.

    `best_step` is the maximum over the curve. `chosen_step` has the best smoothed score of it and the pinned
    checkpoints, for rules that reckon with noise; None for others. `k_before_step` is where the paper
    takes its checkpoint (k evals before the trigger), only recorded. `stderrs` are the scores' standard errors,
    empty where none was logged. `dataset` is the one whose evals these are, where the metric had those of several and
    they were told apart. `corroborated` says by which log of the owner's the ceiling of an open server was
    lifted for this stop; empty where it was not. `contradicted` says what in the owner's log speaks against the evals
    of a job that only its owner's word lifts above that ceiling, or that nothing of the owner's names its metric
    (`unnamed`): it is warned of, not stopped; empty else.
    """

    rule: str
    metric: str
    mode: str
    run_id: str
    proof: str
    two_way: bool
    steps: tuple[int, ...]
    scores: tuple[float, ...]
    trigger_step: int
    best_step: int
    best_score: float
    k_before_step: int | None
    declines: int
    reason: str
    settings_hash: str = ""
    version: str = ""
    chosen_step: int | None = None
    stderrs: tuple[float | None, ...] = ()
    corroborated: str = ""
    dataset: str = ""
    contradicted: str = ""

    @property
    def kept_step(self) -> int:
        """Return the step whose checkpoint is kept: the one chosen, else the maximum's."""
        return self.best_step if self.chosen_step is None else self.chosen_step

    @property
    def unnamed(self) -> bool:
        """Tell whether all that speaks against the stop is that nothing of the owner's names its metric."""
        return self.contradicted.startswith(UNNAMED)


@dataclass(frozen=True, slots=True)
class Intent:
    """A decided stop.

    `not_before_s` ends the owner's notice; `cancel_tries` counts requests to end the job that were sent or about to
    be, `unsure` those of them of which it is not known whether Slurm heard them, `refused` those beside them that it
    refused, as this account has no right to; `asked_s` is when the last of all was made. `events` is how many lines
    its history has; `telling` names a message of which it is not known whether it was sent; `told_s` is when the
    owner was told by an early warning that counts as the notice. `acted_s` is when the running job was first acted
    on. `kept_s` (seconds since the epoch) is when the work began that is lost by going back to the kept checkpoint.
    `held_life` is the life after its own that the request acted on: in which the job waits, held, or which was found
    ending, as the job had been requeued before the cancel. `model` says where the checkpoint stands in the tracker's
    model registry (core/registry): empty where that is not wanted.
    """

    key: JobKey
    life: Life
    rung: Rung
    evidence: Evidence
    created_s: float
    not_before_s: float
    state: State = State.PLANNED
    changed_s: float = 0.0
    cancel_tries: int = 0
    events: int = 1
    telling: str = ""
    signal: Signal | None = None
    note: str = ""
    kept_path: str = ""
    user: str = ""
    nodes: tuple[str, ...] = ()
    gpus: int = 0
    ending: Ending | None = None
    handed_to: tuple[str, ...] = ()
    told_s: float | None = None
    acted_s: float | None = None
    account: str = ""
    action: StopAction = StopAction.CANCEL
    kept_s: float | None = None
    held_life: Life | None = None
    model: str = ""
    asked_s: float | None = None
    unsure: int = 0
    refused: int = 0

    @property
    def id(self) -> str:
        """Return the intent's name: one per job, life and triggering step."""
        return f"{self.key.text}:{self.life.restarts}:{self.evidence.trigger_step}"

    @property
    def closed(self) -> bool:
        """Tell whether nothing is left to do."""
        return self.state in CLOSED

    @property
    def signalled(self) -> bool:
        """Tell whether its job was sent the owner's signal: one that was refused leaves no moment of an act."""
        return self.signal is not None and self.acted_s is not None and self.state in _SIGNALLED


@dataclass(frozen=True, slots=True)
class IntentEvent:
    """One line of an intent's append-only history; `seq` counts from 0."""

    intent_id: str
    seq: int
    at_s: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class WouldBeStop:
    """A stop that the observe rung only books: what would have been done, and on what evidence.

    `wished` tells that nothing but its owner's word kept the job there.
    """

    key: JobKey
    life: Life
    at_s: float
    evidence: Evidence
    wished: bool = False


@dataclass(frozen=True, slots=True)
class Situation:
    """What this pass sees of an intent's job.

    `phase` is None where the queue does not list the job. `same_life` holds id, owner, submit time and
    restarts together, `same_terms` rule, metric, direction and dataset. `fresh` tells whether this pass read the run's
    points well. `next_life` is the life of the same job after the intent's, if it is in one; `held` tells whether
    it waits there until it is released, `later` how the intent's `held_life` ended. `logged_models` tells whether
    a logged model may be what the stop rests on. `unread` says why the run's points were not read, where that is the
    run's own (it is deleted, say), not the tracker's. `back` is where the training began again, or may have, since the
    decision, at a step that was decided on. `unasked` tells whether the rung is no higher only because the comment has
    lost the owner's `evalstop=enforce`, on which alone the points of an open server counted.
    """

    phase: Phase | None
    same_life: bool
    keep: bool
    rung: Rung
    fresh: bool
    stale: bool
    best_step: int | None
    pin: Pin | None
    killed: bool
    same_terms: bool = True
    ending: Ending | None = None
    next_life: Life | None = None
    held: bool = False
    later: Ending | None = None
    logged_models: bool = False
    unread: str = ""
    back: Return | None = None
    unasked: bool = False


@dataclass(frozen=True, slots=True)
class Warn:
    """Tell the owner what was decided and when it will be done."""


@dataclass(frozen=True, slots=True)
class Promote:
    """Publish the verified pin, or the logged model, as best."""

    pin: Pin


@dataclass(frozen=True, slots=True)
class SendSignal:
    """Give the owner's script the signal it asked for."""

    signal: Signal


@dataclass(frozen=True, slots=True)
class Cancel:
    """Ask Slurm to end the job, or to requeue and hold it, after a last look."""


@dataclass(frozen=True, slots=True)
class NoteCancelled:
    """Record that a request to cancel was seen to take effect."""


@dataclass(frozen=True, slots=True)
class NoteNext:
    """Record that the request to cancel was followed by the end of the job's next life."""

    life: Life


@dataclass(frozen=True, slots=True)
class Confirm:
    """Close the intent on the observed end; `next_life` tells whether that is of the life after the intent's."""

    ending: Ending
    next_life: bool = False


@dataclass(frozen=True, slots=True)
class Hold:
    """Record that the job's life ended and that it waits, held, in its next one."""

    ending: Ending
    life: Life


@dataclass(frozen=True, slots=True)
class Undo:
    """Close the intent: its job was let go on."""

    how: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Close the intent without a stop: vetoed or abandoned; `found` is the checkpoint that was not good enough.

    `over` tells that its owner need not hear of it: the job's life is over, or the kill switch wants silence.
    """

    state: State
    why: str
    found: Pin | None = None
    over: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do in this pass."""

    why: str


Step = Warn | Promote | SendSignal | Cancel | NoteCancelled | NoteNext | Confirm | Hold | Undo | GiveUp | Wait
UNKNOWN_END = "UNKNOWN"
_CANCELLED_ENDS = ("CANCELLED",)
_MOST_CANCELS = 5
# So long is the end of a next life waited for; accounting may be away meanwhile. Seconds.
_PATIENCE_S = 3600.0
# Slurm writes whole seconds, by a clock of its own.
_CLOCKS_S = 2.0
CANCELLING = (State.PROMOTED, State.SIGNALLED)
ANNOUNCED = frozenset({State.WARNED, *CANCELLING})
"""In these its owner believes that the job will be stopped, on the enforce rung."""
_MAYBE_RUNNING = (Phase.RUNNING, Phase.SUSPENDED, Phase.UNKNOWN)


def move(intent: Intent, to: State, at_s: float) -> Intent:
    """Return the intent in its next state. Raises ValueError for a move the table does not have."""
    if to not in TRANSITIONS[intent.state]:
        raise ValueError(f"an intent cannot go from {intent.state} to {to}")
    return replace(intent, state=to, changed_s=at_s)


def next_step(intent: Intent, see: Situation, now_s: float) -> Step:
    """Return the one step to take now; pure, so that a repeated pass repeats the answer."""
    if intent.closed:
        return Wait("closed")
    if intent.state is State.CANCELLED:
        return _next_that_is_over(intent, see) or _after_cancel(intent, see, now_s)
    if intent.state is State.HELD:
        return _while_held(intent, see)
    asked = intent.cancel_tries > 0 or intent.signalled
    if asked and intent.state in CANCELLING and not _may_be_running(see):
        return NoteCancelled()
    return _withdrawn(intent, see) or _onward(intent, see, now_s)


def _after_cancel(intent: Intent, see: Situation, now_s: float) -> Step:
    ending = see.ending
    if ending is None:
        return Wait("the end is not seen yet")
    if intent.held_life is not None and ending.state in REQUEUED_ENDS and not _goes_on(see):
        return _after_next(intent, see.later, ending, now_s)
    why = _no_stop(intent, ending)
    if why:
        return GiveUp(State.ABANDONED, why)
    if intent.action is StopAction.CANCEL or ending.state not in REQUEUED_ENDS or _is_gone(see):
        return Confirm(ending)
    if see.phase is Phase.PENDING and see.next_life is not None and see.held:
        return Hold(ending, see.next_life)
    return Undo("it was not held when it was seen again") if _goes_on(see) else Wait("its life is still ending")


def _next_that_is_over(intent: Intent, see: Situation) -> NoteNext | None:
    """Note the next life of a job, once, where it ends or has ended when a cancel was asked for.

    A job that was requeued and ran again before scancel acted cannot be told from the one that was looked at. While
    the first life still ends, Slurm may count the restart already, but not yet the new submit time.
    """
    later, asked = see.next_life, intent.action is StopAction.CANCEL and intent.cancel_tries > 0
    if later is None or not asked or intent.held_life is not None or see.phase not in (Phase.ENDING, Phase.ENDED):
        return None
    return NoteNext(later) if later.submitted_s > intent.life.submitted_s else None


def _after_next(intent: Intent, later: Ending | None, ending: Ending, now_s: float) -> Step:
    """Return what became of a stop whose job had been requeued: its next life's end may be by our request."""
    if later is None and now_s - intent.changed_s < _PATIENCE_S:
        return Wait("the end of its next life is not seen yet")
    if later is None or later.state == UNKNOWN_END:
        return GiveUp(State.ABANDONED, f"the job was {ending.state}, and how its next life ended could not be learned")
    ours = _by_request(intent, later)
    return Confirm(later, next_life=True) if ours else GiveUp(State.ABANDONED, _by_itself(ending))


def _by_request(intent: Intent, later: Ending) -> bool:
    """Tell whether an end came between the first request and the moment at which it was seen."""
    first_s = intent.created_s if intent.acted_s is None else intent.acted_s
    in_time = later.ended_s is None or first_s - _CLOCKS_S <= later.ended_s <= intent.changed_s + _CLOCKS_S
    return later.state in _CANCELLED_ENDS and in_time


def _by_itself(ending: Ending) -> str:
    return f"the job ended by itself before the cancel: {ending.state}"


def _no_stop(intent: Intent, ending: Ending) -> str:
    """Return why an end is no stop of ours; empty for one that is.

    An end after the owner's signal is: a script that catches it ends as it likes, another is killed by it. One that
    is requeued goes on, and nobody had asked it to end.
    """
    requeued = ending.state in REQUEUED_ENDS
    if ending.state == UNKNOWN_END:
        return "how the job ended could not be learned"
    if intent.signalled and requeued and not intent.cancel_tries:
        return f"the job was requeued after the signal, and goes on: {ending.state}"
    by_signal = intent.signalled and not requeued
    if intent.action is StopAction.CANCEL and not by_signal and ending.state not in _CANCELLED_ENDS:
        return _by_itself(ending)
    return ""


def _while_held(intent: Intent, see: Situation) -> Step:
    """Return what became of a held job. Whether one that ended as cancelled ever ran again is not known."""
    if _is_gone(see):
        ran = see.later is not None and see.later.state not in ("CANCELLED", UNKNOWN_END)
        return (
            Undo("it was released and has ended since") if ran else Confirm(intent.ending or Ending(UNKNOWN_END, None))
        )
    if see.next_life == intent.held_life and (see.held or see.phase is Phase.UNKNOWN):
        return Wait("it is held until somebody releases it")
    return Undo("it was released")


def _is_gone(see: Situation) -> bool:
    """Tell whether the queue has this job no more, or another one under its id."""
    return see.phase in (None, Phase.ENDED) or (see.next_life is None and not see.same_life)


def _goes_on(see: Situation) -> bool:
    """Tell whether a later life is seen; while a life ends, Slurm already counts the restart."""
    return see.next_life is not None and see.phase in (Phase.PENDING, Phase.RUNNING, Phase.SUSPENDED)


def _may_be_running(see: Situation) -> bool:
    if see.ending is not None:
        return False
    return see.phase is None or (see.same_life and see.phase in _MAYBE_RUNNING)


def _withdrawn(intent: Intent, see: Situation) -> GiveUp | None:
    """Return why an intent that has not cancelled anything yet is given up, if it is.

    A stop latches within its life: only these withdraw it, not a later rise that is no new best.
    """
    if see.keep:
        return GiveUp(State.VETOED, "the comment says evalstop=keep")
    over = (
        (see.ending is not None, f"the job ended by itself: {see.ending.state if see.ending else ''}"),
        (see.phase is not None and not see.same_life, "the job id now names another job or life"),
        (see.phase in (Phase.PENDING, Phase.ENDING, Phase.ENDED), "the job no longer runs"),
        (see.killed, "the kill switch is set"),
    )
    reasons = (
        (see.rung < intent.rung, _lowered(see)),
        (see.rung > intent.rung, f"{_risen(intent, see.rung)}: its next eval decides anew"),
        (not see.same_terms, "the job is now judged by another rule, metric or dataset"),
        (see.back is not None and see.back.kind is Kind.RESTART, _begun_again(see.back)),
        (see.best_step not in (None, intent.evidence.best_step), f"a new best score at step {see.best_step}"),
        (see.stale, f"{f'{see.unread}, so ' if see.unread else ''}its evals could not be read for too long"),
    )
    all_reasons = (*((each, True) for each in over), *((each, False) for each in reasons))
    return next((GiveUp(State.ABANDONED, why, over=past) for (holds, why), past in all_reasons if holds), None)


def _begun_again(back: Return | None) -> str:
    step = back.step if back is not None else ""
    return f"the training began again at step {step}: the evals that were decided on are no longer its own"


def _lowered(see: Situation) -> str:
    why = "the comment no longer says evalstop=enforce: " if see.unasked else ""
    return f"{why}the job's rung is now {see.rung.word}"


def _risen(intent: Intent, rung: Rung) -> str:
    against = intent.evidence.contradicted
    if intent.evidence.unnamed:
        return "the owner has named the metric by now"
    return "the owner's log bears the evals out now" if against else f"the job's rung is now {rung.word}"


def _onward(intent: Intent, see: Situation, now_s: float) -> Step:
    """Return the next step of an intent that nothing withdraws."""
    if see.phase is not Phase.RUNNING:
        return Wait("the job is not seen running")
    if intent.state is State.PLANNED:
        return Warn()
    waits = (
        (intent.rung < Rung.ENFORCE, "the warn rung stops nothing"),
        (now_s < intent.not_before_s, "the owner's notice is running"),
        (not see.fresh, "its evals were not read in this pass"),
    )
    waiting = next((Wait(why) for holds, why in waits if holds), None)
    if waiting is not None:
        return waiting
    return _promotion(see) if intent.state is State.WARNED else _ending(intent, now_s)


def _ending(intent: Intent, now_s: float) -> Step:
    """Return the signal that the owner asked for, the wait for its grace, or the cancel.

    What Slurm took and did not do is given up; what it may not have heard, or refused, is asked for again.
    """
    if intent.signal is not None and intent.state is State.PROMOTED:
        return SendSignal(intent.signal)
    if intent.signal is not None and now_s < intent.changed_s + intent.signal.grace_s:
        return Wait("the owner's grace is running")
    if intent.asked_s is not None and now_s < intent.asked_s + pause_s(intent.id, intent.cancel_tries, intent.refused):
        return Wait("it is asked for again after a while")
    if intent.cancel_tries - intent.unsure >= _MOST_CANCELS:
        return GiveUp(State.ABANDONED, f"still running after {_MOST_CANCELS} cancels")
    return Cancel()


def _promotion(see: Situation) -> Step:
    """Stop only on a verified pin, or on a logged model where that counts: without one the stop becomes a warning."""
    pin = see.pin
    if pin is None:
        return GiveUp(State.ABANDONED, "no safe checkpoint: none was pinned")
    if pin.is_lost(logged_models=see.logged_models):
        alone = pin.state is PinState.LOGGED
        why = f"it is the logged model {pin.path} alone, which no stop rests on here" if alone else pin.why
        return GiveUp(State.ABANDONED, f"no safe checkpoint: {why}", pin if alone else None)
    held = pin.holds(logged_models=see.logged_models)
    return Promote(pin) if held else Wait("its best checkpoint is not pinned yet")
