"""What is asked of Slurm for a moved job, what is written down before, and what a look at the job makes of it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.model import JobKey
from evalstopd.core.priorities import Change, Placed
from evalstopd.core.shift import Lever, Shift, ShiftState, Steer, asked_for, natural, observed, steer, taken_back

KEY = JobKey("c", "7", 1001, 100)
BY_NICE = Shift(KEY, Lever.NICE, nice=5, natural=1000, asked=-40, before=-40, asked_s=1.0, state=ShiftState.SET)
BY_PRIORITY = Shift(KEY, Lever.PRIORITY, 5, 1000, asked=1500, before=1500, asked_s=1.0, state=ShiftState.SET)
UP = Change(Placed("7", 7, 1020, 1010), 1050)


def looked(shift: Shift, value: int, reassert: int = 2) -> Shift:
    """Return the shift after a look that shows this value of its lever, and another one of the other."""
    priority, nice = (123_456, value) if shift.lever is Lever.NICE else (value, -123_456)
    return observed(shift, priority, nice, reassert)


@pytest.mark.parametrize("shift", [BY_NICE, BY_PRIORITY])
def test_what_was_asked_for_is_seen_in_effect(shift: Shift) -> None:
    asked = replace(shift, asked=1700, state=ShiftState.ASKED)

    assert looked(asked, 1700) == replace(asked, before=1700, state=ShiftState.SET)
    assert looked(shift, shift.asked) == shift


@pytest.mark.parametrize("shift", [BY_NICE, BY_PRIORITY])
@pytest.mark.parametrize("asked", [1700, None], ids=["moved again", "given back"])
def test_a_request_that_never_arrived_leaves_what_was_found_and_what_is_to_be_taken_back(
    shift: Shift, asked: int | None
) -> None:
    """The process may have ended before it asked, or Slurm not have answered."""
    again = taken_back(shift, 9.0) if asked is None else replace(shift, asked=asked, state=ShiftState.ASKED)
    seen = looked(again, shift.asked)

    assert seen == replace(shift, asked_s=again.asked_s, tries=0 if asked is None else 1)
    assert seen.away
    assert seen.home == shift.home


def test_a_first_request_that_never_arrived_leaves_nothing_to_be_taken_back() -> None:
    for lever, home in ((Lever.NICE, 5), (Lever.PRIORITY, 1010)):
        seen = looked(asked_for(UP, KEY, 5, lever, 9.0, None), home)

        assert (seen.away, seen.home, seen.state, seen.tries) == (False, home, ShiftState.SET, 1)


def test_a_priority_given_back_is_reckoned_anew_and_stands_for_what_was_found() -> None:
    back = taken_back(replace(BY_PRIORITY, tries=9), 9.0)
    seen = looked(back, 1037, reassert=2)

    assert seen == replace(back, asked=1037, before=1037, natural=1037, state=ShiftState.SET)
    assert (seen.away, seen.tries) == (False, 9)


def test_a_nice_that_is_given_back_may_be_set_by_hand_meanwhile() -> None:
    assert looked(taken_back(BY_NICE, 9.0), 77).why == "its Nice was set by hand to 77"


def test_a_priority_that_its_owner_reset_is_taken_for_the_natural_one_and_counted() -> None:
    """A hold and a release make Slurm reckon it anew."""
    assert looked(BY_PRIORITY, 1037) == replace(BY_PRIORITY, asked=1037, before=1037, natural=1037, tries=1)


def test_a_nice_that_its_owner_reset_changes_nothing_of_what_was_found() -> None:
    assert looked(BY_NICE, 5) == replace(BY_NICE, asked=5, before=5, tries=1)
    assert looked(replace(BY_NICE, natural=7), 5).natural == 7


def test_a_nice_that_was_ours_once_and_is_set_again_later_is_set_by_hand() -> None:
    seen = looked(replace(BY_NICE, before=-30), -30)

    assert seen == replace(BY_NICE, before=-30, state=ShiftState.LEFT, why="its Nice was set by hand to -30")


def test_a_nice_that_nobody_of_us_asked_for_is_set_by_hand_while_a_request_is_under_way() -> None:
    assert looked(replace(BY_NICE, asked=-90, state=ShiftState.ASKED), 77).state is ShiftState.LEFT


@pytest.mark.parametrize(("shift", "word"), [(BY_NICE, "Nice"), (BY_PRIORITY, "Priority")])
def test_what_does_not_stay_is_left_alone_after_as_many_tries_as_allowed(shift: Shift, word: str) -> None:
    tried = looked(replace(shift, tries=1), shift.home, reassert=2)
    assert (tried.state, tried.tries) == (ShiftState.SET, 2)
    left = looked(replace(shift, tries=2), shift.home, reassert=2)

    assert (left.state, left.tries, left.away) == (ShiftState.LEFT, 3, False)
    assert left.why == f"its {word} did not stay as it was set 3 times: its owner resets it, or its Priority is fixed"


@pytest.mark.parametrize("shift", [BY_NICE, BY_PRIORITY])
def test_nobody_is_left_alone_with_what_we_set(shift: Shift) -> None:
    """However often Slurm does not answer: who is left alone is never given back anything."""
    again = replace(shift, asked=1700, tries=9, state=ShiftState.ASKED)

    assert looked(again, shift.asked, reassert=2).away


def test_the_first_change_remembers_what_was_found() -> None:
    assert asked_for(UP, KEY, 5, Lever.NICE, 9.0, None) == Shift(KEY, Lever.NICE, 5, 1010, -25, 5, 9.0)
    assert asked_for(UP, KEY, 5, Lever.PRIORITY, 9.0, None) == Shift(KEY, Lever.PRIORITY, 5, 1010, 1050, 1010, 9.0)


@pytest.mark.parametrize(("shift", "value"), [(BY_NICE, -70), (BY_PRIORITY, 1050)])
@pytest.mark.parametrize("lever", list(Lever))
def test_a_job_that_was_moved_stays_on_its_lever_and_keeps_what_was_found(
    shift: Shift, value: int, lever: Lever
) -> None:
    under_way = replace(shift, asked=1700, tries=2)
    again = asked_for(UP, replace(KEY, job_id="8"), -40, lever, 9.0, under_way)

    assert again == replace(under_way, asked=value, before=1700, asked_s=9.0, state=ShiftState.ASKED)


def test_a_job_that_has_been_given_back_may_change_its_lever_and_its_tries_still_count() -> None:
    rested = replace(BY_NICE, asked=5, before=5, tries=2)
    changed = asked_for(UP, KEY, 5, Lever.PRIORITY, 9.0, rested)

    assert changed == Shift(KEY, Lever.PRIORITY, 5, 1010, 1050, 1010, 9.0, tries=2)
    assert asked_for(UP, KEY, 5, Lever.NICE, 9.0, rested) == replace(
        rested, asked=-25, asked_s=9.0, state=ShiftState.ASKED
    )


@pytest.mark.parametrize("shift", [BY_NICE, BY_PRIORITY])
def test_what_is_taken_back_is_what_was_found_and_may_not_have_arrived(shift: Shift) -> None:
    back = taken_back(replace(shift, asked=1700), 9.0)

    assert back == replace(shift, asked=shift.home, before=1700, asked_s=9.0, state=ShiftState.ASKED)
    assert back.away
    assert steer(back) == Steer("7", nice=5, anew=shift.lever is Lever.PRIORITY)


moves = st.lists(st.tuples(st.sampled_from(["move", "back"]), st.integers(1, 3000), st.booleans()), max_size=8)


@given(moves)
def test_whichever_requests_arrive_a_priority_of_ours_is_known_to_be_ours(moves: list[tuple[str, int, bool]]) -> None:
    """Slurm and the process as they are: each request is written down first, and may or may not get there."""
    priority, fixed, shift = 5000, False, None
    for what, to, arrives in moves:
        if what == "back" and (shift is None or not shift.away):
            continue
        change = Change(Placed("7", 7, priority, natural(shift, priority, 0)), 10_000 + to)
        if what == "move":
            shift = asked_for(change, KEY, 0, Lever.PRIORITY, 9.0, shift)
        elif shift is not None:
            shift = taken_back(shift, 9.0)
        assert shift is not None
        if arrives:
            asked = steer(shift)
            priority, fixed = (5000, False) if asked.priority is None else (asked.priority, True)
        shift = observed(shift, priority, 0, reassert=99)
        assert shift.away is fixed
        assert natural(shift, priority, 0) == 5000
