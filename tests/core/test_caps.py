"""Caps and breakers: what bounds the harm of a wrong rule, and who can trip what."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.caps import (
    SITE,
    UNLIMITED,
    WINDOW_S,
    BreakerTurn,
    Caps,
    Decision,
    Turn,
    account_scope,
    held_back,
    held_by,
    holding,
    holds_one_owner,
    owner_scope,
    trips,
)
from evalstopd.core.model import JobKey, Rung

NOW_S = 1_000_000.0
CAPS = Caps(stops=4, stops_per_account=2, gpu_share=0.5, breaker_decisions=3, breaker_accounts=2, hold_s=7200.0)


def decision(
    job: int,
    account: str = "a",
    uid: int = 1,
    *,
    gpus: int = 1,
    ago_s: float = 10.0,
    acted: bool = False,
    wished: bool = False,
) -> Decision:
    at_s = NOW_S - ago_s
    return Decision(JobKey("c", str(job), uid, 0), account, gpus, at_s, at_s if acted else None, wished)


BOBS = owner_scope(1, "a")


@pytest.mark.parametrize("rung", [Rung.OBSERVE, Rung.WARN])
def test_where_the_site_stops_jobs_what_could_stop_none_trips_nothing(rung: Rung) -> None:
    """Anybody can log falls on an open server, whose ceiling lets them warn at most."""
    harmless = [replace(each, rung=rung) for each in flood("a", 1, 5)]

    assert trips("c", harmless, (), CAPS, NOW_S, Rung.ENFORCE) == ()
    assert [each.scope for each in trips("c", harmless, (), CAPS, NOW_S, rung)] == [BOBS]


def flood(account: str, uid: int, jobs: int, first: int = 0, ago_s: float = 10.0) -> list[Decision]:
    return [decision(first + number, account, uid, ago_s=ago_s) for number in range(jobs)]


def scopes(decisions: list[Decision], turns: Iterable[BreakerTurn] = (), caps: Caps = CAPS) -> list[str]:
    return [each.scope for each in trips("c", decisions, tuple(turns), caps, NOW_S)]


def reset(scope: str, ago_s: float) -> BreakerTurn:
    return BreakerTurn("c", scope, Turn.RESET, NOW_S - ago_s, NOW_S - ago_s, "seen to")


def shared(
    account: str, jobs: int, first: int = 0, ago_s: float = 10.0, uids: tuple[int, ...] = (1, 2)
) -> list[Decision]:
    """Return jobs of an account, of its owners in turn."""
    return [decision(first + n, account, uids[n % len(uids)], ago_s=ago_s) for n in range(jobs)]


def test_an_account_trips_at_its_number_of_jobs_where_several_owners_have_part_in_them() -> None:
    caps = replace(CAPS, breaker_decisions=4)
    assert scopes(shared("a", 3), caps=caps) == []
    assert scopes(shared("a", 4), caps=caps) == [account_scope("a")]


def test_one_owners_jobs_alone_trip_his_own_breaker() -> None:
    assert scopes(flood("a", 1, 2)) == []
    assert scopes(flood("a", 1, 3)) == [BOBS]


def test_a_flood_beside_a_few_honest_stops_of_colleagues_holds_the_flooder_alone() -> None:
    """Half of the number must be of others than who has most of them."""
    caps = replace(CAPS, breaker_decisions=4)
    assert scopes([*flood("a", 1, 100), decision(900, uid=2)], caps=caps) == [BOBS]
    assert scopes([*flood("a", 1, 100), decision(900, uid=2), decision(901, uid=3)], caps=caps) == [account_scope("a")]


def test_below_the_number_nobody_trips_another() -> None:
    assert scopes([*flood("a", 1, 2), decision(900, uid=2)]) == []


def test_what_only_its_owners_word_kept_at_observe_trips_nothing() -> None:
    assert scopes([replace(each, wished=True) for each in flood("a", 1, 100)]) == []
    assert scopes([*flood("a", 1, 2), *(replace(each, wished=True) for each in flood("a", 1, 100, 10))]) == []


@given(
    mine=st.lists(st.tuples(st.integers(0, 40), st.sampled_from("ab"), st.booleans()), max_size=60),
    honest=st.lists(st.tuples(st.integers(41, 60), st.sampled_from("ab")), max_size=1),
    most=st.integers(3, 12),
)
def test_whatever_one_owner_does_beside_an_honest_stop_he_trips_no_breaker_but_his_own(
    mine: list[tuple[int, str, bool]], honest: list[tuple[int, str]], most: int
) -> None:
    made = [decision(job, account, 1, wished=wished) for job, account, wished in mine]
    made += [decision(job, account, 2) for job, account in honest]
    tripped = scopes(made, caps=replace(CAPS, breaker_decisions=most))
    assert set(tripped) <= {owner_scope(1, "a"), owner_scope(1, "b")}


@given(counts=st.lists(st.integers(0, 8), min_size=1, max_size=4), most=st.integers(2, 8))
def test_what_trips_follows_from_how_the_decisions_are_shared(counts: list[int], most: int) -> None:
    made = [decision(100 * uid + n, uid=uid) for uid, number in enumerate(counts) for n in range(number)]
    of_account = sum(counts) >= most and 2 * (sum(counts) - max(counts)) >= most
    alone = [owner_scope(uid, "a") for uid, number in enumerate(counts) if number >= most]
    assert scopes(made, caps=replace(CAPS, breaker_decisions=most, breaker_accounts=9)) == (
        [account_scope("a")] if of_account else alone
    )


def test_a_job_decided_on_again_and_again_counts_once() -> None:
    assert scopes([decision(1, ago_s=each) for each in range(50)]) == []


def test_decisions_of_more_than_an_hour_ago_do_not_count() -> None:
    assert scopes(flood("a", 1, 3, ago_s=WINDOW_S)) == []
    assert scopes(flood("a", 1, 3, ago_s=WINDOW_S - 1)) == [BOBS]


def test_the_site_trips_when_several_owners_trip_breakers_in_as_many_accounts() -> None:
    assert scopes([*flood("a", 1, 3), *flood("b", 2, 3, 10)]) == [BOBS, owner_scope(2, "b"), SITE]
    mixed = [*shared("a", 4), *flood("b", 2, 3, 10)]
    assert scopes(mixed) == [account_scope("a"), owner_scope(2, "b"), SITE]


def test_several_owners_of_one_account_do_not_trip_the_site() -> None:
    held = BreakerTurn("c", BOBS, Turn.TRIPPED, NOW_S - 4000, NOW_S + 4000, "")
    assert scopes([*flood("a", 1, 3, ago_s=4100), *flood("a", 2, 3, 10)], [held]) == [owner_scope(2, "a")]


def test_the_site_trips_on_an_account_that_holds_already() -> None:
    decisions = [*flood("a", 1, 3, ago_s=4100), *flood("b", 2, 3, 10)]
    for scope in (account_scope("a"), BOBS):
        held = BreakerTurn("c", scope, Turn.TRIPPED, NOW_S - 4000, NOW_S + 4000, "")
        assert scopes(decisions, [held]) == [owner_scope(2, "b"), SITE]


def test_a_held_owner_is_counted_himself_whoever_else_had_more_decisions_there() -> None:
    """Else a flood in each of several accounts would count for their honest owners."""
    held = [BreakerTurn("c", owner_scope(1, name), Turn.TRIPPED, NOW_S - 4000, NOW_S + 4000, "") for name in "bcd"]
    honest = [each for at, name in enumerate("bcd") for each in flood(name, 20 + at, 9, 100 * at, ago_s=4100)]
    assert scopes([*honest, *flood("a", 1, 3, 900)], held) == [BOBS]


def test_an_account_that_is_held_beside_one_of_its_owners_is_counted_for_who_has_most_decisions_there() -> None:
    """Else who floods two accounts, one of which holds another owner too, would trip the site alone."""
    held = [
        BreakerTurn("c", scope, Turn.TRIPPED, NOW_S - 4000, NOW_S + 4000, "") for scope in (BOBS, account_scope("a"))
    ]
    before = [*flood("a", 1, 3, ago_s=4100), *flood("a", 2, 5, 10, ago_s=4100)]

    assert scopes([*before, *flood("b", 2, 3, 20)], held) == [owner_scope(2, "b")]
    assert scopes([*before, *flood("b", 3, 3, 20)], held) == [owner_scope(3, "b"), SITE]


def test_a_breaker_that_holds_does_not_trip_again_and_after_a_reset_only_on_what_is_new() -> None:
    for scope in (account_scope("a"), BOBS):
        held = BreakerTurn("c", scope, Turn.TRIPPED, NOW_S - 5, NOW_S + 5, "")
        assert scopes(flood("a", 1, 9), [held]) == []
        assert scopes(flood("a", 1, 9, ago_s=1), [held]) == []
        assert scopes(flood("a", 1, 9, ago_s=20), [reset(scope, 10)]) == []
        assert scopes(flood("a", 1, 9, ago_s=5), [reset(scope, 10)]) == [BOBS]


def test_an_owner_who_is_held_has_part_in_what_trips_his_account() -> None:
    held = BreakerTurn("c", BOBS, Turn.TRIPPED, NOW_S - 5, NOW_S + 5, "")
    assert scopes([*flood("a", 1, 3), *flood("a", 2, 2, 10, ago_s=1)], [held]) == [account_scope("a")]


def test_jobs_that_an_admins_reset_saw_to_never_count_again() -> None:
    again = [*flood("a", 1, 9, ago_s=20), *flood("a", 1, 9, ago_s=5)]
    for scope in (account_scope("a"), BOBS):
        assert scopes(again, [reset(scope, 10)]) == []
        expired = BreakerTurn("c", scope, Turn.TRIPPED, NOW_S - 10, NOW_S - 7, "")
        assert scopes(again, [expired]) == [BOBS]


def test_what_tripped_a_breaker_that_has_run_out_does_not_trip_it_again() -> None:
    for scope in (account_scope("a"), BOBS):
        expired = BreakerTurn("c", scope, Turn.TRIPPED, NOW_S - 10, NOW_S - 7, "")
        assert scopes(flood("a", 1, 9, ago_s=20), [expired]) == []


def test_a_breaker_whose_decisions_nobody_knows_any_more_counts_for_no_owner() -> None:
    held = BreakerTurn("c", account_scope("a"), Turn.TRIPPED, NOW_S - 4000, NOW_S + 4000, "")
    assert scopes(flood("b", 2, 3), [held]) == [owner_scope(2, "b")]


def test_a_trip_holds_for_its_time_and_a_reset_ends_it() -> None:
    (turn,) = trips("c", flood("a", 1, 3), (), CAPS, NOW_S)
    assert turn.until_s == NOW_S + CAPS.hold_s
    assert holding([turn], turn.until_s - 1) == {turn.scope: turn}
    assert holding([turn], turn.until_s) == {}
    assert holding([reset(turn.scope, 0)], NOW_S) == {}


def test_an_account_named_site_has_its_own_breaker() -> None:
    held = holding(trips("c", shared("site", 4), (), CAPS, NOW_S), NOW_S)
    assert held_by("site", 7, held) is not None
    assert held_by("other", 7, held) is None


def test_an_account_with_the_separators_in_its_name_is_told_apart() -> None:
    odd = flood("1@a:b", 1, 3)
    (turn,) = trips("c", odd, (), CAPS, NOW_S)
    assert turn.scope == owner_scope(1, "1@a:b")
    assert scopes([*odd, *flood("b", 2, 3, 10)], [turn]) == [owner_scope(2, "b"), SITE]


def test_who_is_held_by_which_breaker() -> None:
    site = BreakerTurn("c", SITE, Turn.TRIPPED, NOW_S, NOW_S + 1, "")
    own = replace(site, scope=account_scope("a"))
    alone = replace(site, scope=BOBS)
    assert held_by("a", 1, {own.scope: own}) is own
    assert held_by("b", 1, {own.scope: own}) is None
    assert held_by("b", 1, {SITE: site}) is site
    assert held_by("a", 1, {BOBS: alone}) is alone
    assert held_by("a", 2, {BOBS: alone}) is None
    assert held_by("b", 1, {BOBS: alone}) is None
    assert [holds_one_owner(scope) for scope in (SITE, own.scope, BOBS)] == [False, False, True]


def held(asking: list[Decision], before: list[Decision], running_gpus: int = 100, caps: Caps = CAPS) -> list[str]:
    return sorted(key.job_id for key in held_back(asking, before, running_gpus, caps, NOW_S))


def test_the_oldest_decision_goes_first_up_to_the_cap_of_its_account() -> None:
    asking = [decision(1, ago_s=1), decision(2, ago_s=3), decision(3, ago_s=2)]
    assert held(asking, []) == ["1"]


def test_the_cap_of_the_site_counts_all_accounts() -> None:
    before = [decision(number, f"x{number}", acted=True) for number in range(10, 13)]
    assert held([decision(1, "b"), decision(2, "c")], before) == ["2"]


def test_what_was_only_decided_or_done_an_hour_ago_does_not_count() -> None:
    before = [decision(10), decision(11), decision(12, ago_s=WINDOW_S, acted=True), decision(13, acted=True)]
    assert held([decision(1)], before) == []


def test_the_share_of_gpus_is_of_those_in_use_before_the_stops() -> None:
    before = [decision(10, "b", gpus=30, acted=True)]
    assert held([decision(1, gpus=20)], before, running_gpus=70) == []
    assert held([decision(1, gpus=21)], before, running_gpus=70) == ["1"]


def test_the_first_stop_of_an_hour_may_go_whatever_its_size() -> None:
    assert held([decision(1, gpus=64)], [], running_gpus=64) == []
    assert held([decision(1, gpus=64), decision(2, "b", gpus=1)], [], running_gpus=65) == ["2"]


def test_without_limits_nothing_is_held() -> None:
    asking = [decision(number, gpus=8) for number in range(500)]
    assert held(asking, asking, 1, UNLIMITED) == []


decisions = st.lists(
    st.builds(
        decision,
        st.integers(0, 30),
        st.sampled_from("abc"),
        st.integers(1, 3),
        gpus=st.integers(0, 16),
        ago_s=st.floats(0, 2 * WINDOW_S),
        acted=st.booleans(),
    ),
    max_size=25,
    unique_by=lambda each: each.key.job_id,
)


@given(asking=decisions, before=decisions, running=st.integers(0, 100))
def test_whatever_is_asked_no_cap_is_passed(asking: list[Decision], before: list[Decision], running: int) -> None:
    asking = [replace(each, acted_s=None) for each in asking]
    done = [each for each in before if each.acted_s is not None and each.acted_s > NOW_S - WINDOW_S]
    kept = held_back(asking, before, running, CAPS, NOW_S)
    going = [each for each in asking if each.key not in kept]

    assert len(going) <= max(0, CAPS.stops - len(done))
    for name in "abc":
        of_account = sum(each.account == name for each in done)
        assert sum(each.account == name for each in going) <= max(0, CAPS.stops_per_account - of_account)
    if going and len(done) + len(going) > 1:
        freed = sum(each.gpus for each in done)
        assert freed + sum(each.gpus for each in going) <= CAPS.gpu_share * (running + freed)


def test_a_trip_says_when_how_long_and_for_how_many_jobs() -> None:
    account, other, site = trips("c", [*shared("a", 4), *flood("b", 2, 5, 10)], (), CAPS, NOW_S)

    assert (account.cluster, account.turn, account.at_s, account.until_s) == (
        "c", Turn.TRIPPED, NOW_S, NOW_S + 7200.0,
    )  # fmt: skip
    assert "for 4 jobs of one account, of 2 owners, within" in account.text
    assert "for 5 jobs of one owner in one account" in other.text
    assert replace(site, scope="", text="") == replace(account, scope="", text="")
    assert "2 accounts" in site.text


def test_without_a_new_trip_of_an_account_the_site_does_not_trip() -> None:
    """Nor where breakers of other accounts hold from before."""
    held = [BreakerTurn("c", account_scope(name), Turn.TRIPPED, NOW_S - 5, NOW_S + 5, "") for name in "ab"]

    assert scopes([*flood("a", 1, 3), *flood("b", 2, 3, 10)], held) == []


def test_a_cap_that_holds_a_stop_back_says_which() -> None:
    asking = [decision(1, gpus=30)]

    def why(before: list[Decision], caps: Caps = CAPS) -> str:
        return held_back(asking, before, 70, caps, NOW_S)[asking[0].key].text

    assert "the site's cap is 4" in why([decision(n, f"x{n}", acted=True) for n in range(10, 14)])
    of_account = why([decision(n, acted=True) for n in (10, 11)])
    assert of_account.startswith("2 jobs of its account")
    assert of_account.endswith("the cap is 2")
    assert "30 more would pass 50%" in why([decision(10, "b", gpus=30, acted=True)])


def test_the_moment_of_a_turn_itself_does_not_count_again_and_a_reset_sees_to_it() -> None:
    again = [*flood("a", 1, 9, ago_s=10), *flood("a", 1, 9, ago_s=5)]
    expired = BreakerTurn("c", account_scope("a"), Turn.TRIPPED, NOW_S - 10, NOW_S - 7, "")

    assert scopes(flood("a", 1, 9, ago_s=10), [expired]) == []
    assert scopes(again, [reset(account_scope("a"), 10)]) == []
    assert scopes(again, [reset(account_scope("b"), 10)]) == [BOBS]


def test_a_stop_that_is_let_go_counts_for_the_next_and_one_held_back_does_not() -> None:
    asking = [decision(n, f"x{n}", gpus=0, ago_s=9 - n) for n in range(6)]

    assert held(asking, []) == ["4", "5"]
    big = [decision(1, "b", gpus=10, ago_s=3), decision(2, "c", gpus=90, ago_s=2), decision(3, "d", gpus=40, ago_s=1)]
    assert held(big, [], running_gpus=100) == ["2"]


def test_what_holds_a_stop_has_a_name() -> None:
    big, small = decision(1, gpus=90, ago_s=WINDOW_S), decision(2, "b", uid=2)
    before = [decision(10, "b", acted=True)]
    found = held_back([big, small], before, 100, CAPS, NOW_S)

    assert {key.job_id: why.by for key, why in found.items()} == {"1": "gpus", "2": "turn"}
    assert "whole hour" in found[small.key].text
    of_site = held_back([small], [decision(n, f"x{n}", acted=True) for n in range(10, 14)], 100, CAPS, NOW_S)
    of_account = held_back([small], [decision(n, "b", acted=True) for n in (10, 11)], 100, CAPS, NOW_S)
    assert (of_site[small.key].by, of_account[small.key].by) == ("site", "account")


def test_a_large_stop_goes_though_small_ones_come_all_the_time() -> None:
    """A small one is due each ten minutes; the large one is held for an hour, then the hour empties for it."""
    caps, large = Caps(gpu_share=0.25), decision(0, "big", uid=9, gpus=8, ago_s=0)
    asking, done, went_s = [large], [decision(99, "small", ago_s=0, acted=True)], 0.0
    for number in range(1, 60):
        now_s = NOW_S + 600 * number
        asking.append(replace(decision(number, "small", uid=number), at_s=now_s))
        kept = held_back(asking, done, 24, caps, now_s)
        done += [replace(each, acted_s=now_s) for each in asking if each.key not in kept]
        asking = [each for each in asking if each.key in kept]
        if not went_s and large not in asking:
            went_s = now_s - NOW_S
    assert WINDOW_S <= went_s <= 2 * WINDOW_S + 600
    assert len(done) > 20


def test_within_the_hour_who_had_fewer_stops_goes_first() -> None:
    """However old the others' are; and one let go counts for the next of its owner."""
    caps = Caps(stops=3, stops_per_account=9, gpu_share=9.0)
    bobs = [decision(n, uid=1, ago_s=900 - n) for n in range(5)]
    carols = [decision(n, uid=2, ago_s=100 - n) for n in range(20, 23)]
    assert held([*bobs, *carols], [], caps=caps) == ["2", "21", "22", "3", "4"]
    assert held([*bobs, *carols], [decision(90, uid=1, acted=True)], caps=caps) == ["1", "2", "21", "22", "3", "4"]


def test_the_cap_of_an_account_holds_no_other_account_however_long_its_stops_wait() -> None:
    old = decision(1, "a", uid=1, ago_s=2 * WINDOW_S)
    before = [decision(n, "a", acted=True) for n in (10, 11)]
    assert held([old, decision(2, "b", uid=2)], before) == ["1"]


waiting = st.lists(
    st.builds(
        decision,
        st.integers(0, 40),
        st.sampled_from("abc"),
        st.integers(1, 3),
        gpus=st.integers(0, 16),
        ago_s=st.floats(0, 3 * WINDOW_S),
    ),
    max_size=25,
    unique_by=lambda each: each.key.job_id,
)


@given(asking=waiting, before=decisions, running=st.integers(0, 100))
def test_no_younger_stop_goes_before_one_that_waited_for_a_whole_hour(
    asking: list[Decision], before: list[Decision], running: int
) -> None:
    """Unless it is its own account's cap that holds it."""
    kept = held_back(asking, before, running, CAPS, NOW_S)
    passed_over = [
        each.at_s for each in asking
        if each.at_s <= NOW_S - WINDOW_S and each.key in kept and kept[each.key].by in ("site", "gpus")
    ]  # fmt: skip
    assert all(each.at_s <= min(passed_over, default=math.inf) for each in asking if each.key not in kept)


@given(asking=waiting, stops=st.integers(1, 10))
def test_while_another_waits_no_owner_takes_more_than_one_more_than_he(asking: list[Decision], stops: int) -> None:
    """Where nothing but the site's number of stops holds them, and none has waited for a whole hour."""
    caps = Caps(stops=stops, stops_per_account=99, gpu_share=math.inf)
    asking = [replace(each, at_s=max(each.at_s, NOW_S - WINDOW_S + 1)) for each in asking]
    kept = held_back(asking, [], 100, caps, NOW_S)
    had = Counter(each.key.uid for each in asking if each.key not in kept)
    assert len(kept) == max(0, len(asking) - stops)
    for each in asking:
        if each.key in kept:
            assert max(had.values()) <= had[each.key.uid] + 1
