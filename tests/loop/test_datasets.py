"""Jobs whose metric has the evals of several datasets: judged by the one that is chosen, or not acted on at all."""

from dataclasses import replace

import pytest
from rich.console import Console, RenderableType

from evalstopd.core.datasets import Dataset
from evalstopd.core.intent import State
from evalstopd.core.rules import Rules, ServerClass
from evalstopd.core.watch import Watch
from evalstopd.errors import PastCaps, Unavailable
from evalstopd.ports import Span
from evalstopd.report.audit.fold import refold
from evalstopd.report.audit.gather import audit_report
from evalstopd.report.audit.page import as_text
from evalstopd.report.render import explanation
from evalstopd.report.rows import explain, status_rows
from evalstopd.store.memory import MemoryStore
from tests.fakes.world import HEALTHY, RISE_AND_FALL, RULES, World
from tests.loop.told import events, intents, remarks, said

CLEAN, NOISY = Dataset("clean", "c1"), Dataset("noisy", "n1")


def shown(what: RenderableType) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(what, markup=False)
    return capture.get()


def store_of(world: World) -> MemoryStore:
    assert isinstance(world.store, MemoryStore)
    return world.store


def watch_of(world: World) -> Watch:
    return store_of(world).recent(1)[0]


def play(
    world: World,
    job: str,
    clean: tuple[float, ...] = RISE_AND_FALL,
    noisy: tuple[float, ...] = HEALTHY,
    *,
    run_id: str = "r1",
    first: int = 1,
) -> None:
    """Evaluate on both datasets at each step, save its checkpoint, and let the daemon look."""
    for number, pair in enumerate(zip(clean, noisy, strict=True), first):
        if world.cluster.jobs[job].phase != "running":
            return
        for place, (dataset, score) in enumerate(zip((CLEAN, NOISY), pair, strict=True)):
            at_ms = int(world.clock.time_s * 1000) + place
            world.tracker.log_of(run_id, number * 10, score, dataset, timestamp_ms=at_ms)
        world.keeper.save(f"{world.cluster.jobs[job].work_dir}/out-{run_id}", number * 10, at_s=world.clock.time_s)
        world.tick()


@pytest.mark.parametrize("asked", ["clean", "c1", "clean@c1"])
def test_the_dataset_that_the_owner_names_decides_and_stands_in_the_evidence(asked: str):
    world = World()
    job = world.train(comment=f"evalstop_dataset={asked}")
    play(world, job)
    assert world.cluster.cancelled == [(job, 0)]
    (intent,) = store_of(world).intents_of([watch_of(world).key])
    assert (intent.evidence.dataset, intent.evidence.scores) == ("clean@c1", RISE_AND_FALL[:5])
    assert remarks(world) == []
    assert world.tracker.runs["r1"].tags["evalstop.dataset"] == "clean@c1"


def test_by_the_other_dataset_the_same_job_goes_on():
    world = World()
    job = world.train(comment="evalstop_dataset=noisy")
    play(world, job)
    assert (world.cluster.cancelled, intents(world), remarks(world)) == ([], [], [])
    assert (watch_of(world).dataset_now, watch_of(world).best_score) == ("noisy@n1", HEALTHY[-1])


def test_where_nobody_chooses_it_is_refused_and_the_datasets_are_named():
    world = World()
    job = world.train(comment="evalstop=enforce")
    play(world, job)
    assert (world.cluster.cancelled, intents(world)) == ([], [])
    assert remarks(world) == [(job, "several-series")]
    (text,) = said(world, "several-series")
    assert text == (
        "only observed: several series under one name: they are of 2 datasets: clean (digest c1), noisy (digest n1): "
        "the owner's evalstop_dataset=NAME (or its digest), else the site's rules.dataset, chooses one"
    )


def test_the_sites_choice_counts_and_the_owners_before_it():
    for comment, stopped in (("", True), ("evalstop_dataset=noisy", False)):
        world = World(replace(RULES, dataset="clean"))
        job = world.train(comment=comment)
        play(world, job)
        assert bool(world.cluster.cancelled) is stopped


def test_a_choice_of_the_sites_reaches_no_job_that_was_seen_before_it():
    world = World()
    job = world.train()
    play(world, job, (0.1, 0.2), (0.1, 0.2))
    world.rules = replace(RULES, dataset="clean")
    play(world, job, first=3)
    assert world.cluster.cancelled == []
    assert (job, "several-series") in remarks(world)


def test_the_owner_may_choose_at_any_time_and_choose_again():
    """As with another metric: an open stop that rests on other evals is given up."""
    world = World(replace(RULES, notice_s=1e6))
    job = world.train()
    play(world, job, RISE_AND_FALL[:4], HEALTHY[:4])
    world.cluster.set_comment(job, "mlflow_run=r1 evalstop_dataset=clean")
    play(world, job, RISE_AND_FALL[4:6], HEALTHY[4:6], first=5)
    assert [state for _, state in intents(world)] == [State.WARNED]
    world.cluster.set_comment(job, "mlflow_run=r1 evalstop_dataset=noisy")
    play(world, job, RISE_AND_FALL[6:], HEALTHY[6:], first=7)
    assert [state for _, state in intents(world)] == [State.ABANDONED]
    assert any("another rule, metric or dataset" in text for _, text in events(world))
    assert watch_of(world).dataset_now == "noisy@n1"
    world.rules = replace(RULES, notice_s=0.0)
    world.tick()
    assert world.cluster.cancelled == []


def test_only_jobs_with_several_series_cost_another_question():
    world = World(replace(RULES, dataset="clean"))
    job = world.train("r1")
    for number in range(2, 30):
        world.play(world.train(f"r{number}", gpus=1), f"r{number}", (0.1, 0.2))
    play(world, job, HEALTHY, RISE_AND_FALL)
    assert set(world.tracker.told) == {"r1"}
    asked = len(world.tracker.told)
    world.tick(seconds=0.1)
    assert len(world.tracker.told) == asked


@pytest.mark.parametrize("trouble", [Unavailable("no answer"), PastCaps("too many logged models")])
def test_what_cannot_be_told_costs_no_other_job(trouble: Exception):
    world = World()
    mixed, plain = world.train("r1", comment="evalstop_dataset=clean"), world.train("r2")
    world.tracker.models_trouble = trouble  # type: ignore[assignment]
    for number, score in enumerate(RISE_AND_FALL):
        world.evaluate(plain, "r2", 10 * (number + 1), score)
        play(world, mixed, (score,), (HEALTHY[number],), first=number + 1)
    assert world.cluster.cancelled == [(plain, 0)]
    world.tracker.models_trouble = None
    world.tick(seconds=1_000)
    assert [job for job, _ in intents(world)] == [mixed, plain]
    (watch,) = store_of(world).find(mixed)
    assert (watch.evals, watch.dataset_now) == (len(RISE_AND_FALL), "clean@c1")


def test_a_value_that_is_nobodys_takes_the_job_off_the_rung_and_gives_an_open_stop_up():
    world = World(replace(RULES, notice_s=1e6))
    job = world.train(comment="evalstop_dataset=clean")
    play(world, job, RISE_AND_FALL[:6], HEALTHY[:6])
    assert [state for _, state in intents(world)] == [State.WARNED]
    world.tracker.log("r1", 20, 0.9, timestamp_ms=int(world.clock.time_s * 1000))
    play(world, job, RISE_AND_FALL[6:], HEALTHY[6:], first=7)
    assert [state for _, state in intents(world)] == [State.ABANDONED]
    assert "1 of 15 values were logged without a dataset" in said(world, "untold-dataset")[0]


def test_what_is_wrong_with_a_choice_is_said_although_it_was_said_that_one_is_needed():
    world = World()
    job = world.train()
    play(world, job, HEALTHY[:4], RISE_AND_FALL[:4])
    world.cluster.set_comment(job, "mlflow_run=r1 evalstop_dataset=held-out")
    play(world, job, RISE_AND_FALL[2:], HEALTHY[2:], first=5)
    assert remarks(world) == [(job, "untold-dataset"), (job, "several-series")]
    assert "held-out is none of 2 datasets" in said(world, "untold-dataset")[0]


def test_two_processes_that_log_the_chosen_dataset_are_still_two_series():
    world = World()
    job = world.train(comment="evalstop_dataset=clean")
    for number, score in enumerate(RISE_AND_FALL, 1):
        for place, (dataset, value) in enumerate(((CLEAN, score), (CLEAN, score + 0.01), (NOISY, 0.5))):
            at_ms = int(world.clock.time_s * 1000) + place
            world.tracker.log_of("r1", number * 10, value, dataset, timestamp_ms=at_ms)
        world.tick()
    assert world.cluster.cancelled == []
    assert remarks(world) == [(job, "several-series")]


def test_a_stranger_on_an_open_server_lifts_no_ceiling_by_naming_a_dataset():
    world = World(replace(RULES, server=ServerClass.OPEN))
    job = world.train(comment="evalstop_dataset=clean")
    play(world, job)
    assert world.cluster.cancelled == []
    assert [state for _, state in intents(world)] == [State.WARNED]


def test_another_run_of_the_job_is_told_apart_only_if_it_is_mixed_itself():
    world = World()
    job = world.train(comment="evalstop_dataset=clean")
    play(world, job, RISE_AND_FALL[:3], HEALTHY[:3])
    assert watch_of(world).dataset_now == "clean@c1"
    world.tracker.add_run("r2").tags["slurm.job_id"] = str(world.cluster.jobs[job].raw_id)
    world.cluster.set_comment(job, "mlflow_run=r2 evalstop_dataset=clean")
    world.play(job, "r2", RISE_AND_FALL)
    assert world.cluster.cancelled == [(job, 0)]
    (intent,) = store_of(world).intents_of([watch_of(world).key])
    assert (intent.evidence.dataset, intent.evidence.run_id) == ("", "r2")


def test_what_a_job_logged_last_is_kept_with_its_dataset():
    world = World(replace(RULES, rule="never"))
    job = world.train(comment="evalstop_dataset=clean")
    play(world, job, HEALTHY[:4], RISE_AND_FALL[:4])
    for place, dataset in enumerate((CLEAN, NOISY)):
        at_ms = int(world.clock.time_s * 1000) + place
        world.tracker.log_of("r1", 50, 0.9 - place, dataset, timestamp_ms=at_ms)
    world.cluster.finish(job)
    world.tick()
    watch = watch_of(world)
    assert (watch.last_step, watch.last_score, watch.dataset_now) == (50, 0.9, "clean@c1")


@pytest.mark.parametrize("rules", [RULES, replace(RULES, rule="recommended", dataset="clean")])
def test_every_decision_is_folded_again_to_the_same_and_the_listings_name_the_dataset(rules: Rules):
    """The store has points from before the choice too: those of all datasets together."""
    world = World(rules)
    job = world.train(comment="evalstop=observe")
    play(world, job, (0.1, 0.2, 0.3, 0.4), (0.9, 0.1, 0.8, 0.2))
    world.cluster.set_comment(job, "mlflow_run=r1 evalstop_dataset=clean")
    long = tuple(0.4 + 0.1 * n for n in range(6)) + tuple(0.9 - 0.1 * n for n in range(9))
    play(world, job, long, tuple(0.1 * n for n in range(15)), first=5)
    assert world.cluster.cancelled == [(job, 0)]
    everything = Span(0.0, 1e12)
    again = refold(store_of(world), everything, "test")
    assert again.decisions >= 1
    assert again.differences == ()
    row = next(each for each in audit_report(store_of(world), everything, "test").decisions if each.what == "stop")
    assert row.basis.dataset == "clean@c1"
    assert "metric score of dataset clean@c1 (max)" in as_text(audit_report(store_of(world), everything, "test"))
    found = explain(store_of(world), store_of(world), job)
    assert found is not None
    assert "metric score of dataset clean@c1 (max)" in shown(explanation(found))
    assert [each.score for each in found.evals][:4] == [0.1, 0.2, 0.3, 0.4]
    assert status_rows(store_of(world), store_of(world), 5)[0].dataset == "clean@c1"


def play_lagging(world: World, job: str, ahead: tuple[float, ...], behind: tuple[float, ...], lag: int) -> None:
    """Evaluate on `noisy` at each step, on `clean` some evals later, and look after each value."""
    for number in range(1, len(ahead) + lag + 1):
        world.clock.time_s += 1
        for dataset, scores, at in ((NOISY, ahead, number), (CLEAN, behind, number - lag)):
            if 1 <= at <= len(scores) and world.cluster.jobs[job].phase == "running":
                now_ms = int(world.clock.time_s * 1000)
                world.tracker.log_of("r1", at * 10, scores[at - 1], dataset, timestamp_ms=now_ms)
                world.keeper.save(f"{world.cluster.jobs[job].work_dir}/out-r1", at * 10, at_s=world.clock.time_s)
                world.tick()


LOW, HIGH = (tuple(base + number / 100 for number in range(10)) for base in (0.5, 0.9))


@pytest.mark.parametrize("rule", ["k-declines:k=1", "k-declines:k=2", "recommended"])
@pytest.mark.parametrize("lag", [1, 3, 6])
def test_where_nobody_chooses_a_second_dataset_that_lags_behind_stops_nothing(rule: str, lag: int):
    world = World(replace(RULES, rule=rule))
    job = world.train()
    play_lagging(world, job, LOW, HIGH, lag)
    assert (world.cluster.cancelled, intents(world)) == ([], [])
    assert remarks(world) == [(job, "several-series")]
    assert "2 datasets: clean (digest c1), noisy (digest n1)" in said(world, "several-series")[0]


@pytest.mark.parametrize("lag", [1, 3, 6])
def test_a_second_process_that_lags_behind_is_refused_and_said(lag: int):
    world = World(replace(RULES, rule="k-declines:k=1"))
    job = world.train()
    for number in range(1, 20):
        for at, score in ((number, 0.5), (number - lag, 0.9)):
            if at >= 1:
                world.tracker.log("r1", at, score + at / 100, timestamp_ms=int(world.clock.time_s * 1000))
                world.tick()
    assert (world.cluster.cancelled, intents(world)) == ([], [])
    assert remarks(world) == [(job, "several-series")]


@pytest.mark.parametrize("rule", ["k-declines:k=1", "recommended"])
@pytest.mark.parametrize("lag", [1, 3, 6])
def test_the_dataset_that_the_owner_names_decides_however_far_it_lags_behind(rule: str, lag: int):
    world = World(replace(RULES, rule=rule))
    job = world.train(comment="evalstop_dataset=clean")
    play_lagging(world, job, LOW, HIGH, lag)
    world.tick(seconds=1_000)
    assert (world.cluster.cancelled, intents(world)) == ([], [])
    watch = watch_of(world)
    assert (watch.dataset_now, watch.evals, watch.best_score) == ("clean@c1", 10, HIGH[-1])
    assert {code for _, code in remarks(world)} <= {"untold-dataset"}


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_a_chosen_dataset_that_lags_behind_and_falls_stops_the_job(lag: int):
    world = World()
    job = world.train(comment="evalstop_dataset=clean")
    play_lagging(world, job, HEALTHY, RISE_AND_FALL, lag)
    (intent,) = store_of(world).intents_of([watch_of(world).key])
    assert (intent.evidence.dataset, intent.evidence.scores) == ("clean@c1", RISE_AND_FALL[:5])


def test_until_the_chosen_dataset_has_a_value_the_others_falls_stop_nothing():
    world = World()
    job = world.train(comment="evalstop_dataset=clean")
    play_lagging(world, job, RISE_AND_FALL, HEALTHY, 7)
    assert (world.cluster.cancelled, intents(world)) == ([], [])
    assert watch_of(world).dataset_now == "clean@c1"
    assert "clean is none of the dataset noisy (digest n1)" in said(world, "untold-dataset")[0]
