"""Caps and breakers: what bounds the harm of a wrong rule, and who can trip what."""

from collections.abc import Iterable
from dataclasses import replace

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
    trips,
)
from evalstopd.core.model import JobKey

NOW_S = 1_000_000.0
CAPS = Caps(stops=4, stops_per_account=2, gpu_share=0.5, breaker_decisions=3, breaker_accounts=2, hold_s=7200.0)


def decision(
    job: int, account: str = "a", uid: int = 1, *, gpus: int = 1, ago_s: float = 10.0, acted: bool = False
) -> Decision:
    at_s = NOW_S - ago_s
    return Decision(JobKey("c", str(job), uid, 0), account, gpus, at_s, at_s if acted else None)


def flood(account: str, uid: int, jobs: int, first: int = 0, ago_s: float = 10.0) -> list[Decision]:
    return [decision(first + number, account, uid, ago_s=ago_s) for number in range(jobs)]


def scopes(decisions: list[Decision], turns: Iterable[BreakerTurn] = (), caps: Caps = CAPS) -> list[str]:
    return [each.scope for each in trips("c", decisions, tuple(turns), caps, NOW_S)]


def reset(scope: str, ago_s: float) -> BreakerTurn:
    return BreakerTurn("c", scope, Turn.RESET, NOW_S - ago_s, NOW_S - ago_s, "seen to")


def test_an_account_trips_at_its_number_of_jobs() -> None:
    assert scopes(flood("a", 1, 2)) == []
    assert scopes(flood("a", 1, 3)) == [account_scope("a")]


def test_a_job_decided_on_again_and_again_counts_once() -> None:
    assert scopes([decision(1, ago_s=each) for each in range(50)]) == []


def test_decisions_of_more_than_an_hour_ago_do_not_count() -> None:
    assert scopes(flood("a", 1, 3, ago_s=WINDOW_S)) == []
    assert scopes(flood("a", 1, 3, ago_s=WINDOW_S - 1)) == [account_scope("a")]


def test_the_site_trips_when_several_owners_accounts_do() -> None:
    assert scopes([*flood("a", 1, 3), *flood("b", 2, 3, 10)]) == [account_scope("a"), account_scope("b"), SITE]


def test_the_site_trips_on_an_account_that_holds_already() -> None:
    held = BreakerTurn("c", account_scope("a"), Turn.TRIPPED, NOW_S - 4000, NOW_S + 4000, "")
    decisions = [*flood("a", 1, 3, ago_s=4100), *flood("b", 2, 3, 10)]
    assert scopes(decisions, [held]) == [account_scope("b"), SITE]


def test_a_breaker_that_holds_does_not_trip_again_and_after_a_reset_only_on_what_is_new() -> None:
    held = BreakerTurn("c", account_scope("a"), Turn.TRIPPED, NOW_S - 5, NOW_S + 5, "")
    assert scopes(flood("a", 1, 9), [held]) == []
    assert scopes(flood("a", 1, 9, ago_s=20), [reset(account_scope("a"), 10)]) == []
    assert scopes(flood("a", 1, 9, ago_s=5), [reset(account_scope("a"), 10)]) == [account_scope("a")]


def test_jobs_that_an_admins_reset_saw_to_never_count_again() -> None:
    again = [*flood("a", 1, 9, ago_s=20), *flood("a", 1, 9, ago_s=5)]
    assert scopes(again, [reset(account_scope("a"), 10)]) == []
    expired = BreakerTurn("c", account_scope("a"), Turn.TRIPPED, NOW_S - 10, NOW_S - 7, "")
    assert scopes(again, [expired]) == [account_scope("a")]


def test_a_trip_holds_for_its_time_and_a_reset_ends_it() -> None:
    (turn,) = trips("c", flood("a", 1, 3), (), CAPS, NOW_S)
    assert turn.until_s == NOW_S + CAPS.hold_s
    assert holding([turn], turn.until_s - 1) == {turn.scope: turn}
    assert holding([turn], turn.until_s) == {}
    assert holding([reset(turn.scope, 0)], NOW_S) == {}


def test_an_account_named_site_has_its_own_breaker() -> None:
    held = holding(trips("c", flood("site", 1, 3), (), CAPS, NOW_S), NOW_S)
    assert held_by("site", held) is not None
    assert held_by("other", held) is None


def test_who_is_held_by_which_breaker() -> None:
    site = BreakerTurn("c", SITE, Turn.TRIPPED, NOW_S, NOW_S + 1, "")
    own = replace(site, scope=account_scope("a"))
    assert held_by("a", {own.scope: own}) is own
    assert held_by("b", {own.scope: own}) is None
    assert held_by("b", {SITE: site}) is site


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
    account, other, site = trips("c", [*flood("a", 1, 3), *flood("b", 2, 4, 10)], (), CAPS, NOW_S)

    assert (account.cluster, account.turn, account.at_s, account.until_s) == (
        "c", Turn.TRIPPED, NOW_S, NOW_S + 7200.0,
    )  # fmt: skip
    assert account.text.startswith("3 jobs of one account")
    assert other.text.startswith("4 jobs of one account")
    assert replace(site, scope="", text="") == replace(account, scope="", text="")
    assert "2 accounts" in site.text


def test_without_a_new_trip_of_an_account_the_site_does_not_trip() -> None:
    """Nor where breakers of other accounts hold from before."""
    held = [BreakerTurn("c", account_scope(name), Turn.TRIPPED, NOW_S - 5, NOW_S + 5, "") for name in "ab"]

    assert scopes([*flood("a", 1, 3), *flood("b", 2, 3, 10)], held) == []


def test_a_cap_that_holds_a_stop_back_says_which() -> None:
    asking = [decision(1, gpus=30)]

    def why(before: list[Decision], caps: Caps = CAPS) -> str:
        return held_back(asking, before, 70, caps, NOW_S)[asking[0].key]

    assert "the site's cap is 4" in why([decision(n, f"x{n}", acted=True) for n in range(10, 14)])
    assert why([decision(n, acted=True) for n in (10, 11)]).startswith("2 jobs of its account")
    assert "30 more would pass 50%" in why([decision(10, "b", gpus=30, acted=True)])


def test_the_moment_of_a_turn_itself_does_not_count_again_and_a_reset_sees_to_it() -> None:
    again = [*flood("a", 1, 9, ago_s=10), *flood("a", 1, 9, ago_s=5)]
    expired = BreakerTurn("c", account_scope("a"), Turn.TRIPPED, NOW_S - 10, NOW_S - 7, "")

    assert scopes(flood("a", 1, 9, ago_s=10), [expired]) == []
    assert scopes(again, [reset(account_scope("a"), 10)]) == []
    assert scopes(again, [reset(account_scope("b"), 10)]) == [account_scope("a")]


def test_a_stop_that_is_let_go_counts_for_the_next_and_one_held_back_does_not() -> None:
    asking = [decision(n, f"x{n}", gpus=0, ago_s=9 - n) for n in range(6)]

    assert held(asking, []) == ["4", "5"]
    big = [decision(1, "b", gpus=10, ago_s=3), decision(2, "c", gpus=90, ago_s=2), decision(3, "d", gpus=40, ago_s=1)]
    assert held(big, [], running_gpus=100) == ["2"]
