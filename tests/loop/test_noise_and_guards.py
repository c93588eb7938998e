"""Standard errors, misleading metrics, the alarm, and which checkpoint is kept, through the whole loop."""

from dataclasses import replace

import pytest
from rich.console import Console

from evalstopd.core.intent import Intent, State
from evalstopd.core.model import Rung
from evalstopd.core.watch import Remark
from evalstopd.report.render import explanation
from evalstopd.report.rows import Explanation, explain
from evalstopd.store.memory import MemoryStore
from tests.fakes.world import HEALTHY, RISE_AND_FALL, RULES, World

NOISY = "drop-test-safe"
SPIKE = (0.5, 0.6, 0.62, 0.95, 0.4, 0.3, 0.2, 0.1)


def archive(world: World) -> MemoryStore:
    assert isinstance(world.store, MemoryStore)
    return world.store


def remarks(world: World) -> list[Remark]:
    return list(archive(world).remarks_of([each.key.text for each in archive(world).recent(10)]))


def codes(world: World) -> list[str]:
    return [each.code for each in remarks(world) if not each.code.startswith("early-warning")]


def intents(world: World) -> tuple[Intent, ...]:
    return archive(world).intents_of([each.key for each in archive(world).recent(10)])


def found(world: World, job: str) -> Explanation:
    known = explain(archive(world), world.store, job)
    assert known is not None
    return known


def test_a_fall_within_the_logged_error_does_not_stop_and_the_same_fall_beyond_it_does() -> None:
    for error, stopped in ((0.4, []), (0.01, [("1", 0)])):
        world = World(replace(RULES, rule=NOISY))
        job = world.train("r1")
        for number, score in enumerate(RISE_AND_FALL, 1):
            world.evaluate(job, "r1", number * 10, score)
            world.tracker.log("r1", number * 10, error, "score_stderr")
            world.tick()

        assert world.cluster.cancelled == stopped, error


def test_an_error_logged_after_its_score_was_read_is_kept_beside_it() -> None:
    world = World(replace(RULES, rung=Rung.OBSERVE, rule=NOISY, tick_s=0.1))
    job = world.train("r1")
    world.evaluate(job, "r1", 10, 0.5)
    world.tick()
    arrived_s = world.clock.time_s
    world.tracker.log("r1", 10, 0.03, "score_stderr", timestamp_ms=12)
    world.evaluate(job, "r1", 20, 0.6)
    world.tick()
    key = archive(world).recent(1)[0].key
    points = world.store.points([key])[key]

    assert [(point.step, point.stderr) for point in points] == [(10, 0.03), (20, None)]
    assert points[0].arrived_s == arrived_s
    assert [each.stderr for each in found(world, job).evals] == [0.03, None]


def test_the_owner_is_told_how_noisy_the_evals_are() -> None:
    world = World(replace(RULES, rung=Rung.OBSERVE))
    job = world.train("r1")
    for number, score in enumerate(HEALTHY, 1):
        world.evaluate(job, "r1", number * 10, score)
        world.tracker.log("r1", number * 10, 0.06, "score_stderr")
        world.tick()
    told = found(world, job)

    assert told.noise is not None
    assert told.noise.noise == pytest.approx(0.06)
    assert told.noise.fall == pytest.approx(0.054)
    assert told.noise.evals == 23
    assert "this eval's noise is 0.06; a fall of 0.054 needs about 23 evals to be seen" in shown(told)


def test_a_fall_within_what_the_number_of_items_explains_does_not_stop() -> None:
    """An accuracy on 20 items has an error of .1; on 20,000 the same fall is seen. The owner is told of either."""
    for items, stopped, noise in ((20, [], 0.08), (20_000, [("1", 0)], 0.0)):
        world = World(replace(RULES, rule=NOISY, metric="eval_accuracy"))
        job = world.train("r1")
        for number, score in enumerate(RISE_AND_FALL, 1):
            world.evaluate(job, "r1", number * 10, score)
            world.tracker.log("r1", number * 10, score, "eval_accuracy")
            world.tracker.log("r1", number * 10, 2.0, "eval_runtime")
            world.tracker.log("r1", number * 10, items / 2, "eval_samples_per_second")
            world.tick()

        assert world.cluster.cancelled == stopped, items
        told = found(world, job).noise
        assert told is not None
        assert told.noise > noise


def test_nothing_is_told_of_a_noise_that_is_not_known() -> None:
    world = World(replace(RULES, rung=Rung.OBSERVE))
    job = world.train("r1")
    world.play(job, "r1", HEALTHY[:2])

    assert found(world, job).noise is None
    assert "noise is" not in shown(found(world, job))


def shown(told: Explanation) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(explanation(told), markup=False)
    return capture.get()


@pytest.mark.parametrize(
    ("metric", "beside", "code"),
    [
        ("train/reward", "", "training-metric"),
        ("eval_reward", "", "proxy"),
        ("eval_loss", "rewards/margins", "preference-loss"),
    ],
)
def test_a_metric_known_to_mislead_is_only_observed_and_that_is_said_once(metric: str, beside: str, code: str) -> None:
    """The owner may have asked for enforce and for this metric: nothing is pinned, told, tagged or stopped."""
    world = World(replace(RULES, metric=metric))
    world.train("r1", comment="evalstop=enforce")
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.tracker.log("r1", number * 10, score, metric)
        if beside:
            world.tracker.log("r1", number * 10, 0.1, beside)
        world.tick()

    assert world.cluster.cancelled == world.tracker.writes == world.notifier.told == []
    assert world.keeper.pins == set()
    assert intents(world) == ()
    assert codes(world).count(code) == 1
    assert remarks(world)[0].text.startswith("only observed: ")
    assert len(archive(world).would_be_of([archive(world).recent(1)[0].key])) == 1


def test_a_doubtful_metric_is_warned_of_and_judged_all_the_same() -> None:
    world = World(replace(RULES, metric="eval_loss"))
    job = world.train("r1", comment="evalstop_mode=min")
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.tracker.log("r1", number * 10, 1 - score, "eval_loss")
        world.keeper.save("/home/alice/out-r1", number * 10)
        world.tick()

    assert codes(world) == ["eval-loss"]
    assert world.cluster.cancelled == [(job, 0)]


def test_an_eval_set_that_changes_size_during_the_notice_withdraws_the_stop() -> None:
    world = World(replace(RULES, metric="eval/accuracy", notice_s=2.5))
    job = world.train("r1")
    for number, (score, items) in enumerate(((0.6, 500), (0.8, 500), (0.7, 500), (0.65, 500), (0.6, 50), (0.6, 50)), 1):
        world.tracker.log("r1", number * 10, score, "eval/accuracy")
        error = (score * (1 - score) / items) ** 0.5
        world.tracker.log("r1", number * 10, error, "eval/accuracy_stderr")
        world.keeper.save("/home/alice/out-r1", number * 10)
        world.tick()
    for _ in range(3):
        world.tick()

    assert world.cluster.cancelled == []
    assert [each.state for each in intents(world)] == [State.ABANDONED]
    assert "rung is now observe" in intents(world)[0].note
    assert codes(world) == ["eval-set-size"]
    assert world.cluster.jobs[job].phase == "running"


def test_a_proxy_that_rises_alone_is_reported_and_stops_nothing() -> None:
    for held_out, said in (([0.5, 0.52, 0.49] * 4, ["proxy-alarm"]), ([0.1 * n for n in range(12)], [])):
        world = World(replace(RULES, proxy="train/proxy", rule="never"))
        job = world.train("r1")
        for number, score in enumerate(held_out, 1):
            world.tracker.log("r1", number * 10, number * 0.1, "train/proxy")
            world.evaluate(job, "r1", number * 10, score)
            world.tick()

        assert codes(world) == said
        assert world.cluster.cancelled == []


def test_a_rule_that_reckons_with_noise_keeps_the_best_stretch_and_k_declines_the_maximum() -> None:
    """One lucky eval at step 40: the smoothed score is best at step 30, whose pin is safe too."""
    for rule, kept, chosen in ((f"{NOISY}:sigma=0.05", 30, 30), ("k-declines:k=2", 40, None)):
        world = World(replace(RULES, rule=rule))
        job = world.train("r1")
        world.play(job, "r1", SPIKE)
        world.tick()
        (intent,) = intents(world)

        assert intent.state is State.CONFIRMED
        assert world.keeper.best == {"c-1-1000": kept}
        assert (intent.evidence.best_step, intent.evidence.chosen_step) == (40, chosen)
        assert intent.evidence.k_before_step is not None
        tags = world.tracker.runs["r1"].tags
        assert (tags["evalstop.best_step"], tags["evalstop.kept_step"]) == ("40", str(kept))
        assert f"step {kept}, kept at" in world.notifier.told[-1].text


def test_what_an_open_stop_keeps_is_not_dropped_when_a_newer_pin_comes_in_late() -> None:
    """One candidate a job; the maximum's checkpoint (step 40) is only written when the stop is decided."""
    world = World(replace(RULES, rule=f"{NOISY}:sigma=0.05", notice_s=2.5, candidates=1))
    job = world.train("r1")
    for number, score in enumerate(SPIKE[:6], 1):
        world.tracker.log("r1", number * 10, score)
        if number == 6:
            world.keeper.save("/home/alice/out-r1", 40)
        elif number != 4:
            world.keeper.save("/home/alice/out-r1", number * 10)
        world.tick()
    assert ("c-1-1000", 40) in world.keeper.pins
    for _ in range(4):
        world.tick()

    assert world.keeper.best == {"c-1-1000": 30}
    assert world.cluster.cancelled == [(job, 0)]


def test_a_worse_checkpoint_is_never_kept_for_want_of_the_best_ones() -> None:
    """Steps 30 and 40 were never saved: the stop becomes a warning, step 20 is not called the best."""
    world = World(replace(RULES, rule=f"{NOISY}:sigma=0.05"))
    world.train("r1")
    for number, score in enumerate((0.1, 0.2, 0.8, 0.9, 0.4, 0.3, 0.2, 0.1), 1):
        world.tracker.log("r1", number * 10, score)
        if number not in (3, 4):
            world.keeper.save("/home/alice/out-r1", number * 10)
        world.tick()

    assert ("c-1-1000", 20) in world.keeper.pins
    assert world.keeper.best == {}
    assert world.cluster.cancelled == []
    assert {each.state for each in intents(world)} == {State.ABANDONED}
