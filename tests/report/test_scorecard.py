"""The observe rung's book: what became of every would-be stop, and what that allows."""

from dataclasses import replace

import pytest

from evalstopd.core.model import Rung
from evalstopd.errors import Misconfigured
from evalstopd.ports import Changes
from evalstopd.report.replay.intervals import exact
from evalstopd.report.scorecard import (
    Limit,
    Limits,
    Scorecard,
    check_enforce,
    enforce_verdict,
    override_remark,
    read_scorecard,
)
from evalstopd.report.scorecard.fate import Fate
from evalstopd.report.scorecard.since import since_s
from evalstopd.store.memory import MemoryStore
from tests.fakes.world import RULES, World

RULE = "k-declines:k=2"
OBSERVE = replace(RULES, rung=Rung.OBSERVE)
EASY = Limits(Limit(1, 0.0, 1.0), Limit(2, 0.0, 0.9), min_evals=4)
FALL = (0.1, 0.4, 0.8, 0.7, 0.6)
HEALTHY = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


def archive(world: World) -> MemoryStore:
    assert isinstance(world.store, MemoryStore)
    return world.store


def card_of(world: World, limits: Limits = EASY, since: float = 0.0, rule: str = RULE) -> Scorecard:
    return read_scorecard(archive(world), world.store, rule, limits, since)


def run_job(world: World, run_id: str, scores: tuple[float, ...], end: str = "COMPLETED", comment: str = "") -> str:
    """Let a job of 8 GPUs play a curve, an hour an eval, and end."""
    job = world.train(run_id, comment=comment)
    for number, score in enumerate(scores, 1):
        world.evaluate(job, run_id, number * 10, score)
        world.tick(3600.0)
    if end:
        world.cluster.finish(job, end)
        world.tick(3600.0)
    return job


def test_what_another_metric_did_that_the_owner_chose_later_says_nothing_of_the_stop() -> None:
    """Its scores are higher, and not those that the decision rests on."""
    world = World(OBSERVE)
    job = run_job(world, "r1", FALL, end="")
    world.cluster.set_comment(job, "mlflow_run=r1 evalstop_metric=other evalstop_mode=max")
    for step in (60, 70):
        world.tracker.log("r1", step, 90.0 + step, "other", int(world.clock.time_s * 1000))
        world.tracker.log("r1", step, 0.3, timestamp_ms=int(world.clock.time_s * 1000))
        world.tick(3600.0)
    world.cluster.set_comment(job, "mlflow_run=r1")
    world.tick(3600.0)
    world.cluster.finish(job)
    world.tick(3600.0)
    (stop,) = card_of(world).stops
    assert (stop.fate, stop.best_before, stop.best_after) == (Fate.RIGHT, 0.8, 0.3)


@pytest.mark.parametrize(
    ("after", "end", "fate"),
    [
        ((0.5, 0.4), "COMPLETED", Fate.RIGHT),
        ((0.5, 1.5, 0.4), "COMPLETED", Fate.WRONGED),
        ((0.5, 0.81), "TIMEOUT", Fate.WRONGED),
        ((0.5, 0.801, 0.4), "COMPLETED", Fate.RIGHT),
        ((), "FAILED", Fate.UNTESTED),
        ((0.5, 0.4), "", Fate.UNFINISHED),
        ((0.5, 0.81), "", Fate.UNFINISHED),
        ((0.5, 1.5, 0.4), "", Fate.WRONGED),
    ],
)
def test_what_a_would_be_stop_was_worth_is_read_off_the_jobs_later_evals(
    after: tuple[float, ...], end: str, fate: Fate
) -> None:
    """Better by more than the noise, or better at the end: wronged. A rise within the noise is none."""
    world = World(OBSERVE)
    run_job(world, "r1", (*FALL, *after), end)
    found = card_of(world)
    (row,) = found.stops

    assert (row.fate, row.evals_after, row.ending) == (fate, len(after), end)
    assert (row.trigger_step, row.best_before) == (50, 0.8)
    assert found.cards[0].card.judged == (1 if fate in (Fate.RIGHT, Fate.WRONGED) else 0)


def test_what_a_stop_saves_is_counted_from_the_would_be_stop_to_the_jobs_end() -> None:
    """Two more evals of an hour on 8 GPUs; the job is over in the moment before the third tick."""
    world = World(OBSERVE)
    run_job(world, "r1", (*FALL, 0.5, 0.4))
    found = card_of(world)

    assert found.stops[0].gpu_hours == pytest.approx(16.0)
    assert found.cards[0].card.saved_hours == pytest.approx(16.0)
    assert found.cards[0].card.taken_hours == 0


def test_what_a_wronged_job_would_have_lost_is_a_share_of_its_range() -> None:
    world = World(OBSERVE)
    run_job(world, "r1", (*FALL, 0.9, 1.2, 1.2, 1.2))
    (row,) = card_of(world).stops

    assert row.best_after == 1.2
    assert row.lost == pytest.approx(0.4 / 0.98, abs=0.02)
    assert card_of(world).cards[0].card.taken_hours > 0


def test_quiet_jobs_are_the_denominator_and_what_cannot_tell_is_counted_apart() -> None:
    world = World(OBSERVE, gpus=1000)
    run_job(world, "r1", HEALTHY)
    run_job(world, "r2", HEALTHY)
    run_job(world, "r3", HEALTHY[:3])
    run_job(world, "r4", HEALTHY, end="")
    run_job(world, "r5", (*FALL, 0.5), comment="evalstop=keep")
    run_job(world, "r6", (*FALL, 1.5))
    found = card_of(world)
    card = found.cards[0].card

    assert (card.quiet, card.wronged, card.judged) == (2, 1, 3)
    assert card.wronged_share.value == pytest.approx(1 / 3)
    assert found.apart == {"few evals": 1, "running": 1, "unclear": 1}


def test_jobs_judged_by_different_rules_are_kept_apart() -> None:
    """The rule is the evidence's: the owner asked for k = 3, so the site's card says nothing of that job."""
    world = World(OBSERVE, gpus=1000)
    run_job(world, "r1", (*FALL, 0.5))
    run_job(world, "r2", (*FALL, 0.5, 0.4), comment="evalstop_k=3")
    cards = {each.card.rule: each.card for each in card_of(world).cards}

    assert {rule: (card.right, card.judged) for rule, card in cards.items()} == {
        RULE: (1, 1),
        "k-declines:k=3": (1, 1),
    }


def test_a_job_first_seen_on_the_enforce_rung_is_never_a_quiet_one() -> None:
    """There the falling ones are stopped, and the others alone would make any rule look safe."""
    world = World(RULES, gpus=1000)
    run_job(world, "r1", HEALTHY)
    run_job(world, "r2", FALL, end="")
    world.tick()
    found = card_of(world)

    assert found.apart == {"enforce": 1}
    assert [row.fate for row in found.stops] == [Fate.STOPPED]
    assert found.cards[0].card.judged == 0


def test_a_vetoed_stop_tells_as_much_as_one_that_was_only_booked() -> None:
    world = World(replace(RULES, notice_s=1e6), gpus=1000)
    job = world.train("r1")
    world.play(job, "r1", FALL)
    world.cluster.jobs[job] = replace(world.cluster.jobs[job], comment="mlflow_run=r1 evalstop=keep")
    for step, score in ((60, 0.9), (70, 1.5)):
        world.evaluate(job, "r1", step, score)
        world.tick()
    world.cluster.finish(job)
    world.tick()

    assert [row.fate for row in card_of(world).stops] == [Fate.WRONGED]


def test_a_job_with_a_misleading_metric_says_nothing_of_the_rule() -> None:
    world = World(replace(OBSERVE, metric="train/reward"))
    job = world.train("r1")
    for number, score in enumerate((*FALL, 0.5), 1):
        world.tracker.log("r1", number * 10, score, "train/reward")
        world.tick()
    world.cluster.finish(job)
    world.tick()
    found = card_of(world)

    assert (found.stops, found.apart, found.cards[0].card.judged) == ((), {"misleading metric": 1}, 0)


def test_since_leaves_out_jobs_seen_before() -> None:
    world = World(OBSERVE, gpus=1000)
    run_job(world, "r1", (*FALL, 0.5))
    later = world.clock.time_s
    run_job(world, "r2", HEALTHY)

    assert card_of(world, since=later).stops == ()
    assert card_of(world, since=later).cards[0].card.judged == 1


@pytest.mark.parametrize(("text", "moment"), [("", 0.0), ("2d", 1e6 - 172800.0), ("1970-01-02", 86400.0), ("0d", 1e6)])
def test_since_takes_days_and_a_day(text: str, moment: float) -> None:
    assert since_s(text, 1e6) == moment


@pytest.mark.parametrize("text", ["yesterday", "2026-02-30", "-1d", "5", "30d\n"])
def test_since_refuses_what_is_neither(text: str) -> None:
    with pytest.raises(Misconfigured, match="--since"):
        since_s(text, 0.0)


def test_a_card_passes_by_its_upper_bound_its_jobs_and_its_days() -> None:
    world = World(OBSERVE, gpus=10_000)
    for number in range(5):
        run_job(world, f"r{number}", HEALTHY)
    days = 5 * 7 / 24
    high = exact(0, 5).high
    assert high is not None

    for limit, missing in (
        (Limit(5, days - 0.1, high + 0.001), ()),
        (Limit(6, 0, 1), ("5 of 6 jobs",)),
        (Limit(5, days + 0.1, 1), (f"1.4 of {days + 0.1:g} days",)),
        (Limit(5, 0, high - 0.001), (f"the share of wronged jobs is up to {high:.1%}, {high - 0.001:.1%} allowed",)),
    ):
        verdict = enforce_verdict(card_of(world, replace(EASY, enforce=limit)))
        assert (verdict.met, verdict.missing) == (not missing, missing)


def test_enforce_needs_a_passed_card_or_a_reason_and_the_reason_is_noted_once_a_setting() -> None:
    world = World(OBSERVE, gpus=1000)
    with pytest.raises(Misconfigured, match=r"0 of 2 jobs.*enforce\.override"):
        check_enforce(card_of(world), "  ")
    (noted,) = override_remark(card_of(world), "a trial", "abc", 7.0)
    assert (noted.subject, noted.code, noted.at_s) == ("site", "enforce-override", 7.0)
    assert "a trial" in noted.text
    world.store.record(Changes(remarks=(noted,)))
    assert override_remark(card_of(world), "a trial", "abc", 8.0) == ()
    assert len(override_remark(card_of(world), "a trial", "def", 8.0)) == 1
    assert card_of(world).overrides == (noted,)

    for number in range(8):
        run_job(world, f"r{number}", HEALTHY)
    assert "passed" in check_enforce(card_of(world), "")
    assert override_remark(card_of(world), "a trial", "def", 9.0) == ()


def test_exact_intervals_are_those_of_clopper_and_pearson() -> None:
    """Reference figures: qbeta of the two tails; the rule of three for no hit at all."""
    for hits, of, low, high in ((0, 100, 0.0, 0.03622), (1, 20, 0.00127, 0.24873), (10, 10, 0.69150, 1.0)):
        found = exact(hits, of)
        assert found.low == pytest.approx(low, abs=1e-5)
        assert found.high == pytest.approx(high, abs=1e-5)
    assert exact(0, 0).value is None
    assert exact(3, 50_000).high == pytest.approx(8.767 / 50_000, rel=1e-3)
