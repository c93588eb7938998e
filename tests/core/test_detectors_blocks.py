"""The rule of blocks and the recommended one: invariances, noise, false stops on pure noise, what a verdict costs."""

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstopd.core.curve import is_score
from evalstopd.core.detectors import Declining, KeepGoing, Stop, detector, fold
from evalstopd.core.detectors.blocks import Blocks, best_stretch, block_size
from evalstopd.core.model import Eval, JobView, Mode
from tests.core.plain_blocks import PlainBlocks, block_means

JOB = JobView("1", 0.0, 1)


def verdicts(rule: str, scores: list[float], stderr: float | None = None) -> tuple[object, ...]:
    return fold(detector(rule), JOB, [Eval(i, score, stderr) for i, score in enumerate(scores)])


def share_of_flat_runs_stopped(rule: str, evals: int, runs: int) -> float:
    stream, made = Random(f"{rule} {evals}"), detector(rule)
    hits = 0
    for _ in range(runs):
        points = [Eval(i, stream.gauss(0, 1)) for i in range(evals)]
        hits += any(isinstance(each, Stop) for each in fold(made, JOB, points))
    return hits / runs


def test_blocks_are_the_fewest_powers_of_two() -> None:
    assert [block_size(n) for n in (1, 24, 25, 49, 50, 99, 100, 200, 4001)] == [1, 1, 2, 2, 4, 4, 8, 16, 256]


def test_blocks_end_at_the_newest_score_and_drop_the_oldest_remainder() -> None:
    assert block_means((9.0, 1.0, 3.0, 5.0, 7.0), 2) == [2.0, 6.0]


def test_the_best_stretch_is_a_mean_of_up_to_three_blocks() -> None:
    assert best_stretch([0.0, 3.0, 6.0, 3.0, 0.0]) == 4.0
    assert best_stretch([9.0, 0.0, 0.0, 0.0]) == 9.0
    assert best_stretch([1.0, 8.0, 2.0, 0.0, 0.0]) == 4.5, "the first two"
    assert best_stretch([0.0, 2.0, 9.0, 1.0, 0.0]) == 4.0


def test_one_deep_dip_is_forgiven_and_three_are_not() -> None:
    """Persistence: the rule waits for three low evals in a row and counts them for the owner."""
    level = [0.50, 0.51, 0.49, 0.50, 0.52, 0.49, 0.51, 0.50]
    found = verdicts("recommended", [*level, 0.1, 0.11, 0.09])

    assert isinstance(found[7], KeepGoing)
    assert [found[8], found[9]] == [Declining(1, 3), Declining(2, 3)]
    assert isinstance(found[10], Stop)
    assert isinstance(verdicts("recommended", [*level, 0.1, 0.5, 0.51])[-1], KeepGoing)


def test_no_verdict_before_six_evals() -> None:
    assert all(isinstance(each, KeepGoing) for each in verdicts("blocks", [9.0, 9.0, 0.0, 0.01, 0.0])[:5])


def test_a_slow_shallow_fall_is_seen_by_the_slow_branch_alone() -> None:
    """Six evals that all lie by seven tenths of the margin below the best stretch, none by the whole of it."""
    scores = [0.50, 0.52, 0.48, 0.51, 0.49, 0.50, 0.52, 0.48, 0.51, 0.49, *([0.42, 0.43, 0.41] * 2)]
    quick, slow = "blocks:c=2,plain=1", "blocks:c=2,plain=1,slow=0.7"

    assert not any(isinstance(each, Stop) for each in verdicts(quick, scores))
    found = verdicts(slow, scores)
    assert [isinstance(each, Stop) for each in found] == [False] * 15 + [True]
    assert found[14] == Declining(5, 6)
    assert "each of the last 6 evals" in getattr(found[15], "reason", "")


def test_a_logged_standard_error_larger_than_the_curve_shows_holds_the_rule_back() -> None:
    fall = [0.50, 0.51, 0.49, 0.50, 0.52, 0.49, 0.51, 0.50, 0.30, 0.31, 0.29]

    assert isinstance(verdicts("recommended", fall, stderr=0.005)[-1], Stop)
    assert not isinstance(verdicts("recommended", fall, stderr=0.1)[-1], Stop)


@given(st.integers(0, 10_000), st.integers(6, 70), st.sampled_from([0.25, 4.0]), st.sampled_from([-8.0, 16.0]))
def test_units_and_origin_of_the_score_do_not_matter(seed: int, count: int, scale: float, shift: float) -> None:
    stream = Random(seed)
    scores = [round(stream.gauss(0, 1) - i * stream.random() / 9, 6) for i in range(count)]
    moved = [score * scale + shift for score in scores]

    def kinds(of: list[float]) -> list[tuple[type, int]]:
        return [(type(each), getattr(each, "count", 0)) for each in verdicts("recommended", of)]

    assert kinds(moved) == kinds(scores)


def test_a_constant_run_is_never_stopped() -> None:
    assert all(isinstance(each, KeepGoing) for each in verdicts("recommended", [0.7] * 120))


def test_a_run_whose_blocks_are_all_alike_is_never_stopped() -> None:
    """They show no noise at all, not in blocks half as long either, and its newest eval is not its best."""
    assert not any(isinstance(each, (Stop, Declining)) for each in verdicts("blocks", [0.6, 0.4] * 40)[49:])


def test_scores_too_large_to_add_up_do_no_harm() -> None:
    assert len(verdicts("recommended", [9e307, -9e307] * 20)) == 40


@pytest.mark.rates
@pytest.mark.parametrize(("evals", "most"), [(10, 0.06), (20, 0.10), (50, 0.10), (100, 0.10)])
def test_the_recommended_rule_keeps_flat_runs_within_a_tenth_at_any_length(evals: int, most: float) -> None:
    assert share_of_flat_runs_stopped("recommended", evals, 1000) <= most


@pytest.mark.rates
def test_a_constant_threshold_lets_false_stops_grow_with_the_evals() -> None:
    """The reason why the recommended one grows: c = 1.4 alone stops a seventh of flat runs of 20 and a third of 100."""
    assert share_of_flat_runs_stopped("blocks:c=1.4", 100, 300) > 1.5 * share_of_flat_runs_stopped(
        "blocks:c=1.4", 20, 300
    )


def test_the_recommended_rule_is_blocks_with_its_own_numbers() -> None:
    scores = [Random(1).gauss(0, 1) - i / 5 for i in range(60)]
    recommended, blocks = detector("recommended"), detector("blocks:c=1.8,growth=1.5")

    assert isinstance(blocks, Blocks)
    assert fold(recommended, JOB, [Eval(i, s) for i, s in enumerate(scores)]) == fold(
        blocks, JOB, [Eval(i, s) for i, s in enumerate(scores)]
    )


PLAIN = "blocks:c=1,caution=0"


def test_three_evals_below_the_best_by_the_margin_stop_the_run_and_each_is_counted() -> None:
    """Errors of 1, c = 1 and no caution make a margin of 1."""
    found = verdicts(PLAIN, [10.0] * 6 + [9.0] * 3, stderr=1.0)

    assert found[5:] == (
        KeepGoing(),
        Declining(1, 3),
        Declining(2, 3),
        Stop("each of the last 3 evals lies below the best stretch (10) by more than 1 (noise 1)", 3),
    )
    assert verdicts(PLAIN, [10.0] * 6 + [9.01] * 3, stderr=1.0)[-1] == KeepGoing()
    assert verdicts(PLAIN, [10.0] * 6 + [9.0, 9.01, 9.0], stderr=1.0)[-1] == Declining(1, 3)


def test_where_less_is_better_the_reason_is_turned_back() -> None:
    points = [Eval(i, score, 1.0) for i, score in enumerate([10.0] * 6 + [11.0] * 3)]
    stop = fold(detector(PLAIN, Mode.MIN), JOB, points)[-1]

    assert stop == Stop("each of the last 3 evals lies above the best stretch (10) by more than 1 (noise 1)", 3)


def test_few_blocks_call_for_caution() -> None:
    """Nine blocks: 1 + 12 / 9 of the margin, 1.167 at c = .5."""
    stop = verdicts("blocks:c=0.5", [10.0] * 6 + [8.83] * 3, stderr=1.0)[-1]

    assert isinstance(stop, Stop)
    assert stop.reason.endswith("by more than 1.17 (noise 1)")
    assert not isinstance(verdicts("blocks:c=0.5", [10.0] * 6 + [8.84] * 3, stderr=1.0)[-1], Stop)


def test_the_margin_grows_after_twenty_evals() -> None:
    """At 24 it is 1 + ln 1.2 = 1.182."""
    grows = f"{PLAIN},growth=1"

    assert isinstance(verdicts(grows, [10.0] * 17 + [9.0] * 3, stderr=1.0)[-1], Stop)
    assert isinstance(verdicts(grows, [10.0] * 21 + [8.81] * 3, stderr=1.0)[-1], Stop)
    assert not isinstance(verdicts(grows, [10.0] * 21 + [8.82] * 3, stderr=1.0)[-1], Stop)


def test_a_block_of_two_evals_has_half_the_variance() -> None:
    """26 evals make 13 blocks of 2: the margin is .707. Its verdicts count in evals."""
    stop = verdicts(PLAIN, [10.0] * 20 + [9.29] * 6, stderr=1.0)[-1]

    assert stop == Stop(
        "each of the last 3 means of 2 evals lies below the best stretch (10) by more than 0.707 (noise 0.707)", 6
    )
    assert verdicts(PLAIN, [10.0] * 20 + [9.3] * 6, stderr=1.0)[-1] == KeepGoing()
    assert verdicts(PLAIN, [10.0] * 22 + [9.29] * 4, stderr=1.0)[-1] == Declining(4, 6, 2)


def test_an_odd_eval_that_fills_no_block_is_the_oldest() -> None:
    stop = verdicts(PLAIN, [100.0] + [10.0] * 18 + [9.29] * 6, stderr=1.0)[-1]

    assert "best stretch (10)" in getattr(stop, "reason", "")


def test_noise_that_cancels_within_a_block_is_seen_in_blocks_half_as_long() -> None:
    """Alternating by 1 either side, evals show 1.71 for a block of two, whose means do not move at all; by .4, .68."""
    still = [10.0] * 20 + [9.0] * 6
    swing, little = ([score + by * (-1) ** at for at, score in enumerate(still)] for by in (1.0, 0.4))

    assert isinstance(verdicts(PLAIN, still, stderr=1.0)[-1], Stop)
    assert isinstance(verdicts(PLAIN, little, stderr=1.0)[-1], Stop)
    assert not isinstance(verdicts(PLAIN, swing, stderr=1.0)[-1], Stop)
    assert not isinstance(verdicts(f"{PLAIN},plain=1", swing, stderr=1.0)[-1], Stop)


def test_the_logged_noise_is_the_root_mean_square_of_what_is_an_error() -> None:
    """Errors of 3 and 4 in turn: 3.54."""

    def last(score: float, odd: float | None) -> object:
        scores = [100.0] * 6 + [score] * 3
        points = [Eval(i, each, 3.0 + i % 2) for i, each in enumerate(scores[:8])] + [Eval(8, score, odd)]
        return fold(detector(PLAIN), JOB, points)[-1]

    for odd in (None, 0.0, -5.0, math.inf):
        assert isinstance(last(96.46, odd), Stop)
        assert not isinstance(last(96.47, odd), Stop)


def test_a_rule_names_what_differs_from_the_usual() -> None:
    assert detector("blocks").spec == "blocks:c=1.75,growth=0"
    assert detector("recommended").spec == "recommended:c=1.8,growth=1.5"
    assert detector("blocks:caution=6,slow=0.5,plain=1").spec == "blocks:c=1.75,growth=0,caution=6,slow=0.5,plain=1"


@pytest.mark.parametrize("bad", ["c=inf", "growth=inf", "c=0", "growth=-1"])
def test_a_factor_that_is_no_factor_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="blocks: c above 0 and growth of 0 or more"):
        detector(f"blocks:{bad}")


@pytest.mark.parametrize("bad", ["caution=inf", "slow=1.1", "slow=-1", "plain=2"])
def test_a_variant_that_is_none_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="blocks: caution of 0 or more"):
        detector(f"blocks:{bad}")
    assert detector("blocks:slow=1").spec.endswith("slow=1")


def test_blocks_of_eight_are_summed_in_three_rounds() -> None:
    assert block_means(tuple(map(float, range(17))), 8) == [4.5, 12.5]


def test_of_two_ways_to_a_stop_the_nearer_is_counted() -> None:
    """Half the margin is enough for six evals in a row; three of those are half way, one of three is a third."""
    halves = f"{PLAIN},slow=0.5"

    assert verdicts(halves, [10.0] * 6 + [9.4, 9.4, 9.0], stderr=1.0)[-1] == Declining(3, 6)
    assert verdicts(halves, [10.0] * 6 + [9.4, 9.0], stderr=1.0)[-1] == Declining(1, 3)
    assert verdicts(halves, [10.0] * 5 + [9.4] * 4, stderr=1.0)[-1] == Declining(4, 6)


def test_a_curve_that_bends_evenly_shows_noise_by_the_size_of_its_bends_alone() -> None:
    """-t^2 bends by 2 throughout: their spread is 0 and half the smallest step .5; their size makes it 1.21."""
    bend = [-float(t * t) for t in range(9)]

    assert isinstance(verdicts("blocks:c=50,caution=0", bend)[-1], Stop)
    assert verdicts("blocks:c=50,caution=0,plain=1", bend)[-1] == Declining(1, 3)


def test_an_alternation_of_odd_length_shows_its_size_and_no_spread() -> None:
    """25 bends of two kinds: the middle one is one of the two, and more than half of them lie on it."""
    swing = [score + (-1) ** at for at, score in enumerate([10.0] * 21 + [9.0] * 6)]

    assert isinstance(verdicts(PLAIN, swing, stderr=1.0)[-1], Stop)
    assert not isinstance(verdicts(f"{PLAIN},plain=1", swing, stderr=1.0)[-1], Stop)


def test_six_evals_are_enough_for_a_stop() -> None:
    assert isinstance(verdicts(PLAIN, [10.0] * 3 + [9.0] * 3, stderr=1.0)[-1], Stop)


def test_a_block_of_four_takes_four_evals_to_be_low() -> None:
    """52 evals: of the last three blocks only the newest is low throughout, at a margin of a half."""
    assert verdicts(PLAIN, [10.0] * 46 + [9.5] * 6, stderr=1.0)[-1] == Declining(4, 12, 4)


VARIANTS = ["c=1.8,growth=1.5", "c=0.3,caution=0", "c=0.5,slow=0.7,plain=1", "c=0.7,plain=1,growth=0.2"]


def drawn(seed: int, count: int) -> list[Eval]:
    """A curve that rises and falls, at times coarse, with glitches, errors on some evals, and scores that are none."""
    stream = Random(seed)
    turn, fall, coarse, logged = stream.random(), stream.choice((0.0, 0.5, 3.0)), stream.random() < 0.3, stream.random()
    evals = []
    for at in range(count):
        score = min(at / count, turn) - fall * max(0.0, at / count - turn) + stream.gauss(0, 0.05)
        score = stream.choice((math.nan, math.inf, 50.0)) if stream.random() < 0.01 else score
        error = stream.choice((0.02, 0.03, 0.0, math.nan)) if stream.random() < logged else None
        evals.append(Eval(at, round(score, 1) if coarse and is_score(score) else score, error))
    return evals


@given(st.integers(0, 2**32), st.integers(1, 420), st.sampled_from(VARIANTS), st.sampled_from(Mode))
@settings(deadline=None)
def test_verdicts_and_words_are_those_of_the_rule_over_all_scores(
    seed: int, count: int, variant: str, mode: Mode
) -> None:
    quick = detector(f"blocks:{variant}", mode)
    assert isinstance(quick, Blocks)
    plain = PlainBlocks(quick.c, quick.growth, quick.caution, quick.slow, quick.plain, mode)
    evals = drawn(seed, count)

    found = fold(quick, JOB, evals)
    assert found == fold(plain, JOB, evals)
    assert fold(quick, JOB, evals, len(found) - 1) == found[-1:]


def test_a_long_curve_has_the_verdicts_of_the_rule_over_all_scores() -> None:
    """Blocks of up to 128 evals; some of the verdicts are of each kind."""
    evals = [Eval(i, Random(i).gauss(0, 0.1) + min(i, 900) / 900 - max(0, i - 1100) / 300) for i in range(1700)]
    found = fold(detector("recommended"), JOB, evals)

    assert found == fold(PlainBlocks(1.8, 1.5), JOB, evals)
    assert {type(each) for each in found} == {KeepGoing, Declining, Stop}


@given(st.integers(0, 2**32), st.integers(1, 120), st.integers(1, 30))
@settings(deadline=None)
def test_a_state_is_a_value_whatever_went_on_from_it(seed: int, count: int, others: int) -> None:
    """Two curves that part at one eval do not see each other's scores, nor does the state that both went on from."""
    rule, evals = detector("blocks:c=0.5"), [each for each in drawn(seed, count + others) if is_score(each.score)]
    turned = [each._replace(score=-each.score) for each in evals[count:]]
    nothing = Eval(0, math.nan)
    state = rule.start(JOB)
    for each in evals[:count]:
        state = rule.take(state, each)
    before, one, two = rule.step(state, nothing)[1], state, state
    for left, right in zip(evals[count:], turned, strict=True):
        one, two = rule.take(one, left), rule.take(two, right)

    assert rule.step(state, nothing)[1] == before
    for end, curve in ((one, evals), (two, [*evals[:count], *turned])):
        assert rule.step(end, nothing)[1] == fold(PlainBlocks(0.5), JOB, [*curve])[-1]
