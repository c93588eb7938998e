"""The drop test: its two tunings keep to their stated rates, on the paper's curves and on flat ones."""

import math
from random import Random

import pytest

from evalstopd.core.detectors import Declining, KeepGoing, Stop, detector, fold
from evalstopd.core.detectors.drop_test import DropTestPaper, DropTestSafe
from evalstopd.core.model import Eval, JobView, Mode
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


def verdicts(
    rule: str, *scores: float, mode: Mode = Mode.MAX, errors: tuple[float | None, ...] = ()
) -> tuple[object, ...]:
    beside = errors or (None,) * len(scores)
    points = [Eval(i, score, error) for i, (score, error) in enumerate(zip(scores, beside, strict=True))]
    return fold(detector(rule, mode), JOB, points)


def test_the_limit_grows_with_the_evals_less_the_shift() -> None:
    paper, safe = detector("drop-test-paper"), detector("drop-test-safe")

    assert isinstance(paper, DropTestPaper)
    assert isinstance(safe, DropTestSafe)
    assert safe.threshold(1) == math.sqrt(2.5)
    assert safe.threshold(8) == pytest.approx(3.4735, abs=1e-4)
    assert paper.threshold(8) == pytest.approx(2.7235, abs=1e-4)


def test_a_fall_between_two_evals_by_hand() -> None:
    """It counts for 1 / sqrt 2 of its size; the limit after two evals is sqrt(2.5 + 4.6 ln 2) - .75 = 1.635."""
    assert verdicts("drop-test-paper:sigma=1", 0.0, -1.41)[-1] == KeepGoing()
    assert verdicts("drop-test-paper:sigma=1", 0.0, -1.42)[-1] == Declining(1, 2)
    assert verdicts("drop-test-paper:sigma=1", 0.0, -2.31)[-1] == Declining(1, 2)
    assert verdicts("drop-test-paper:sigma=2", 0.0, -4.62)[-1] == Declining(1, 2)
    assert verdicts("drop-test-paper:sigma=2", 0.0, -2.8)[-1] == KeepGoing()
    for sigma in (1, 2):
        assert verdicts(f"drop-test-paper:sigma={sigma}", 0.0, -2.32 * sigma)[-1] == Stop(
            "the last eval fell from the best stretch by 1.6 standard errors (limit 1.6)", 1
        )
    assert verdicts("drop-test-paper:sigma=1", 0.0, 9.0)[-1] == KeepGoing()
    assert verdicts("drop-test-paper:sigma=1", 0.0, 2.32, mode=Mode.MIN)[-1] == Stop(
        "the last eval rose from the best stretch by 1.6 standard errors (limit 1.6)", 1
    )


def test_two_evals_against_two_by_hand() -> None:
    """Their standard error is that of one eval; the limit after four is sqrt(2.5 + 4.6 ln 4) = 2.98."""
    stop = Stop("the mean of the last 2 evals fell from the best stretch by 10.0 standard errors (limit 3.0)", 2)

    assert verdicts("drop-test-safe:sigma=1", 10.0, 10.0, 0.0, 0.0)[-2:] == (KeepGoing(), stop)
    assert verdicts("drop-test-safe:sigma=1", 10.0, 10.0, 7.1, 7.1)[-1] == Declining(2, 3)
    assert verdicts("drop-test-safe:sigma=1", 10.0, 10.0, 7.0, 7.0)[-1] == Stop(
        "the mean of the last 2 evals fell from the best stretch by 3.0 standard errors (limit 3.0)", 2
    )


def test_the_noise_is_the_root_mean_square_of_the_errors_that_were_logged() -> None:
    """3 and 4 make 3.54, so that a fall of 8.175 stops; what is no error counts for nothing."""
    for errors in ((3.0, 4.0), (3.0, 0.0, 4.0), (-1.0, 3.0, 4.0), (3.0, math.nan, 4.0)):
        before = (0.0,) * (len(errors) - 1)
        noise = math.sqrt(12.5)
        limit = detector("drop-test-paper").threshold(len(errors)) * noise * math.sqrt(1 + 1 / len(before))
        assert isinstance(verdicts("drop-test-paper", *before, -limit - 0.01, errors=errors)[-1], Stop)
        assert isinstance(verdicts("drop-test-paper", *before, -limit + 0.01, errors=errors)[-1], Declining)


def test_the_safe_tuning_takes_no_error_below_what_the_curve_shows() -> None:
    jumps = (0.0, 9.0, 0.0, 9.0, 0.0, 9.0, 0.0, -9.0)
    errors = (0.1,) * len(jumps)

    assert isinstance(verdicts("drop-test-paper", *jumps, errors=errors)[-1], Stop)
    assert not isinstance(verdicts("drop-test-safe", *jumps, errors=errors)[-1], Stop)


def test_without_errors_the_noise_of_six_evals_is_tripled() -> None:
    """It shows 1.2106; against the five evals before, the last one counts for 1 / sqrt 1.2 of its distance from their
    mean .4, and the limit is 2.5275: a fall to -9.655 stops."""
    assert isinstance(verdicts("drop-test-paper", 0.0, 1.0, 0.0, 1.0, 0.0, -9.65)[-1], Declining)
    assert isinstance(verdicts("drop-test-paper", 0.0, 1.0, 0.0, 1.0, 0.0, -9.66)[-1], Stop)
    assert verdicts("drop-test-paper", 0.0, 1.0, 0.0, 1.0, -99.0)[-1] == KeepGoing()


def test_a_sigma_is_named_only_where_it_is_given() -> None:
    assert detector("high-power").spec == "high-power"
    assert detector("high-power:sigma=0.05").spec == "high-power:sigma=0.05"
    with pytest.raises(ValueError, match="drop-test-safe: sigma must be finite"):
        detector("drop-test-safe:sigma=inf")


def test_a_sigma_that_is_given_goes_before_the_errors_that_were_logged() -> None:
    assert verdicts("drop-test-paper:sigma=1", 0.0, -1.42, errors=(3.0, 3.0))[-1] == Declining(1, 2)


@pytest.mark.parametrize(("newest", "stops"), [(0.85, True), (0.89, True), (0.9, False), (0.95, False)])
def test_an_eval_as_good_as_any_before_stops_nothing_however_low_the_mean_of_the_last_is(
    newest: float, stops: bool
) -> None:
    scores = [0.8, 0.9, *[0.1] * 6, newest]
    points = [Eval(step, score) for step, score in enumerate(scores)]
    answers = fold(detector("drop-test-safe:sigma=0.01", Mode.MAX), JobView("", 0.0, 0), points)

    assert isinstance(answers[-1], Stop) is stops
