"""How far off limits and estimates are, with intervals: shares by Wilson, means by a bootstrap over users."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import log
from statistics import median

from evalstopd.report.estimates.judge import Judged
from evalstopd.report.replay.intervals import Estimate, rate

TWICE = log(2.0)
RESAMPLES = 1000
PAIRS = 20_000
_HOUR_S = 3600.0
_TAIL = 0.025


@dataclass(frozen=True, slots=True)
class Errors:
    """How far off one figure is: ln ratios and hours are absolute; `over` and `under` by more than twice."""

    median_off: float
    mean_off: Estimate
    hours: Estimate
    within_twice: Estimate
    over: Estimate
    under: Estimate
    in_order: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """A group of jobs (all of them where no name is given), their limits' errors and their estimates'.

    `nearer` is the share of jobs to whose length the estimate was nearer than the limit, of those where they differ.
    `gain` is by how much the mean |ln ratio| fell.
    """

    user: str
    account: str
    name: str
    jobs: int
    limit: Errors
    estimate: Errors
    nearer: Estimate
    gain: Estimate


def row(judged: Sequence[Judged], whose: tuple[str, str, str] = ("", "", "")) -> Row:
    """Return the errors of a group; there must be one job at least."""
    differ = [each for each in judged if each.estimate_s != each.limit_s]
    return Row(
        *whose,
        jobs=len(judged),
        limit=_errors(judged, lambda each: each.limit_off, lambda each: each.limit_s),
        estimate=_errors(judged, lambda each: each.off, lambda each: each.estimate_s),
        nearer=rate(sum(abs(each.off) < abs(each.limit_off) for each in differ), len(differ)),
        gain=by_users(judged, lambda each: abs(each.limit_off) - abs(each.off)),
    )


def _errors(judged: Sequence[Judged], off: Callable[[Judged], float], told_s: Callable[[Judged], float]) -> Errors:
    offs, of = [off(each) for each in judged], len(judged)
    return Errors(
        median_off=median(abs(each) for each in offs),
        mean_off=by_users(judged, lambda each: abs(off(each))),
        hours=by_users(judged, lambda each: abs(told_s(each) - each.actual_s) / _HOUR_S),
        within_twice=rate(sum(abs(each) <= TWICE for each in offs), of),
        over=rate(sum(each > TWICE for each in offs), of),
        under=rate(sum(each < -TWICE for each in offs), of),
        in_order=in_order(judged, told_s),
    )


def by_users(judged: Sequence[Judged], value: Callable[[Judged], float]) -> Estimate:
    """Return the mean with the 95 % interval of a bootstrap that draws users, not jobs: a user's jobs are alike.

    With a single user there is no interval.
    """
    sums: dict[str, tuple[float, int]] = {}
    for each in judged:
        total, count = sums.get(each.user, (0.0, 0))
        sums[each.user] = (total + value(each), count + 1)
    users = [sums[user] for user in sorted(sums)]
    mean = _mean(users)
    if len(users) < 2:
        return Estimate(mean, of=len(judged))
    draw = dice(f"{len(users)} users")
    means = sorted(_mean([users[draw(len(users))] for _ in users]) for _ in range(RESAMPLES))
    cut = int(_TAIL * RESAMPLES)
    return Estimate(mean, means[cut], means[-cut - 1], len(judged))


def in_order(judged: Sequence[Judged], told_s: Callable[[Judged], float]) -> float | None:
    """Return the share of pairs of jobs whose shorter one the figure puts first; equal figures count half.

    This is what a ranking by length lives on. Over pairs drawn by a fixed seed; None without two different lengths.
    """
    draw, right, of = dice("pairs"), 0.0, 0
    for _ in range(PAIRS if len(judged) > 1 else 0):
        one, other = judged[draw(len(judged))], judged[draw(len(judged))]
        if one.actual_s != other.actual_s:
            says = (told_s(one) - told_s(other)) * (one.actual_s - other.actual_s)
            right += 0.5 if says == 0 else float(says > 0)
            of += 1
    return right / of if of else None


def dice(seed: str) -> Callable[[int], int]:
    """Return what draws whole numbers below a bound, the same for the same seed on every machine."""
    state = int.from_bytes(sha256(seed.encode()).digest()[:8], "big")

    def draw(below: int) -> int:
        nonlocal state
        # Constants of Knuth's MMIX; the high bits are the good ones.
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 33) % below

    return draw


def _mean(sums: Sequence[tuple[float, int]]) -> float:
    return sum(total for total, _ in sums) / sum(count for _, count in sums)
