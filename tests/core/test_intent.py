"""The life of an intent: the table, what withdraws a stop, and that any interrupted pass converges."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.again import Kind, Return
from evalstopd.core.intent import (
    CLOSED,
    TRANSITIONS,
    Cancel,
    Confirm,
    Evidence,
    GiveUp,
    Hold,
    Intent,
    NoteCancelled,
    NoteNext,
    Promote,
    SendSignal,
    Situation,
    State,
    Undo,
    Wait,
    Warn,
    move,
    next_step,
)
from evalstopd.core.model import Ending, JobKey, Life, Phase, Rung, StopAction
from evalstopd.core.watch import Pin, PinState
from evalstopd.core.wishes import Signal

KEY = JobKey("c", "7", 1000, 100)
EVIDENCE = Evidence(
    rule="k-declines:k=2", metric="m", mode="max", run_id="r", proof="comment", two_way=True, steps=(1, 2, 3),
    scores=(3.0, 2.0, 1.0), trigger_step=3, best_step=1, best_score=3.0, k_before_step=1, declines=2, reason="it fell",
)  # fmt: skip
INTENT = Intent(KEY, Life(0, 100), Rung.ENFORCE, EVIDENCE, created_s=50.0, not_before_s=60.0, changed_s=50.0)
PIN = Pin(KEY, 1, 3.0, PinState.PINNED, 40.0, path="/p")
GOOD = Situation(
    phase=Phase.RUNNING, same_life=True, keep=False, rung=Rung.ENFORCE, fresh=True, stale=False, best_step=1,
    pin=PIN, killed=False,
)  # fmt: skip
CANCELLED_END = Ending("CANCELLED", 70.0)
BEFORE_CANCEL = (State.PLANNED, State.WARNED, State.PROMOTED, State.SIGNALLED)


def at(state: State, **fields: object) -> Intent:
    return replace(INTENT, state=state, **fields)  # type: ignore[arg-type]


def test_a_stop_goes_through_warning_notice_promotion_cancel_and_confirmation() -> None:
    assert next_step(at(State.PLANNED), GOOD, 50.0) == Warn()
    assert next_step(at(State.WARNED), GOOD, 59.9) == Wait("the owner's notice is running")
    assert next_step(at(State.WARNED), GOOD, 60.0) == Promote(PIN)
    assert next_step(at(State.PROMOTED), GOOD, 60.0) == Cancel()
    ended = replace(GOOD, phase=None, same_life=False, ending=CANCELLED_END)
    assert next_step(at(State.PROMOTED, cancel_tries=1), ended, 61.0) == NoteCancelled()
    assert next_step(at(State.CANCELLED, cancel_tries=1), ended, 61.0) == Confirm(CANCELLED_END)


def test_the_owner_who_asked_for_a_signal_gets_it_and_the_grace() -> None:
    signal = Signal("USR1", 30)

    assert next_step(at(State.PROMOTED, signal=signal), GOOD, 60.0) == SendSignal(signal)
    signalled = at(State.SIGNALLED, signal=signal, changed_s=60.0)
    assert next_step(signalled, GOOD, 89.0) == Wait("the owner's grace is running")
    assert next_step(signalled, GOOD, 90.0) == Cancel()


@pytest.mark.parametrize("end", ["COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"])
@pytest.mark.parametrize("keep", [False, True])
def test_an_end_of_the_signalled_life_is_the_stop_and_no_veto_comes_after_it(end: str, keep: bool) -> None:
    signalled = at(State.SIGNALLED, signal=Signal("USR1", 30), changed_s=60.0, acted_s=60.0)
    ended = replace(GOOD, phase=None, same_life=False, ending=Ending(end, 70.0), keep=keep)

    assert next_step(signalled, ended, 71.0) == NoteCancelled()
    assert next_step(signalled, replace(GOOD, phase=Phase.ENDING), 71.0) == NoteCancelled()
    assert next_step(replace(signalled, state=State.CANCELLED), ended, 71.0) == Confirm(Ending(end, 70.0))
    assert isinstance(next_step(replace(signalled, acted_s=None), ended, 71.0), GiveUp)


@pytest.mark.parametrize(("tries", "step"), [(0, GiveUp), (1, Undo)])
def test_a_requeue_after_the_signal_alone_is_no_undo_of_anything(tries: int, step: type) -> None:
    cancelled = at(
        State.CANCELLED, signal=Signal("USR1", 30), acted_s=60.0, cancel_tries=tries, action=StopAction.REQUEUE_HOLD
    )
    again = replace(GOOD, phase=Phase.PENDING, same_life=False, ending=Ending("REQUEUED", 70.0), next_life=Life(1, 70))

    assert isinstance(next_step(cancelled, again, 71.0), step)


@pytest.mark.parametrize("state", BEFORE_CANCEL)
@pytest.mark.parametrize(
    ("change", "to"),
    [
        ({"keep": True}, State.VETOED),
        ({"best_step": 9}, State.ABANDONED),
        ({"same_life": False}, State.ABANDONED),
        ({"phase": Phase.PENDING}, State.ABANDONED),
        ({"phase": Phase.ENDING}, State.ABANDONED),
        ({"killed": True}, State.ABANDONED),
        ({"rung": Rung.OBSERVE}, State.ABANDONED),
        ({"stale": True}, State.ABANDONED),
        ({"same_terms": False}, State.ABANDONED),
        ({"phase": None, "same_life": False, "ending": Ending("COMPLETED", 1.0)}, State.ABANDONED),
    ],
)
def test_these_and_only_these_withdraw_a_stop(state: State, change: dict[str, object], to: State) -> None:
    step = next_step(at(state), replace(GOOD, **change), 100.0)  # type: ignore[arg-type]

    assert isinstance(step, GiveUp)
    assert step.state is to


@pytest.mark.parametrize("state", BEFORE_CANCEL)
def test_nothing_is_done_to_a_job_that_is_not_seen_running(state: State) -> None:
    for phase in (None, Phase.SUSPENDED, Phase.UNKNOWN):
        seen = replace(GOOD, phase=phase, same_life=phase is not None)

        assert isinstance(next_step(at(state), seen, 100.0), Wait)


@pytest.mark.parametrize("state", [State.WARNED, State.PROMOTED, State.SIGNALLED])
def test_without_a_fresh_reading_nothing_is_done(state: State) -> None:
    assert next_step(at(state), replace(GOOD, fresh=False), 100.0) == Wait("its evals were not read in this pass")


@pytest.mark.parametrize("state", [State.WARNED, State.PROMOTED])
def test_the_warn_rung_stops_nothing(state: State) -> None:
    intent = replace(at(state), rung=Rung.WARN)

    assert next_step(intent, replace(GOOD, rung=Rung.WARN), 1e9) == Wait("the warn rung stops nothing")


@pytest.mark.parametrize("state", [State.PLANNED, State.WARNED])
def test_a_warning_gives_way_once_the_job_may_be_stopped(state: State) -> None:
    """Else the open warning would keep every later stop out."""
    step = next_step(replace(at(state), rung=Rung.WARN), GOOD, 100.0)

    assert step == GiveUp(State.ABANDONED, "the job's rung is now enforce: its next eval decides anew")


def test_a_warning_that_the_owners_log_does_not_contradict_any_more_gives_way_and_says_so() -> None:
    contradicted = replace(at(State.WARNED), rung=Rung.WARN, evidence=replace(EVIDENCE, contradicted="a reason"))

    assert next_step(contradicted, GOOD, 100.0) == GiveUp(
        State.ABANDONED, "the owner's log bears the evals out now: its next eval decides anew"
    )


@pytest.mark.parametrize("pin", [None, replace(PIN, state=PinState.LOST), replace(PIN, state=PinState.DROPPED)])
def test_without_a_safe_checkpoint_the_stop_becomes_a_warning(pin: Pin | None) -> None:
    step = next_step(at(State.WARNED), replace(GOOD, pin=pin), 100.0)

    assert isinstance(step, GiveUp)
    assert step.state is State.ABANDONED
    assert "no safe checkpoint" in step.why


def test_a_pin_that_is_still_coming_is_waited_for() -> None:
    waiting = replace(GOOD, pin=replace(PIN, state=PinState.WANTED))

    assert next_step(at(State.WARNED), waiting, 100.0) == Wait("its best checkpoint is not pinned yet")


def test_a_cancel_is_repeated_only_while_the_same_life_is_seen_running() -> None:
    tried = at(State.PROMOTED, cancel_tries=1)

    assert next_step(tried, GOOD, 100.0) == Cancel()
    requeued = replace(GOOD, phase=Phase.PENDING, same_life=False)
    assert next_step(tried, requeued, 100.0) == NoteCancelled()
    assert isinstance(next_step(at(State.PROMOTED, cancel_tries=5), GOOD, 100.0), GiveUp)


def test_an_end_that_nobody_can_tell_is_abandoned_not_confirmed() -> None:
    seen = replace(GOOD, phase=None, same_life=False, ending=Ending("UNKNOWN", None, source="none"))

    assert isinstance(next_step(at(State.CANCELLED, cancel_tries=1), seen, 100.0), GiveUp)


@pytest.mark.parametrize("state", sorted(CLOSED))
def test_a_closed_intent_stays_closed(state: State) -> None:
    assert next_step(at(state), replace(GOOD, keep=True), 100.0) == Wait("closed")
    assert TRANSITIONS[state] <= {State.UNDONE}


HELD_LIFE = Life(1, 71)
REQUEUED_END = Ending("REQUEUED", 70.0)
WAITS = replace(GOOD, phase=Phase.PENDING, same_life=False, next_life=HELD_LIFE, held=True, ending=REQUEUED_END)
REVERSIBLE = [StopAction.REQUEUE_HOLD, StopAction.HOLD_OR_CANCEL]


@pytest.mark.parametrize("action", REVERSIBLE)
def test_a_reversible_stop_is_held_once_the_life_is_over_and_the_job_waits_held(action: StopAction) -> None:
    cancelled = at(State.CANCELLED, action=action, cancel_tries=1)

    assert next_step(at(State.PROMOTED, action=action), GOOD, 60.0) == Cancel()
    ending = replace(WAITS, phase=Phase.ENDING, held=False, next_life=Life(1, 100), ending=None)
    assert next_step(at(State.PROMOTED, action=action, cancel_tries=1), ending, 61.0) == NoteCancelled()
    assert next_step(cancelled, ending, 61.0) == Wait("the end is not seen yet")
    assert next_step(cancelled, replace(ending, ending=REQUEUED_END), 61.0) == Wait("its life is still ending")
    assert next_step(cancelled, WAITS, 61.0) == Hold(REQUEUED_END, HELD_LIFE)


@pytest.mark.parametrize("action", REVERSIBLE)
@pytest.mark.parametrize(
    "see",
    [
        replace(WAITS, ending=Ending("COMPLETED", 70.0)),
        replace(WAITS, ending=CANCELLED_END),
        replace(WAITS, phase=None, next_life=None, held=False),
        replace(WAITS, phase=Phase.RUNNING, next_life=None, held=False),
    ],
)
def test_a_job_that_ended_otherwise_or_is_gone_is_confirmed_as_it_ended(action: StopAction, see: Situation) -> None:
    """The last case is another job under the same id."""
    step = next_step(at(State.CANCELLED, action=action, cancel_tries=1), see, 61.0)

    assert see.ending is not None
    assert step == Confirm(see.ending)


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.RUNNING, Phase.SUSPENDED])
def test_a_job_that_goes_on_before_it_was_seen_held_counts_as_undone(phase: Phase) -> None:
    """Its owner was quicker than the next pass, or another requeued it: in neither case it is stopped again."""
    see = replace(WAITS, phase=phase, held=False)

    assert isinstance(next_step(at(State.CANCELLED, action=StopAction.REQUEUE_HOLD), see, 61.0), Undo)


HELD = at(State.HELD, action=StopAction.REQUEUE_HOLD, held_life=HELD_LIFE, ending=REQUEUED_END)


@pytest.mark.parametrize("change", [{}, {"keep": True}, {"killed": True}, {"stale": True}, {"rung": Rung.OFF}])
def test_a_held_job_waits_for_its_release_alone(change: dict[str, object]) -> None:
    assert isinstance(next_step(HELD, replace(WAITS, **change), 1e9), Wait)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"held": False},
        {"held": False, "phase": Phase.RUNNING},
        {"held": False, "phase": Phase.ENDING},
        {"next_life": Life(2, 90)},
        {"phase": None, "next_life": None, "held": False, "later": Ending("COMPLETED", 99.0)},
    ],
)
def test_a_held_job_that_went_on_was_undone(change: dict[str, object]) -> None:
    assert isinstance(next_step(HELD, replace(WAITS, **change), 99.0), Undo)  # type: ignore[arg-type]


@pytest.mark.parametrize("later", [None, CANCELLED_END, Ending("UNKNOWN", None)])
def test_a_held_job_that_left_the_queue_without_running_is_confirmed(later: Ending | None) -> None:
    gone = replace(WAITS, phase=None, next_life=None, held=False, later=later)

    assert next_step(HELD, gone, 99.0) == Confirm(REQUEUED_END)


NEXT = Life(1, 163)
HIT = at(State.CANCELLED, cancel_tries=1, acted_s=60.0, changed_s=64.0)
NOTED = replace(HIT, held_life=NEXT)
NEXT_ENDS = replace(GOOD, phase=Phase.ENDING, same_life=False, next_life=NEXT, ending=REQUEUED_END)
NEXT_GONE = replace(NEXT_ENDS, phase=None, next_life=None)


@pytest.mark.parametrize("phase", [Phase.ENDING, Phase.ENDED])
@pytest.mark.parametrize("ending", [None, REQUEUED_END])
def test_a_next_life_that_is_over_after_our_cancel_is_noted_once(phase: Phase, ending: Ending | None) -> None:
    see = replace(NEXT_ENDS, phase=phase, ending=ending)

    assert next_step(HIT, see, 64.0) == NoteNext(NEXT)
    assert isinstance(next_step(NOTED, see, 64.0), Wait)


@pytest.mark.parametrize(
    ("intent", "change"),
    [
        (HIT, {"phase": Phase.PENDING}),
        (HIT, {"phase": Phase.RUNNING}),
        (HIT, {"next_life": Life(1, 100)}),
        (replace(HIT, cancel_tries=0), {}),
        (replace(HIT, action=StopAction.REQUEUE_HOLD), {}),
    ],
)
def test_a_life_that_goes_on_still_ends_or_was_not_asked_to_end_is_no_next_one_of_a_stop(
    intent: Intent, change: dict[str, object]
) -> None:
    step = next_step(intent, replace(NEXT_ENDS, **change), 64.0)  # type: ignore[arg-type]

    assert not isinstance(step, NoteNext | Confirm)


@pytest.mark.parametrize("ended_s", [None, 58.0, 60.0, 66.0])
def test_the_end_of_a_next_life_by_our_cancel_is_the_stop(ended_s: float | None) -> None:
    later = Ending("CANCELLED", ended_s)

    assert next_step(NOTED, replace(NEXT_GONE, later=later), 90.0) == Confirm(later, next_life=True)


@pytest.mark.parametrize(
    "later", [Ending("COMPLETED", 62.0), Ending("FAILED", 62.0), Ending("CANCELLED", 57.9), Ending("CANCELLED", 66.1)]
)
def test_a_next_life_that_ended_by_itself_or_at_another_time_is_no_stop(later: Ending) -> None:
    step = next_step(NOTED, replace(NEXT_GONE, later=later), 90.0)

    assert step == GiveUp(State.ABANDONED, "the job ended by itself before the cancel: REQUEUED")


@pytest.mark.parametrize(("ended_s", "stop"), [(48.0, True), (66.0, True), (47.9, False), (66.1, False)])
def test_where_it_is_not_known_when_the_cancel_was_asked_for_it_was_not_before_the_decision(
    ended_s: float, stop: bool
) -> None:
    later = Ending("CANCELLED", ended_s)
    step = next_step(replace(NOTED, acted_s=None), replace(NEXT_GONE, later=later), 90.0)

    assert (step == Confirm(later, next_life=True)) is stop


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.RUNNING, Phase.SUSPENDED])
def test_a_job_that_lives_on_in_whatever_life_was_not_stopped(phase: Phase) -> None:
    see = replace(NEXT_ENDS, phase=phase, next_life=Life(2, 300), later=CANCELLED_END)

    assert next_step(NOTED, see, 90.0) == GiveUp(State.ABANDONED, "the job ended by itself before the cancel: REQUEUED")


def test_a_next_lifes_end_is_waited_for_but_not_for_ever() -> None:
    assert next_step(NOTED, NEXT_GONE, 3663.9) == Wait("the end of its next life is not seen yet")
    unknown = GiveUp(State.ABANDONED, "the job was REQUEUED, and how its next life ended could not be learned")
    assert next_step(NOTED, NEXT_GONE, 3664.0) == unknown
    assert next_step(NOTED, replace(NEXT_GONE, later=Ending("UNKNOWN", None)), 90.0) == unknown


def test_a_first_life_that_was_cancelled_is_the_stop_whatever_came_next() -> None:
    assert next_step(NOTED, replace(NEXT_GONE, ending=CANCELLED_END), 90.0) == Confirm(CANCELLED_END)


def test_a_move_the_table_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot go from planned to cancelled"):
        move(INTENT, State.CANCELLED, 1.0)


CHANGES = {
    "phase": st.sampled_from([None, *Phase]),
    "same_life": st.booleans(),
    "keep": st.booleans(),
    "rung": st.sampled_from(Rung),
    "fresh": st.booleans(),
    "stale": st.booleans(),
    "best_step": st.sampled_from([None, 1, 9]),
    "pin": st.sampled_from([None, *(replace(PIN, state=state) for state in PinState)]),
    "logged_models": st.booleans(),
    "killed": st.booleans(),
    "same_terms": st.booleans(),
    "ending": st.sampled_from([None, CANCELLED_END, REQUEUED_END, Ending("UNKNOWN", None)]),
    "next_life": st.sampled_from([None, HELD_LIFE]),
    "held": st.booleans(),
    "later": st.sampled_from([None, CANCELLED_END, Ending("COMPLETED", 99.0)]),
}
situations = st.fixed_dictionaries({}, optional=CHANGES).map(lambda changes: replace(GOOD, **changes))


@given(
    st.sampled_from(State), st.sampled_from(StopAction), situations, st.integers(0, 6), st.floats(0, 200), st.booleans()
)
def test_the_next_step_is_always_one_the_table_allows(
    state: State, action: StopAction, see: Situation, tries: int, now_s: float, noted: bool
) -> None:
    intent = at(state, action=action, cancel_tries=tries, held_life=HELD_LIFE if state is State.HELD or noted else None)
    step = next_step(intent, see, now_s)
    leads = {
        Warn: State.WARNED, Promote: State.PROMOTED, SendSignal: State.SIGNALLED, NoteCancelled: State.CANCELLED,
        Hold: State.HELD, Undo: State.UNDONE,
    }  # fmt: skip
    to = leads.get(type(step)) or (step.state if isinstance(step, GiveUp) else None)
    if isinstance(step, Confirm):
        to = State.CONFIRMED

    assert to is None or to in TRANSITIONS[state]


@given(st.sampled_from(State), situations, st.integers(0, 6), st.floats(0, 200))
def test_a_cancel_is_only_ever_the_answer_to_a_whole_picture(
    state: State, see: Situation, tries: int, now_s: float
) -> None:
    intent = at(state, cancel_tries=tries)
    if isinstance(next_step(intent, see, now_s), Cancel):
        assert see.phase is Phase.RUNNING
        assert see.same_life
        assert see.fresh
        assert not (see.keep)
        assert not (see.killed)
        assert not (see.stale)
        assert see.rung is Rung.ENFORCE
        assert see.same_terms
        assert now_s >= intent.not_before_s
        assert state in (State.PROMOTED, State.SIGNALLED)


def test_a_move_is_dated_and_changes_nothing_else() -> None:
    assert move(INTENT, State.WARNED, 51.0) == replace(INTENT, state=State.WARNED, changed_s=51.0)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"keep": True}, "the comment says evalstop=keep"),
        ({"ending": Ending("COMPLETED", 1.0)}, "the job ended by itself: COMPLETED"),
        ({"same_life": False}, "the job id now names another"),
        ({"phase": Phase.ENDED}, "the job no longer runs"),
        ({"killed": True}, "the kill switch is set"),
        ({"rung": Rung.OBSERVE}, "the job's rung is now observe"),
        (
            {"rung": Rung.WARN, "unasked": True},
            "the comment no longer says evalstop=enforce: the job's rung is now warn",
        ),
        ({"same_terms": False}, "the job is now judged by another"),
        ({"best_step": 9}, "a new best score at step 9"),
        ({"stale": True}, "its evals could not be read"),
        ({"stale": True, "unread": "its run is deleted"}, "its run is deleted, so its evals could not be read"),
        ({"back": Return(Kind.RESTART, 2, 3, 5)}, "the training began again at step 2: "),
    ],
)
def test_what_withdraws_a_stop_is_named(change: dict[str, object], why: str) -> None:
    step = next_step(at(State.WARNED), replace(GOOD, **change), 100.0)  # type: ignore[arg-type]

    assert isinstance(step, GiveUp)
    assert step.why.startswith(why)


@pytest.mark.parametrize("kind", [Kind.OPEN, Kind.APART])
def test_a_going_back_that_is_no_restart_does_not_withdraw_a_stop(kind: Kind) -> None:
    step = next_step(at(State.WARNED), replace(GOOD, back=Return(kind, 2, 3, 4)), 100.0)

    assert not isinstance(step, GiveUp)


def test_a_curve_that_could_not_be_read_is_no_new_best() -> None:
    assert next_step(at(State.WARNED), replace(GOOD, best_step=None), 60.0) == Promote(PIN)


def test_a_stop_without_a_checkpoint_says_what_became_of_it() -> None:
    lost = replace(PIN, state=PinState.LOST, why="rotated away")

    assert next_step(at(State.WARNED), replace(GOOD, pin=lost), 60.0) == GiveUp(
        State.ABANDONED, "no safe checkpoint: rotated away"
    )
    assert next_step(at(State.WARNED), replace(GOOD, pin=None), 60.0) == GiveUp(
        State.ABANDONED, "no safe checkpoint: none was pinned"
    )


def test_a_logged_model_holds_a_stop_only_where_the_site_lets_it_count() -> None:
    logged = replace(PIN, state=PinState.LOGGED, path="models:/m-1")
    counts = replace(GOOD, pin=logged, logged_models=True)
    why = "no safe checkpoint: it is the logged model models:/m-1 alone, which no stop rests on here"

    assert next_step(at(State.WARNED), counts, 60.0) == Promote(logged)
    assert next_step(at(State.WARNED), replace(GOOD, pin=logged), 60.0) == GiveUp(State.ABANDONED, why, logged)


@given(situations, st.floats(0, 200))
def test_a_promotion_is_only_ever_of_what_holds(see: Situation, now_s: float) -> None:
    step = next_step(at(State.WARNED), see, now_s)
    if isinstance(step, Promote):
        assert see.pin is not None
        assert see.pin.safe or (see.logged_models and see.pin.state is PinState.LOGGED)


def test_five_cancels_are_the_most() -> None:
    assert next_step(at(State.PROMOTED, cancel_tries=4), GOOD, 100.0) == Cancel()
    assert next_step(at(State.PROMOTED, cancel_tries=5), GOOD, 100.0) == GiveUp(
        State.ABANDONED, "still running after 5 cancels"
    )


def test_an_end_that_cannot_be_learned_closes_the_intent_as_abandoned() -> None:
    unknown = replace(GOOD, phase=None, same_life=False, ending=Ending("UNKNOWN", None))
    step = next_step(at(State.CANCELLED), unknown, 100.0)

    assert isinstance(step, GiveUp)
    assert step.state is State.ABANDONED
    assert step.why.startswith("how the job ended")


@pytest.mark.parametrize("end", ["REQUEUED", "PREEMPTED"])
def test_a_job_that_goes_on_though_it_was_to_be_cancelled_was_not_stopped_by_us(end: str) -> None:
    """Somebody else was faster: only a reversible stop is undone by going on."""
    step = next_step(at(State.CANCELLED), replace(WAITS, ending=Ending(end, 70.0)), 61.0)

    assert isinstance(step, GiveUp)
    assert step.state is State.ABANDONED
    assert step.why.startswith("the job ended by itself")
    assert step.why.endswith(end)


@pytest.mark.parametrize("end", ["COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL"])
@pytest.mark.parametrize("tries", [0, 1])
def test_a_job_that_ended_otherwise_than_by_the_cancel_was_not_stopped_by_us(end: str, tries: int) -> None:
    ended = replace(GOOD, phase=None, same_life=False, ending=Ending(end, 70.0))

    assert next_step(at(State.CANCELLED, cancel_tries=tries), ended, 71.0) == GiveUp(
        State.ABANDONED, f"the job ended by itself before the cancel: {end}"
    )


def test_why_a_stop_counts_as_undone_is_said() -> None:
    def how(intent: Intent, see: Situation) -> str:
        step = next_step(intent, see, 99.0)
        assert isinstance(step, Undo)
        return step.how

    cancelled = at(State.CANCELLED, action=StopAction.REQUEUE_HOLD)
    ended = replace(WAITS, phase=None, next_life=None, held=False, later=Ending("COMPLETED", 99.0))

    assert how(cancelled, replace(WAITS, held=False)).startswith("it was not held")
    assert how(HELD, replace(WAITS, held=False)) == "it was released"
    assert how(HELD, ended).startswith("it was released and has ended")


def test_a_held_job_that_squeue_cannot_place_is_waited_for() -> None:
    step = next_step(HELD, replace(WAITS, phase=Phase.UNKNOWN, held=False), 99.0)

    assert isinstance(step, Wait)
    assert step.why.startswith("it is held")
    assert isinstance(next_step(HELD, replace(WAITS, phase=Phase.UNKNOWN, next_life=Life(2, 90)), 99.0), Undo)


def test_a_held_job_whose_end_nobody_noted_is_confirmed_as_unknown() -> None:
    gone = replace(WAITS, phase=None, next_life=None, held=False)

    assert next_step(replace(HELD, ending=None), gone, 99.0) == Confirm(Ending("UNKNOWN", None))


def test_another_job_under_the_id_of_a_held_one_means_that_it_is_gone() -> None:
    other = replace(WAITS, phase=Phase.RUNNING, next_life=None, held=False)

    assert next_step(HELD, other, 99.0) == Confirm(REQUEUED_END)


def test_a_request_to_cancel_took_effect_once_the_life_is_over_or_the_id_is_anothers() -> None:
    tried = at(State.PROMOTED, cancel_tries=1)

    assert next_step(tried, replace(GOOD, same_life=False), 61.0) == NoteCancelled()
    assert next_step(tried, replace(GOOD, phase=Phase.ENDING), 61.0) == NoteCancelled()
    assert next_step(tried, replace(GOOD, ending=CANCELLED_END), 61.0) == NoteCancelled()
    for phase in (None, Phase.SUSPENDED, Phase.UNKNOWN):
        assert isinstance(next_step(tried, replace(GOOD, phase=phase), 61.0), Wait)


def test_a_job_that_is_not_seen_running_is_waited_for_in_words() -> None:
    step = next_step(at(State.WARNED), replace(GOOD, phase=Phase.SUSPENDED), 61.0)

    assert isinstance(step, Wait)
    assert step.why.startswith("the job is not seen running")


def test_an_intent_is_named_by_job_life_and_trigger() -> None:
    assert replace(INTENT, life=Life(2, 300)).id == "c:7:1000:100:2:3"
