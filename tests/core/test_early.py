"""The early warning: one step before a stop, once a life, and when it counts as the owner's notice."""

from dataclasses import replace

import pytest

from evalstopd.core.detectors import KEEP_GOING, Declining, Stop, Verdict, detector, fold
from evalstopd.core.early import of_this_life, stands, told_s, warned
from evalstopd.core.model import Eval, JobKey, JobView, Life, Mode, Rung, StopAction
from evalstopd.core.watch import EarlyWarning, Terms, Watch
from evalstopd.core.words import early_state, nearing

TERMS = Terms(Rung.ENFORCE, "k-declines:k=2", "m", Mode.MAX, notice_s=60.0)
WATCH = Watch(JobKey("c", "7", 1001, 100), Life(0, 100), 100.0, TERMS, last_step=40, best_step=30, last_life=0)
NEAR = Declining(1, 2)


def told(watch: Watch = WATCH, terms: Terms = TERMS, at_s: float = 205.0) -> Watch:
    """Return a watch whose owner was told five seconds after the warning was decided."""
    fresh = warned(watch, terms, NEAR, 200.0)
    assert fresh is not None
    assert fresh.early is not None
    return replace(fresh, early=replace(fresh.early, told_s=at_s))


@pytest.mark.parametrize(
    ("answer", "near"),
    [
        (KEEP_GOING, False), (Stop("fell", 2), False), (Declining(1, 3), False), (Declining(2, 3), True), (NEAR, True),
        (Declining(2, 6, 2), False), (Declining(4, 6, 2), True), (Declining(8, 10), False), (Declining(9, 10), True),
    ],
)  # fmt: skip
def test_an_owner_is_warned_at_the_last_step_before_a_stop(answer: Verdict, near: bool) -> None:
    assert (warned(WATCH, TERMS, answer, 200.0) is not None) == near


@pytest.mark.parametrize("evals", [16, 60], ids=["blocks of one eval", "blocks of four"])
def test_for_the_block_rules_the_last_step_is_the_last_block_before_the_stop(evals: int) -> None:
    scores = [0.01 * min(n, evals // 2) + 0.002 * (n % 2) - 0.05 * max(0, n - evals // 2) for n in range(evals)]
    answers = fold(detector("blocks:c=1.75", Mode.MAX), JobView("", 0.0, 0), [Eval(n, s) for n, s in enumerate(scores)])
    near = [n for n, each in enumerate(answers) if isinstance(each, Declining) and each.last]
    stop = next(n for n, each in enumerate(answers) if isinstance(each, Stop))
    last = answers[near[0]]

    assert near[0] < stop
    assert isinstance(last, Declining)
    assert last.count * 3 == last.of * 2


@pytest.mark.parametrize("rung", [Rung.OFF, Rung.OBSERVE])
def test_below_the_warn_rung_nobody_is_told(rung: Rung) -> None:
    assert warned(WATCH, replace(TERMS, rung=rung), NEAR, 200.0) is None


def test_a_decline_of_the_life_before_warns_nobody() -> None:
    assert warned(replace(WATCH, life=Life(1, 150)), TERMS, NEAR, 200.0) is None


@pytest.mark.parametrize(("told_at_s", "failed"), [(205.0, ""), (None, "no route"), (None, "")])
def test_a_life_is_warned_once_whatever_became_of_the_message_and_the_next_life_anew(
    told_at_s: float | None, failed: str
) -> None:
    first = told()
    assert first.early is not None
    first = replace(first, early=replace(first.early, told_s=told_at_s, failed=failed))
    assert warned(first, TERMS, NEAR, 300.0) is None
    again = warned(replace(first, life=Life(1, 250), last_life=1), TERMS, NEAR, 300.0)

    assert again is not None
    assert again.early is not None
    assert (again.early.restarts, again.early.at_s, again.early.told_s) == (1, 300.0, None)


def test_the_notice_runs_from_when_the_message_was_known_to_be_sent() -> None:
    assert told_s(told(), TERMS) == 205.0
    assert told_s(WATCH, TERMS) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"best_step": 50},
        {"life": Life(1, 250)},
        {"early": EarlyWarning(0, 100, 200.0, 40, 1, 2, 30, 3, TERMS.rule, "m", "max")},
    ],
    ids=["a new best", "a new life", "in doubt"],
)
def test_a_warning_that_no_longer_stands_is_no_notice(changed: dict) -> None:
    assert not stands(replace(told(), **changed), TERMS)


@pytest.mark.parametrize("terms", [{"rule": "k-declines:k=3"}, {"metric": "n"}, {"mode": Mode.MIN}, {"dataset": "d@1"}])
def test_a_warning_under_other_terms_is_no_notice(terms: dict) -> None:
    assert not stands(told(), replace(TERMS, **terms))


def test_a_warning_that_said_nothing_would_be_done_is_no_notice_for_enforce() -> None:
    on_warn = told(terms=replace(TERMS, rung=Rung.WARN))

    assert stands(on_warn, replace(TERMS, rung=Rung.WARN))
    assert not stands(on_warn, TERMS)
    assert "nothing will be done" in nearing(on_warn)


def test_the_words_say_how_near_when_and_how_to_say_no() -> None:
    text = nearing(replace(told(), best_score=0.8, last_score=0.7))

    assert text == (
        "job 7 is one step from a stop at step 40: declining 1 of 2 by k-declines:k=2, from the best 0.8 at step 30 to "
        "0.7; if its evals go on like this, it is to be stopped, not before 60 seconds from now; the job will be "
        "cancelled; to keep it running: evalstopd keep 7, or put evalstop=keep into the job's comment"
    )
    early = of_this_life(told())
    assert early is not None
    assert early_state(early) == "the owner was told at step 40, declining 1 of 2"
    assert early_state(replace(early, told_s=None)).startswith("whether the owner was told")


def test_a_warning_holds_what_it_was_said_under() -> None:
    watch = replace(WATCH, life=Life(2, 300), last_life=2)
    fresh = warned(watch, replace(TERMS, action=StopAction.REQUEUE_HOLD), Declining(4, 6, 2), 200.0)

    assert fresh == replace(
        watch,
        early=EarlyWarning(
            2, 300, 200.0, 40, 4, 6, 30, 3, "k-declines:k=2", "m", "max", notice_s=60.0, action="requeue-hold"
        ),
    )


def test_a_watch_that_was_never_warned_was_never_told() -> None:
    assert told_s(WATCH, TERMS) is None
    assert of_this_life(WATCH) is None
    assert nearing(WATCH) == ""


def test_a_decline_of_an_earlier_life_warns_nobody() -> None:
    assert warned(replace(WATCH, life=Life(1, 250)), TERMS, NEAR, 200.0) is None


def test_without_a_notice_a_stop_is_said_to_come_at_once() -> None:
    assert "it is to be stopped, at once; the job will be cancelled" in nearing(
        told(terms=replace(TERMS, notice_s=0.0))
    )


def test_a_telling_that_no_longer_stands_is_no_notice_whenever_it_was() -> None:
    assert told_s(told(), replace(TERMS, rule="k-declines:k=3")) is None
    assert told_s(replace(told(), best_step=50), TERMS) is None


def test_a_warning_says_which_dataset_judged() -> None:
    warning = told(terms=replace(TERMS, dataset="held-out@9f")).early

    assert warning is not None
    assert warning.dataset == "held-out@9f"
