"""The guaranteed rule: false stops stay under alpha wherever its null holds, and what power is left is stated."""

import math
from collections.abc import Callable
from random import Random

import pytest

from evalstopd.core.detectors import Declining, KeepGoing, Stop, Verdict, detector, fold
from evalstopd.core.detectors.guaranteed import levels
from evalstopd.core.model import Eval, JobView, Mode
from tests.growth import spent_s

JOB = JobView("1", 0.0, 1)


@pytest.fixture(autouse=True)
def _levels_made_anew() -> None:
    """Levels that an earlier test had made must not answer in a later one."""
    levels.cache_clear()


Maker = Callable[[Random, int], list[float]]


def share(stream: Random, items: int, mean: float) -> float:
    return sum(stream.random() < mean for _ in range(items)) / items


def stopped(rule: str, maker: Maker, evals: int, runs: int, seed: int = 1) -> float:
    stream, made = Random(seed), detector(rule)
    hits = 0
    for _ in range(runs):
        points = [Eval(i, score) for i, score in enumerate(maker(stream, evals))]
        hits += any(isinstance(each, Stop) for each in fold(made, JOB, points))
    return hits / runs


def flat(stream: Random, evals: int) -> list[float]:
    return [share(stream, 20, 0.6) for _ in range(evals)]


def rising(stream: Random, evals: int) -> list[float]:
    return [share(stream, 20, 0.2 + 0.6 * i / evals) for i in range(evals)]


def stairs_by_the_past(stream: Random, evals: int) -> list[float]:
    """The mean may depend on what was seen, as long as it never falls: it rises after each lucky eval."""
    scores, mean = [], 0.3
    for _ in range(evals):
        scores.append(share(stream, 20, mean))
        mean = min(0.7, mean + 0.05) if scores[-1] > mean else mean
    return scores


def all_or_nothing(stream: Random, evals: int) -> list[float]:
    """The noisiest score there is between 0 and 1: a single item."""
    return [float(stream.random() < 0.5) for _ in range(evals)]


@pytest.mark.rates
@pytest.mark.parametrize(
    ("maker", "items"), [(flat, 20), (rising, 20), (stairs_by_the_past, 20), (all_or_nothing, 1), (flat, 1)]
)
@pytest.mark.parametrize("alpha", [0.2])
def test_false_stops_stay_under_alpha_where_the_null_holds(maker: Maker, items: int, alpha: float) -> None:
    assert stopped(f"guaranteed:alpha={alpha},items={items}", maker, 100, 60) <= alpha


@pytest.mark.rates
def test_a_claim_of_more_items_than_there_are_breaks_the_bound() -> None:
    """The check on the check: with its null broken, the same measurement does exceed alpha."""
    assert stopped("guaranteed:alpha=0.2,items=400", flat, 60, 60) > 0.2


@pytest.mark.rates
@pytest.mark.parametrize(
    ("items", "drop", "low", "high"), [(50, 0.3, 0.9, 1.0), (200, 0.2, 0.9, 1.0), (1, 0.3, 0.0, 0.05)]
)
def test_power_on_twenty_evals_is_as_stated(items: int, drop: float, low: float, high: float) -> None:
    """From .8 by `drop` half way; a score of which nothing but its bounds is known proves nothing so soon."""

    def falling(stream: Random, evals: int) -> list[float]:
        return [share(stream, items, 0.8 - drop * (i >= evals // 2)) for i in range(evals)]

    assert low <= stopped(f"guaranteed:items={items}", falling, 20, 60) <= high


def test_each_bet_is_fair_at_its_level_and_loses_on_the_wrong_side() -> None:
    """Mean gain of a bet under a share of 0 or 1 items: at most 1 wherever the mean is on the null's side."""
    for level in levels(200):
        for bets, means in ((level.above, (0.2, 0.6, 1.0)), (level.below, (1.0, 1.3, 2.0))):
            for bet in bets:
                for factor in means:
                    mean = min(1.0, level.at * factor)
                    gain = mean * math.exp(bet.one) + (1 - mean) * math.exp(bet.zero)
                    assert gain <= 1 + 1e-9


def test_a_score_out_of_bounds_ends_the_proof_for_good() -> None:
    made = detector("guaranteed:items=1000")
    falling = [0.9] * 10 + [0.1] * 10

    assert isinstance(fold(made, JOB, [Eval(i, s) for i, s in enumerate(falling)])[-1], Stop)
    assert not any(isinstance(v, Stop) for v in fold(made, JOB, [Eval(i, s) for i, s in enumerate([1.5, *falling])]))


def test_levels_divide_the_scale_evenly_and_grow_with_the_items() -> None:
    assert [len(levels(items)) for items in (1, 16, 25, 200, 256, 10**6)] == [6, 6, 8, 21, 24, 24]
    assert [each.at for each in levels(1)] == pytest.approx([n / 7 for n in range(1, 7)])


def test_each_level_bets_on_means_one_two_and_four_levels_away_within_the_scale() -> None:
    """At 3 / 7: above on 4, 5 and 7 sevenths (7 is cut to .999), below on 2, 1 and -1 (cut to .001)."""
    level = levels(1)[2]

    def bets(*means: float) -> list[tuple[float, float]]:
        return [(math.log(mean / (3 / 7)), math.log((1 - mean) / (4 / 7))) for mean in means]

    assert [(bet.one, bet.zero) for bet in level.above] == [pytest.approx(each) for each in bets(4 / 7, 5 / 7, 0.999)]
    assert [(bet.one, bet.zero) for bet in level.below] == [pytest.approx(each) for each in bets(2 / 7, 1 / 7, 0.001)]


def test_the_proof_counts_in_tenths_and_says_what_it_proves() -> None:
    made = detector("guaranteed:items=50,alpha=0.1")
    verdicts = fold(made, JOB, [Eval(i, s) for i, s in enumerate([0.9] * 6 + [0.6] * 6)])
    stop = next(each for each in verdicts if isinstance(each, Stop))

    assert stop.reason == "it is proven at error 0.1 that the score's mean has fallen"
    assert {each.of for each in verdicts if isinstance(each, Declining)} <= {10}
    rising = fold(
        detector("guaranteed:items=50", Mode.MIN), JOB, [Eval(i, s) for i, s in enumerate([0.1] * 9 + [0.9] * 9)]
    )
    assert getattr(rising[-1], "reason", "").endswith("has risen")


def by_definition(scores: list[float], items: int, alpha: float) -> Verdict:
    """Return the verdict on a whole run from the definition: sums over starts of the bets, nothing kept in between."""
    at_levels, needed = levels(items), 2 * len(levels(items)) / alpha
    found: list[tuple[float, int]] = []
    for level in at_levels:

        def evidence(seen: list[float], bets: tuple[object, ...]) -> float:
            gains = [[math.exp(items * (s * bet.one + (1 - s) * bet.zero)) for s in seen] for bet in bets]
            starts = range(len(seen))
            won = sum(math.prod(each[at:]) / ((at + 1) * (at + 2)) for each in gains for at in starts)
            return won / len(bets) + 1 / (len(seen) + 1)

        proven = next((n for n in range(1, len(scores) + 1) if evidence(scores[:n], level.above) >= needed), None)
        if proven is not None:
            found.append((evidence(scores[proven:], level.below), len(scores) - proven))
    strongest, since = max(found, default=(0.0, 0), key=lambda each: each[0])
    if strongest >= needed:
        return Stop(f"it is proven at error {alpha:g} that the score's mean has fallen", since)
    tenths = int(10 * math.log(max(1.0, strongest)) / math.log(needed))
    return Declining(tenths, 10) if tenths else KeepGoing()


@pytest.mark.parametrize("seed", range(4))
def test_capital_that_is_carried_on_gives_what_the_definition_gives_anew(seed: int) -> None:
    stream, items, alpha = Random(seed), 25, 0.1
    scores = [share(stream, items, 0.8) for _ in range(6)] + [share(stream, items, 0.3) for _ in range(12)]
    carried = fold(detector(f"guaranteed:items={items},alpha={alpha}"), JOB, [Eval(i, s) for i, s in enumerate(scores)])
    stop = next(at for at, each in enumerate(carried) if isinstance(each, Stop))

    assert list(carried[: stop + 1]) == [by_definition(scores[: n + 1], items, alpha) for n in range(stop + 1)]
    assert any(isinstance(each, Declining) for each in carried)


def test_scores_of_however_many_items_can_be_judged() -> None:
    """The capital that a bet of so many items gains or loses is no number that a float can hold."""
    made = detector("guaranteed:items=1000000")

    assert isinstance(fold(made, JOB, [Eval(at, score) for at, score in enumerate([0.1, 0.1, 0.9])])[-1], KeepGoing)
    assert isinstance(fold(made, JOB, [Eval(at, score) for at, score in enumerate([0.9, 0.9, 0.1])])[-1], Stop)


@pytest.mark.timed
def test_an_eval_costs_little_more_than_the_exponentials_of_its_bets() -> None:
    """Of 1,000 items there are 72: a run of 60,000 evals may not hold up a pass for seconds."""
    made, evals = detector("guaranteed:items=1000"), [Eval(at, 0.5 + at % 7 / 100) for at in range(500)]

    def judged() -> object:
        return fold(made, JOB, evals, len(evals) - 1)

    def exponentials() -> float:
        return sum(math.exp(-at / 100) for _ in evals for at in range(72))

    assert min(spent_s(judged) / spent_s(exponentials) for _ in range(10)) < 6.0


def test_the_scale_of_the_score_is_given_by_its_bounds() -> None:
    scores = [0.9] * 8 + [0.2] * 8
    plain = fold(detector("guaranteed:items=50"), JOB, [Eval(i, s) for i, s in enumerate(scores)])
    scaled = detector("guaranteed:items=50,low=-10,high=30")

    assert fold(scaled, JOB, [Eval(i, 40 * s - 10) for i, s in enumerate(scores)]) == plain
    assert isinstance(plain[-1], Stop)


def test_scores_on_the_bounds_are_within_them() -> None:
    made = detector("guaranteed:items=1000")

    for start in (1.0, 0.0):
        verdicts = fold(made, JOB, [Eval(i, s) for i, s in enumerate([start] + [0.9] * 10 + [0.1] * 10)])
        assert isinstance(verdicts[-1], Stop)


@pytest.mark.parametrize("bad", ["alpha=0", "alpha=1", "items=0", "low=1", "low=-inf", "high=inf", "high=nan"])
def test_a_null_that_cannot_be_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match=r"^guaranteed: alpha in"):
        detector(f"guaranteed:{bad}")
    assert detector("guaranteed:items=1,low=-1,high=0").spec == "guaranteed:alpha=0.05,items=1,low=-1,high=0"
