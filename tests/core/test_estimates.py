"""Estimates: within the limit, near what was used, never shortened by a job that was cut short, dear to lie about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.estimates import (
    COARSER_JOBS,
    CRASH_S,
    HALF_LIFE_S,
    LEAST_S,
    MOST_NAMES,
    SHARES,
    TOP,
    WHOLE_S,
    Asked,
    History,
    PastLife,
    Tally,
    Use,
    bin_of,
    is_own_end,
    kin_of,
    lengths,
    survived,
    use_of,
)
from evalstopd.core.model import Job, Phase

HOUR_S = 3600.0
ENDS = ("COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY")
CUTS = ("CANCELLED", "PREEMPTED", "REQUEUED", "NODE_FAIL", "BOOT_FAIL", "DEADLINE", "REVOKED")
names = st.sampled_from(["train", "eval", "=cmd()|\x1b[31m\n", "\udcff"])
users = st.sampled_from(["alice", "bob"])
limits = st.floats(1.0, 30 * 86400.0)


def lived(share: float = 0.5, limit_s: float = 10 * HOUR_S, state: str = "COMPLETED", **fields: object) -> PastLife:
    life = PastLife("alice", "ml", "train", limit_s, share * limit_s, state, 0.0)
    return life._replace(**fields)  # type: ignore[arg-type]


def history(*lives: PastLife) -> History:
    made = History()
    for each in lives:
        made.add(each)
    return made


def length(known: History, limit_s: float = 10 * HOUR_S, attained_s: float = 0.0, **fields: object) -> float:
    asked = Asked("alice", "ml", "train", limit_s, attained_s)._replace(**fields)  # type: ignore[arg-type]
    found = known.estimate(asked)
    assert found is not None
    return found.length_s


@st.composite
def lives(draw: st.DrawFn, states: tuple[str, ...] = (*ENDS, *CUTS)) -> PastLife:
    limit_s = draw(limits)
    return PastLife(
        draw(users), draw(st.sampled_from(["ml", "bio"])), draw(names), limit_s, draw(st.floats(0.0, 1.1)) * limit_s,
        draw(st.sampled_from(states)), draw(st.floats(0.0, 1e7)),
    )  # fmt: skip


def test_who_is_not_known_is_taken_at_his_word() -> None:
    found = History().estimate(Asked("alice", "ml", "train", 7200.0))

    assert found is not None
    assert (found.length_s, found.jobs) == (7200.0, 0.0)
    assert found.text == "7200 s, 100% of its limit: nothing is known of jobs like it"


def test_without_a_limit_there_is_no_estimate() -> None:
    known = history(*[lived()] * 20)

    assert known.estimate(Asked("alice", "ml", "train", None)) is None
    assert known.estimate(Asked("alice", "ml", "train", 0.0)) is None


def test_the_estimate_comes_to_what_the_jobs_of_the_name_used() -> None:
    known = history(*[lived(0.25)] * 12)
    found = known.estimate(Asked("alice", "ml", "train", 10 * HOUR_S))

    assert found is not None
    assert found.length_s == 2.5 * HOUR_S
    assert found.text == "9000 s, 25% of its limit: by 12 jobs of the user in the account under this name"
    assert length(known, 20 * HOUR_S) == 5 * HOUR_S


@pytest.mark.parametrize(
    ("fields", "of"),
    [
        ({"name": "new"}, "of the user in the account"),
        ({"account": "new"}, "of the user"),
        ({"user": "new"}, "of everybody"),
    ],
)
def test_what_is_new_is_judged_by_the_closest_kin_there_is(fields: dict[str, str], of: str) -> None:
    """Each coarser kin here has jobs of its own that used another share."""
    known = history(
        *[lived(0.5, user=f"u{n}") for n in range(60)],
        *[lived(0.25, account="other")] * 30,
        *[lived(0.125, name="other")] * 15,
    )
    shares = {"of everybody": 0.5, "of the user": 0.25, "of the user in the account": 0.125}
    found = known.estimate(Asked("alice", "ml", "train", HOUR_S)._replace(**fields))

    assert found is not None
    assert found.of == of
    assert shares[of] / 1.1 <= found.length_s / HOUR_S <= shares[of] * 2


def test_one_odd_job_moves_nothing() -> None:
    steady = [lived(0.25)] * 9

    assert length(history(*steady, lived(1.0, state="TIMEOUT"))) == length(history(*steady))
    assert length(history(*steady, lived(0.02))) == length(history(*steady))


def test_a_time_out_used_its_whole_limit_whatever_the_clock_says() -> None:
    assert use_of(lived(0.4, state="TIMEOUT")) == (TOP, 1.0, False)
    assert use_of(lived(1.3)) == (TOP, 1.0, False)


@pytest.mark.parametrize("state", ["FAILED", "OUT_OF_MEMORY"])
def test_what_failed_within_a_minute_tells_nothing(state: str) -> None:
    """However many tasks of an array crash at once."""
    crash = lived(limit_s=10 * HOUR_S, elapsed_s=CRASH_S - 1, state=state)

    assert use_of(crash) is None
    assert use_of(crash._replace(elapsed_s=CRASH_S)) is not None
    assert length(history(*[crash] * 10_000)) == 10 * HOUR_S


@pytest.mark.parametrize(
    "life",
    [
        lived()._replace(limit_s=None),
        lived()._replace(limit_s=0.0),
        lived(0.0),
        lived(state="RUNNING"),
        lived(state="NEW WORD"),
    ],
)
def test_what_tells_nothing_is_left_out(life: PastLife) -> None:
    assert history(life).tallies == {}
    assert not is_own_end(life)


@pytest.mark.parametrize("state", CUTS)
def test_what_others_ended_is_no_measure_of_an_estimate(state: str) -> None:
    assert not is_own_end(lived(state=state))
    assert is_own_end(lived())


def test_jobs_that_were_stopped_late_show_that_such_jobs_run_long() -> None:
    """Jobs that evalstopd stopped at 0.7 of their limit would have run longer than those that ended at 0.2."""
    ended = [lived(0.2)] * 10 + [lived(0.9)] * 6

    assert length(history(*ended)) < 2.2 * HOUR_S
    assert length(history(*ended, *[lived(0.7, state="CANCELLED")] * 10)) > 8 * HOUR_S


def test_a_short_job_counts_in_proportion() -> None:
    use = use_of(lived(elapsed_s=WHOLE_S / 4))

    assert use is not None
    assert use.weight == 0.25


def test_what_is_old_gives_way() -> None:
    known = history(*[lived(0.1)] * 16, *[lived(0.8, ended_s=4 * HALF_LIFE_S)] * 8)
    known.read_until(4 * HALF_LIFE_S)

    assert length(known) > 7 * HOUR_S
    assert known.weight(kin_of("alice", "ml", "train")[-1]) == pytest.approx(9.0)


def test_a_job_told_late_counts_as_if_told_in_time() -> None:
    early, late = lived(0.1, ended_s=0.0), lived(0.8, ended_s=HALF_LIFE_S)
    one, other = history(early, late), history(late, early)
    for each in (one, other):
        each.read_until(HALF_LIFE_S)

    assert [each.weight(kin_of("alice", "ml", "train")[-1]) for each in (one, other)] == pytest.approx([1.5, 1.5])


def test_a_running_job_is_judged_by_those_that_ran_as_long() -> None:
    """So who has outrun his short jobs is not taken for nearly done."""
    known = history(*[lived(0.1)] * 20, *[lived(0.8)] * 9)

    assert length(known) < 1.1 * HOUR_S
    assert length(known, attained_s=0.5 * HOUR_S) < 1.1 * HOUR_S
    assert length(known, attained_s=2 * HOUR_S) == pytest.approx(8 * HOUR_S, rel=0.1)
    assert length(known, attained_s=11 * HOUR_S) == 10 * HOUR_S


def test_jobs_of_a_queue_are_estimated_by_their_own_names_and_what_they_ran() -> None:
    def job(job_id: str, name: str, limit_s: int | None, started_s: int | None) -> Job:
        phase = Phase.PENDING if started_s is None else Phase.RUNNING
        return Job("c", job_id, 1, 1001, "alice", phase, "", 0, started_s, 0, 1, "ml", name=name, time_limit_s=limit_s)

    known = history(*[lived(0.1)] * 20, *[lived(0.8)] * 9)
    jobs = [job("1", "train", 36000, None), job("2", "train", 36000, 1000), job("3", "train", None, None)]
    found = lengths(known, jobs, 1000 + 2 * HOUR_S)

    assert {job_id: each.length_s for job_id, each in found.items()} == {
        "1": length(known),
        "2": length(known, attained_s=2 * HOUR_S),
    }


def test_faded_kin_and_a_flood_of_names_are_not_kept() -> None:
    known = history(lived(name="old"), *[lived(name=f"n{n}", ended_s=10 * HALF_LIFE_S) for n in range(MOST_NAMES + 7)])
    known.read_until(10 * HALF_LIFE_S)
    surplus = known.surplus()

    assert kin_of("alice", "ml", "old")[-1] in surplus
    assert len(surplus) == 1 + 7
    assert all(kin.name for kin in surplus)


def test_of_a_flood_of_names_those_of_which_most_is_known_are_kept_for_each_user_and_account() -> None:
    """What was cut short counts as well; and a name that ran once is worth less than one that ran twice."""
    twice = [lived(name=f"n{n}", state=("COMPLETED", "CANCELLED")[n % 2]) for n in range(MOST_NAMES)]
    once = [lived(name=f"once{n}") for n in range(5)]
    others = [lived(name=f"n{n}", user="bob") for n in range(MOST_NAMES)]
    elsewhere = [lived(name=f"n{n}", account="bio") for n in range(MOST_NAMES)]
    known = history(*once, *twice, *twice, *others, *elsewhere)

    assert set(known.surplus()) == {kin_of("alice", "ml", each.name)[-1] for each in once}


def test_a_copy_changes_by_itself() -> None:
    lives = [*[lived(0.1)] * 20, lived(0.2, state="CANCELLED")]
    known = history(*lives)
    known.read_until(7.0)
    copy = known.copy()
    before = length(known)
    assert (copy.read_s, length(copy), copy.tallies == known.tallies) == (7.0, before, True)
    for _ in range(99):
        copy.add(lived(0.9))
        copy.add(lived(0.9, state="CANCELLED"))

    assert length(copy) > 2 * before
    assert length(known) == before
    assert known.tallies == history(*lives).tallies


def test_the_first_job_tells_already_and_twelve_of_others_tell_more_than_one_of_the_users() -> None:
    assert length(history(lived(0.125))) == 0.125 * 10 * HOUR_S
    known = history(*[lived(0.25, user="bob")] * 12, lived(0.5, account="other"))

    assert length(known, name="new") == 0.25 * 10 * HOUR_S
    assert length(history(*[lived(0.5, account="other")] * 9, *[lived(0.25, user="bob")] * 12), name="new") == (
        0.5 * 10 * HOUR_S
    )


def test_half_a_job_is_the_closest_kin_there_is() -> None:
    half = lived(elapsed_s=WHOLE_S / 2)
    found = history(*[lived(name="other")] * 5, half).estimate(Asked("alice", "ml", "train", 10 * HOUR_S))

    assert found is not None
    assert (found.jobs, found.of) == (0.5, "of the user in the account under this name")


def test_a_running_job_is_not_judged_by_those_that_ended_exactly_where_it_is() -> None:
    known = history(*[lived(0.25)] * 40, *[lived(0.5)] * 20, *[lived(1.0)] * 10)

    assert length(known, attained_s=0.2 * 10 * HOUR_S) == 0.25 * 10 * HOUR_S
    assert length(known, attained_s=0.25 * 10 * HOUR_S) == 0.5 * 10 * HOUR_S
    assert length(known, attained_s=0.5 * 10 * HOUR_S) == 10 * HOUR_S


def tallied(*uses: tuple[int, float, bool]) -> Tally:
    tally = Tally(0.0)
    for each in uses:
        tally.add(Use(*each), 0.0)
    return tally


@pytest.mark.parametrize(
    ("uses", "chances"),
    [
        ([], {TOP: 1.0}),
        ([(8, 1.0, False), (16, 1.0, True), (24, 1.0, False)], {8: 1 / 3, 24: 2 / 3}),
        ([(8, 0.25, False), (16, 0.25, True), (24, 0.25, False)], {8: 1 / 3, 24: 2 / 3}),
        ([(8, 3.0, True)], {TOP: 1.0}),
        ([(8, 1.0, False), (8, 3.0, True)], {8: 0.25, TOP: 0.75}),
        ([(8, 1.0, False), (TOP, 1.0, False), (TOP, 1.0, True)], {8: 1 / 3, TOP: 2 / 3}),
    ],
)
def test_who_was_cut_short_counts_with_those_who_ran_longer(
    uses: list[tuple[int, float, bool]], chances: dict[int, float]
) -> None:
    """As Kaplan and Meier reckon it; what is left at last is at the limit."""
    found = survived(tallied(*uses))

    assert {at: each for at, each in enumerate(found) if each} == pytest.approx(chances)


def test_a_tally_fades_by_half_in_a_half_life_from_whenever_it_is() -> None:
    tally = tallied((8, 1.0, False), (9, 2.0, True))
    tally.fade(HALF_LIFE_S)
    tally.fade(3 * HALF_LIFE_S)

    assert (tally.ended[8], tally.cut[9], tally.at_s) == (0.125, 0.25, 3 * HALF_LIFE_S)


@pytest.mark.parametrize("life", [lived(1.0, 1.0), lived(elapsed_s=1.0), lived(elapsed_s=0.5, limit_s=0.5)])
def test_the_shortest_job_tells_a_little(life: PastLife) -> None:
    use = use_of(life)
    assert use is not None
    assert use.weight == life.elapsed_s / WHOLE_S


def test_a_copied_tally_fades_by_itself() -> None:
    tally = Tally(0.0)
    tally.add(use_of(lived(0.5)), 0.0)  # type: ignore[arg-type]
    copy = tally.copy()
    copy.fade(HALF_LIFE_S)

    assert (tally.at_s, sum(tally.ended), copy.at_s, sum(copy.ended)) == (0.0, 1.0, HALF_LIFE_S, 0.5)


def test_a_job_of_a_queue_is_estimated_by_its_own_user_and_account() -> None:
    def job(user: str, account: str) -> Job:
        return Job("c", f"{user}-{account}", 1, 1, user, Phase.PENDING, "", 0, None, 0, 1, account, name="train",
                   time_limit_s=36000)  # fmt: skip

    whose = {("alice", "ml"): 0.1, ("alice", "bio"): 0.4, ("bob", "ml"): 0.8}
    known = history(*(lived(share, user=user, account=of) for (user, of), share in whose.items() for _ in range(40)))
    found = lengths(known, [job(*each) for each in whose], 5000.0)

    assert {name: each.length_s for name, each in found.items()} == {
        f"{user}-{account}": length(known, user=user, account=account) for user, account in whose
    }
    assert len({each.length_s for each in found.values()}) == 3


@pytest.mark.parametrize(
    ("started_s", "length_s"), [(None, 60.0), (5000, 60.0), (5900, 60.0), (4999, 200.0)]
)  # fmt: skip
def test_only_who_has_begun_can_have_outrun_the_shortest_jobs(started_s: int | None, length_s: float) -> None:
    """Here all used less than 1/256 of their limits; and Slurm's clock may be ahead of ours."""
    known = history(*[lived(0.003, 1e6)] * 40)
    phase = Phase.PENDING if started_s is None else Phase.RUNNING
    job = Job("c", "1", 1, 1, "alice", phase, "", 0, started_s, 0, 1, "ml", name="train", time_limit_s=200)

    assert lengths(known, [job], 5000.0)["1"].length_s == length_s


def test_a_job_without_account_or_user_is_counted_once_and_for_nobody_else() -> None:
    known = history(lived(account=""), lived(user="", account=""))

    assert [known.weight(each) for each in kin_of("alice", "", "train")] == [2.0, 1.0, 1.0, 1.0]
    assert known.weight(kin_of("alice", "ml", "train")[2]) == 0.0


def test_what_is_forgotten_tells_nothing_any_more() -> None:
    known = history(*[lived(0.1)] * 20)
    assert length(known) < 2 * HOUR_S
    every = list(known.tallies)
    known.forget(every)
    known.forget(every)

    assert length(known) == 10 * HOUR_S


@pytest.mark.parametrize(
    ("share", "place"), [(0.0, 0), (1e-9, 0), (1 / 256, 0), (0.5, TOP - 8), (1.0, TOP), (7.0, TOP)]
)
def test_bins(share: float, place: int) -> None:
    assert bin_of(share) == place


@pytest.mark.properties
@given(share=st.floats(1 / 256, 1.0))
def test_a_bins_edge_is_never_short_and_at_most_nine_per_cent_long(share: float) -> None:
    edge = SHARES[bin_of(share)]

    assert share * (1 - 1e-9) <= edge <= share * 1.0906


@pytest.mark.properties
@given(known=st.lists(lives(), max_size=30), limit_s=limits, done=st.floats(0.0, 1.2), user=users, name=names)
def test_no_estimate_leaves_its_bounds(
    known: list[PastLife], limit_s: float, done: float, user: str, name: str
) -> None:
    attained_s = done * limit_s
    found = length(history(*known), limit_s, attained_s, user=user, name=name)

    assert min(limit_s, LEAST_S) <= found <= limit_s
    assert found >= min(limit_s, attained_s)


@pytest.mark.properties
@given(known=st.lists(lives(), max_size=20), a=limits, b=limits)
def test_who_asks_for_less_time_is_never_estimated_longer(known: list[PastLife], a: float, b: float) -> None:
    short, long = sorted((a, b))

    assert length(history(*known), short) <= length(history(*known), long)


@pytest.mark.properties
@given(known=st.lists(lives(), max_size=20), cut=lives(CUTS), user=users, name=names)
def test_a_job_that_was_cut_short_shortens_nobodys_estimate(
    known: list[PastLife], cut: PastLife, user: str, name: str
) -> None:
    """So nobody gains by cancelling his own jobs, and no stop of ours makes its owner's next job look shorter."""
    cut = cut._replace(ended_s=max([0.0, *(each.ended_s for each in known)]))
    before, after = history(*known), history(*known, cut)
    for each in (before, after):
        each.read_until(cut.ended_s)

    assert length(after, user=user, name=name) >= length(before, user=user, name=name) * (1 - 1e-9)


@pytest.mark.properties
@given(
    honest=st.lists(st.floats(0.3, 1.0), min_size=6, max_size=30),
    seconds=st.lists(st.floats(1.0, 2 * WHOLE_S), max_size=200),
    fresh_name=st.booleans(),
)
def test_a_lie_costs_ten_minutes_of_running_for_each_honest_job_beyond_the_first_four(
    honest: list[float], seconds: list[float], fresh_name: bool
) -> None:
    """Fake short jobs under the same name shorten its estimate only once they outweigh what the honest ones told.

    Under a name of their own twenty minutes of them are too few, against what is known of the user in the account.
    """
    limit_s = 10 * HOUR_S
    budget_s = WHOLE_S * (COARSER_JOBS / 2 if fresh_name else len(honest) - COARSER_JOBS)
    fakes, ran_s = [], 0.0
    for each in seconds:
        if ran_s + each < budget_s:
            fakes.append(lived(elapsed_s=each, limit_s=limit_s, name="fake" if fresh_name else "train"))
            ran_s += each
    known = history(*(lived(share, limit_s) for share in honest), *fakes)

    assert length(known, limit_s, name="fake" if fresh_name else "train") >= 0.3 * limit_s
