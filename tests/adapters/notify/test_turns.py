"""Turns among owners: whatever comes when, nothing is lost or doubled, and nobody waits for more than one turn each."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from evalstopd.adapters.notify.turns import Turns
from evalstopd.core.model import JobKey
from evalstopd.ports import Message

TAKEN = None
MOVES = st.lists(st.one_of(st.integers(1, 4), st.just(TAKEN)), max_size=60)


def message(owner: int, number: int) -> Message:
    return Message(JobKey("c", "7", owner, 100), f"u{owner}", str(number), "text")


@given(MOVES, st.integers(1, 6))
def test_each_message_is_taken_or_given_up_once_and_each_owners_in_order(moves: list[int | None], most: int) -> None:
    turns, given_in, out, given_up = Turns(most), list[Message](), list[Message](), list[Message]()
    for number, owner in enumerate(moves):
        if owner is not TAKEN:
            given_in.append(message(owner, number))
            given_up += filter(None, [turns.put(given_in[-1])])
            assert len(turns) <= most
        else:
            out += filter(None, [turns.take()])
    out += iter(turns.take, None)

    assert len(turns) == 0
    assert sorted([*out, *given_up], key=given_in.index) == given_in
    for owner in range(1, 5):
        own = [each for each in out if each.key.uid == owner]
        assert own == sorted(own, key=given_in.index)


@given(MOVES, st.integers(1, 6))
def test_what_is_given_up_is_the_newest_of_an_owner_with_most_waiting(moves: list[int | None], most: int) -> None:
    turns, waiting = Turns(most), list[Message]()
    for number, owner in enumerate(moves):
        if owner is TAKEN:
            taken = turns.take()
            waiting = [each for each in waiting if each is not taken]
            continue
        waiting.append(message(owner, number))
        dropped = turns.put(waiting[-1])
        counts = Counter(each.key.uid for each in waiting)
        assert (dropped is not None) == (len(waiting) > most)
        if dropped is not None:
            assert counts[dropped.key.uid] == max(counts.values())
            assert dropped is waiting[-1] or counts[dropped.key.uid] > counts[owner]
            assert dropped is [each for each in waiting if each.key.uid == dropped.key.uid][-1]
            waiting.remove(dropped)


@given(MOVES)
def test_who_waits_sees_each_other_owner_served_once_at_most_before_himself(moves: list[int | None]) -> None:
    turns, waiting, seen = Turns(len(moves) + 1), Counter[int](), dict[int, Counter[int]]()
    last = 0
    for number, owner in enumerate(moves):
        if owner is not TAKEN:
            turns.put(message(owner, number))
            waiting[owner] += 1
            if waiting[owner] == 1:
                # Who is being served while another comes has had his turn.
                seen[owner] = Counter([last] if last != owner else [])
        elif (taken := turns.take()) is not None:
            last = taken.key.uid
            waiting[last] -= 1
            seen[last] = Counter()
            for each in seen:
                seen[each][last] += waiting[each] > 0 and each != last
            assert max((count for each in seen.values() for count in each.values()), default=0) <= 1
