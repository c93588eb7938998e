"""Keys, trends and shares of the base policies, worked out by hand."""

from math import inf

import pytest

from evalstopd.core.model import Eval, JobView
from evalstopd.core.policies import ELASTIC, POLICIES, STEADY, Trend, elastic, policy
from evalstopd.core.policies.goodput import efficiency
from evalstopd.core.policies.greedy import greedy

ONE = JobView("1", 7.0, 2, estimate_s=1000.0, attained_s=100.0)


def test_what_the_policies_without_memory_rank_by() -> None:
    assert policy("fifo").key(ONE, 0.0) == (7.0,)
    assert policy("sjf-est").key(ONE, 0.0) == (1000.0,)
    assert policy("srtf-est").key(ONE, 0.0) == (900.0,)
    assert policy("fifo").trend(ONE) == policy("sjf-est").trend(ONE) == policy("loss-aware").trend(ONE) == STEADY


def test_loss_aware_ranks_by_the_fall_of_the_loss_after_those_without_one() -> None:
    assert policy("loss-aware").key(ONE, 0.0) == (0.0, 0.0)
    assert policy("loss-aware").key(JobView("1", 0.0, 1, loss_drop_per_s=0.25), 0.0) == (1.0, -0.25)
    assert policy("loss-aware").key(JobView("1", 0.0, 1, loss_drop_per_s=0.0), 0.0) == (1.0, 0.0)


def test_a_running_jobs_remaining_time_falls_until_the_floor() -> None:
    """1,000 s with a floor of 2 %: after 100 s it falls for 880 more."""
    assert policy("srtf-est").trend(ONE) == Trend(-1.0, 880.0)
    assert policy("srtf-est:floor=0").trend(ONE) == Trend(-1.0, 900.0)
    assert policy("srtf-est").trend(JobView("1", 0.0, 1, estimate_s=1000.0, attained_s=980.0)) == STEADY
    assert policy("srtf-est").trend(JobView("1", 0.0, 1)) == STEADY


def las(gpus: int, attained_s: float, *, running: bool = True) -> JobView:
    return JobView("1", 7.0, gpus, attained_s=attained_s, running=running)


@pytest.mark.parametrize(
    ("job", "key", "trend"),
    [
        (las(2, 0.0, running=False), (0.0, 1.0, 7.0), Trend(0.0, 1625.0, jumps=True)),
        (las(2, 1000.0), (0.0, 0.0, 7.0), Trend(0.0, 625.0, jumps=True)),
        (las(2, 1000.0, running=False), (0.0, 1.0, 7.0), Trend(0.0, 625.0, jumps=True)),
        (las(2, 2000.0), (1.0, 0.0, 7.0), Trend(0.0, 1600.0, jumps=True)),
        (las(2, 1625.0), (1.0, 1.0, 7.0), Trend(0.0, 0.01, jumps=True)),
        (las(2, 1625.004), (1.0, 1.0, 7.0), Trend(0.0, 0.006, jumps=True)),
        (las(1, 3250.0), (1.0, 1.0, 7.0), Trend(0.0, 0.01, jumps=True)),
        (las(2, 1625.02), (1.0, 0.0, 7.0), Trend(0.0, 1974.98, jumps=True)),
        (las(2, 3600.0), (2.0, 1.0, 7.0), Trend(0.0, 0.01, jumps=True)),
        (las(2, 4000.0), (2.0, 0.0, 7.0), STEADY),
        (las(0, 3000.0), (0.0, 0.0, 7.0), Trend(0.0, 250.0, jumps=True)),
        (las(0, 5000.0), (1.0, 0.0, 7.0), Trend(0.0, 2200.0, jumps=True)),
    ],
)
def test_las_queues_by_gpu_seconds_and_a_job_that_just_fell_competes_with_those_who_wait(
    job: JobView, key: tuple[float, ...], trend: Trend
) -> None:
    """The limits are 3,250 and 7,200 GPU-seconds: 1,625 s and 3,600 s on two GPUs; no GPU counts as one."""
    assert policy("las").key(job, 0.0) == key
    assert policy("las").trend(job) == pytest.approx(trend)


def test_las_counts_a_sum_of_differences_that_falls_short_by_rounding_as_there() -> None:
    assert policy("las").key(las(1, 3250.0 - 1e-7), 0.0)[0] == 1.0
    assert policy("las").key(las(1, 3250.0 - 1e-4), 0.0)[0] == 0.0
    assert policy("las").key(las(1, 3250.01 - 1e-7), 0.0)[1] == 0.0


@pytest.mark.parametrize("spec", ["las:first=0", "las:first=7200", "las:second=3250"])
def test_limits_that_do_not_rise_from_above_zero_are_refused(spec: str) -> None:
    with pytest.raises(ValueError, match="rise from above 0"):
        policy(spec)


@pytest.mark.parametrize("floor", ["-0.1", "1.1"])
def test_a_floor_that_is_no_share_is_refused_and_the_ends_are_taken(floor: str) -> None:
    with pytest.raises(ValueError, match="share between 0 and 1"):
        policy(f"srtf-est:floor={floor}")
    assert policy("srtf-est:floor=1").spec == "srtf-est:floor=1"
    assert policy("srtf-est:floor=0").spec == "srtf-est:floor=0"


@pytest.mark.parametrize("spec", ["fifo", "sjf-est", "srtf-est", "loss-aware", "las", "las:first=0.5,second=20"])
def test_a_policy_is_named_as_it_was_asked_for(spec: str) -> None:
    assert policy(spec).spec == spec
    assert set(POLICIES) == {"fifo", "sjf-est", "srtf-est", "loss-aware", "las"}


@pytest.mark.parametrize("spec", ["slaq", "goodput"])
def test_an_elastic_policy_is_named_as_it_was_asked_for_and_divides_anew_each_minute(spec: str) -> None:
    assert elastic(spec).spec == spec
    assert elastic(spec).round_s == 60.0
    assert elastic(f"{spec}:round_s=30").round_s == 30.0
    assert set(ELASTIC) == {"slaq", "goodput"}


def test_what_a_policy_takes_is_said_where_it_is_asked_for_something_else() -> None:
    with pytest.raises(ValueError, match=r"known: fifo, las, loss-aware, sjf-est, srtf-est$"):
        policy("lifo")
    with pytest.raises(ValueError, match=r"it has: first, second$"):
        policy("las:third=1")


def test_efficiency_falls_with_the_gpus_and_grows_with_what_is_done() -> None:
    """The noise scale goes from 8 to 64 GPUs: 8 / 16, 36 / 40, 64 / 128."""
    assert efficiency(8, 0.0) == 0.5
    assert efficiency(4, 0.5) == 0.9
    assert efficiency(64, 1.0) == 0.5


def test_gpus_go_one_by_one_to_the_largest_gain_and_ties_to_the_first() -> None:
    def steps(*gains: float) -> object:
        return lambda n: sum(gains[:n])

    first, second = steps(5, 3, 1, 0), steps(4, 3, 0, 0)

    assert [greedy([first, second], n) for n in range(6)] == [[0, 0], [1, 0], [1, 1], [2, 1], [2, 2], [3, 2]]
    assert greedy([first, second], 99) == [3, 2], "nobody gets a GPU that adds nothing"
    assert greedy([], 4) == []


def test_a_gain_is_counted_from_nothing_even_where_the_function_is_not_zero_there() -> None:
    assert greedy([lambda n: 10.0 + n, lambda n: 2.0 * n], 2) == [1, 1]


def shares(spec: str, jobs: list[JobView], gpus: int) -> dict[str, int]:
    return dict(elastic(spec).allocate(jobs, gpus, 0.0).gpus)


def test_goodput_weighs_speed_by_efficiency_relative_to_one_gpu() -> None:
    """A second GPU adds .698 to a new job; to one near its end a second, third, fourth add .858, .740, .642."""
    new = JobView("new", 0.0, 1, estimate_s=100.0)
    late = JobView("late", 0.0, 1, estimate_s=100.0, attained_s=100.0)

    assert shares("goodput", [new, late], 3) == {"new": 1, "late": 2}
    assert shares("goodput", [new, late], 4) == {"new": 1, "late": 3}
    assert shares("goodput", [new, late], 5) == {"new": 2, "late": 3}
    assert shares("goodput", [new, late], 1) == {"new": 1}


def falling(name: str, *seen: tuple[float | None, float | None], estimate_s: float = 1000.0) -> JobView:
    evals = tuple(Eval(step, 0.5, elapsed_s=at, loss=loss) for step, (at, loss) in enumerate(seen))
    return JobView(name, 0.0, 1, estimate_s=estimate_s, evals=evals)


@pytest.mark.parametrize(("estimate_s", "second"), [(810.0, "plain"), (820.0, "fitted")])
def test_slaq_sets_the_fitted_fall_of_one_job_against_the_estimate_of_another(estimate_s: float, second: str) -> None:
    """Losses 1 at 100 s and .5 at 200 s give c = 100: a second GPU lowers the loss by 100 / 260 - 100 / 313.2 = .0653
    more. Without losses it is .8868 of the round's 60 s over the estimate: equal at an estimate of 814 s."""
    fitted = falling("fitted", (50.0, 9.0), (100.0, 1.0), (200.0, 0.5))
    plain = JobView("plain", 0.0, 1, estimate_s=estimate_s)

    assert shares("slaq", [fitted, plain], 3) == {"fitted": 1, "plain": 1, second: 2}


def test_slaq_takes_no_job_to_end_within_less_than_a_round() -> None:
    jobs = [JobView("a", 0.0, 1, estimate_s=60.0), JobView("b", 0.0, 1, estimate_s=30.0)]

    assert shares("slaq", jobs, 3) == {"a": 2, "b": 1}


def test_slaq_gives_no_more_to_a_job_whose_loss_rises() -> None:
    assert shares("slaq", [falling("up", (100.0, 0.5), (200.0, 0.6))], 4) == {"up": 1}


@pytest.mark.parametrize(
    "seen",
    [
        [(100.0, 0.5)],
        [(200.0, 0.9), (200.0, 0.5)],
        [(300.0, 0.9), (200.0, 0.5)],
        [(100.0, 0.9), (200.0, None)],
        [(None, 0.9), (200.0, 0.5)],
        [(0.0, 0.9), (200.0, 0.5)],
        [(100.0, 0.9), (150.0, 0.8), (200.0, None)],
    ],
)
def test_slaq_goes_by_the_estimate_where_the_last_two_losses_cannot_be_fitted(
    seen: list[tuple[float | None, float | None]],
) -> None:
    """A tie with a job that has the same estimate and no losses at all goes to whoever is named first."""
    plain = JobView("plain", 0.0, 1, estimate_s=1000.0)

    assert shares("slaq", [plain, falling("odd", *seen)], 3) == {"plain": 2, "odd": 1}
    assert shares("slaq", [falling("odd", *seen), plain], 3) == {"plain": 1, "odd": 2}


def test_slaq_fits_a_loss_of_zero_too() -> None:
    done = falling("done", (100.0, 0.0), (200.0, 0.0))

    assert shares("slaq", [done, JobView("plain", 0.0, 1, estimate_s=1e6)], 4) == {"done": 1, "plain": 3}


def test_a_job_without_an_estimate_ranks_last_and_its_key_stands_still() -> None:
    endless = JobView("1", 0.0, 1, attained_s=50.0)

    assert policy("sjf-est").key(endless, 0.0) == policy("srtf-est").key(endless, 0.0) == (inf,)


@pytest.mark.parametrize(("estimate_s", "first"), [(600.0, "fitted"), (500.0, "plain")])
def test_slaq_counts_a_jobs_first_gpu_the_same_way_with_losses_and_without(estimate_s: float, first: str) -> None:
    """1 + 100 / 200 - 100 / 260 = 1.115 against 1 + 60 s over the estimate."""
    fitted = falling("fitted", (100.0, 1.0), (200.0, 0.5))

    assert shares("slaq", [fitted, JobView("plain", 0.0, 1, estimate_s=estimate_s)], 1) == {first: 1}


@pytest.mark.parametrize("name", ["slaq", "goodput"])
def test_an_elastic_policy_divides_between_once_a_second_and_once_a_day(name: str) -> None:
    assert [elastic(f"{name}:round_s={each}").round_s for each in (1, 86400)] == [1.0, 86400.0]
    for wrong in (0.5, 86400.5):
        with pytest.raises(ValueError, match=f"^{name}: round_s must be between 1 s and a day, not {wrong:g}$"):
            elastic(f"{name}:round_s={wrong}")
