"""The rule of blocks and the recommended one: invariances, noise, false stops on pure noise, what a verdict costs."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalstopd.core.detectors import Declining, KeepGoing, Stop, detector, fold
from evalstopd.core.detectors.blocks import Blocks, best_stretch, block_means, block_size
from evalstopd.core.model import Eval, JobView

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


@settings(max_examples=60, deadline=None)
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


def test_scores_too_large_to_add_up_do_no_harm() -> None:
    assert len(verdicts("recommended", [9e307, -9e307] * 20)) == 40


@pytest.mark.parametrize(("evals", "most"), [(10, 0.06), (20, 0.10), (50, 0.10), (100, 0.10)])
def test_the_recommended_rule_keeps_flat_runs_within_a_tenth_at_any_length(evals: int, most: float) -> None:
    assert share_of_flat_runs_stopped("recommended", evals, 1000) <= most


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
