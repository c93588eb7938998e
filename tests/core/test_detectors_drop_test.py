"""The drop test: its two tunings keep to their stated rates, on the paper's curves and on flat ones."""

import math
from random import Random

import pytest

from evalstopd.core.detectors import Declining, Stop, detector, fold
from evalstopd.core.model import Eval, JobView
from tests.core.paper_curves import PaperRun, hacking, healthy

JOB = JobView("1", 0.0, 1)
RUNS = 2500
HACKING_SHARE = 0.48  # of all jobs in preset `paper`; healthy RLHF is .32, the rest (LoRA, DPO) is never stopped
HEALTHY_SHARE = 0.32


def stopped(rule: str, runs: list[PaperRun]) -> float:
    made = detector(rule)
    return sum(isinstance(v, Stop) for run in runs for v in _first_stop(fold(made, JOB, run.evals))) / len(runs)


def _first_stop(verdicts: tuple[object, ...]) -> list[object]:
    return [each for each in verdicts if isinstance(each, Stop)][:1]


def flat_stopped(rule: str, evals: int, runs: int) -> float:
    stream, made = Random(f"{rule} {evals}"), detector(rule)
    flat = ([Eval(i, stream.gauss(0, 1), 1.0) for i in range(evals)] for _ in range(runs))
    return sum(bool(_first_stop(fold(made, JOB, run))) for run in flat) / runs


@pytest.mark.rates
@pytest.mark.parametrize(
    ("sigma", "fpr", "precision", "recall"),
    [(0.025, 0.001, 0.999, 1.0), (0.05, 0.003, 0.998, 0.996), (0.08, 0.007, 0.995, 0.915), (0.12, 0.015, 0.986, 0.702)],
)
def test_the_paper_tuning_has_its_published_rates(sigma: float, fpr: float, precision: float, recall: float) -> None:
    """Within 1 point of FPR and precision and 3 of recall, at each noise of the table."""
    stream = Random(f"drop {sigma}")
    found = stopped("drop-test-paper", [hacking(stream, sigma) for _ in range(RUNS)])
    wrong = stopped("drop-test-paper", [healthy(stream, sigma) for _ in range(RUNS)])
    right = found * HACKING_SHARE

    assert wrong == pytest.approx(fpr, abs=0.01)
    assert found == pytest.approx(recall, abs=0.03)
    assert right / (right + wrong * HEALTHY_SHARE) == pytest.approx(precision, abs=0.01)


@pytest.mark.rates
def test_at_the_papers_own_noise_it_dominates_k_2() -> None:
    stream = Random(1)
    bad, good = [hacking(stream, 0.05) for _ in range(500)], [healthy(stream, 0.05) for _ in range(500)]

    assert stopped("drop-test-paper", bad) >= stopped("k-declines:k=2", bad)
    assert stopped("drop-test-paper", good) < 0.2 * stopped("k-declines:k=2", good)


@pytest.mark.rates
def test_high_power_finds_most_hacking_runs_in_strong_noise_at_its_stated_rate() -> None:
    """Noise .12: recall of .70 or more at 3 % of the healthy runs."""
    stream = Random(2)

    assert stopped("high-power", [hacking(stream, 0.12) for _ in range(RUNS)]) >= 0.70
    assert stopped("high-power", [healthy(stream, 0.12) for _ in range(RUNS)]) == pytest.approx(0.03, abs=0.01)


@pytest.mark.rates
@pytest.mark.parametrize(("evals", "rate"), [(5, 0.003), (8, 0.008), (12, 0.012), (20, 0.021), (50, 0.032)])
def test_the_safe_tuning_keeps_flat_runs_at_its_stated_rate(evals: int, rate: float) -> None:
    """The noise given and taken as it is; estimated beside it, it can only stop less."""
    assert flat_stopped("drop-test-safe:sigma=1", evals, 1200) == pytest.approx(rate, abs=0.012)
    assert flat_stopped("drop-test-safe", evals, 600) <= rate + 0.012


@pytest.mark.rates
@pytest.mark.parametrize(("evals", "rate"), [(5, 0.14), (8, 0.21), (12, 0.26)])
def test_the_paper_tuning_is_not_safe_on_flat_runs_and_says_so(evals: int, rate: float) -> None:
    assert flat_stopped("drop-test-paper", evals, 1500) == pytest.approx(rate, abs=0.035)


@pytest.mark.parametrize("shortest", [1, 2])
def test_the_statistic_is_the_largest_fall_between_any_two_windows(shortest: int) -> None:
    """Against the definition computed plainly, on 60 evals."""
    rule = "drop-test-paper:sigma=1" if shortest == 1 else "drop-test-safe:sigma=1"
    made, stream = detector(rule), Random(3)
    state, seen = made.start(JOB), []
    for i in range(60):
        seen.append(stream.gauss(0, 0.9) - i / 12)
        state, verdict = made.step(state, Eval(i, seen[-1]))
        limit = math.sqrt(2.5 + 4.6 * math.log(i + 1)) - (0.75 if shortest == 1 else 0)
        early = i + 1 < (2 if shortest == 1 else 4)
        z = -math.inf if early else plain_statistic(seen, shortest)
        assert isinstance(verdict, Stop) == (z >= limit)
        if isinstance(verdict, Declining):
            assert verdict == Declining(min(int(z), math.ceil(limit) - 1), math.ceil(limit))


def plain_statistic(scores: list[float], shortest: int) -> float:
    found = -math.inf
    for last in range(shortest, 7):
        for earlier in range(shortest, 7):
            before = scores[: len(scores) - last]
            for start in range(len(before) - earlier + 1):
                fall = sum(before[start : start + earlier]) / earlier - sum(scores[-last:]) / last
                found = max(found, fall / math.sqrt(1 / earlier + 1 / last))
    return found


def test_without_a_known_error_the_curve_itself_tells_the_noise() -> None:
    stream = Random(4)
    fall = [stream.gauss(0.8, 0.01) for _ in range(12)] + [stream.gauss(0.5, 0.01) for _ in range(4)]

    assert _first_stop(fold(detector("drop-test-safe"), JOB, [Eval(i, s) for i, s in enumerate(fall)]))


@pytest.mark.rates
def test_without_a_known_error_flat_runs_are_still_mostly_let_go_on() -> None:
    stream, made = Random(5), detector("drop-test-safe")
    runs = [[Eval(i, stream.gauss(0, 1)) for i in range(20)] for _ in range(500)]

    assert sum(bool(_first_stop(fold(made, JOB, run))) for run in runs) <= 0.2 * len(runs)
