"""Run tags copied or overwritten: a tag proves nothing by itself, and who loses one loses no job by it."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from demo.rig import users

from evalstopd.core.intent import State
from tests.adapters.mlflow.tracker import Tracker
from tests.e2e.site import FALL, RISE, Site
from tests.fakes.world import RISE_AND_FALL, World
from tests.loop.test_proofs import SEALS, put_seal, start
from tests.loop.told import remarks


def test_a_seal_copied_to_another_run_or_kept_by_a_later_life_binds_nothing() -> None:
    world = World(SEALS)
    job = start(world)
    put_seal(world, job, "r1", made_for="another")
    world.play(job, "r1", RISE_AND_FALL)
    assert world.store.book("c").watches == ()

    put_seal(world, job)
    world.cluster.requeue(job)
    world.clock.time_s += 5
    world.cluster.start()
    world.play(job, "r1", RISE_AND_FALL)
    assert world.store.book("c").watches == ()
    assert world.cluster.jobs[job].phase == "running"


def test_a_run_that_loses_its_seal_costs_nobody_a_job() -> None:
    """On an open server anyone may overwrite the tag: that ends the watching, and nothing else."""
    world = World(replace(SEALS, notice_s=5.0))
    job = start(world)
    put_seal(world, job)
    world.play(job, "r1", RISE_AND_FALL[:5])
    assert [each.state for each in world.store.book("c").intents] == ["warned"]

    world.tracker.runs["r1"].tags["evalstop.mac"] = "overwritten"
    for _ in range(20):
        world.tick()
    assert world.cluster.cancelled == []
    assert remarks(world) == [(job, "unproven-run")]


def test_a_run_whose_tag_is_overwritten_goes_to_no_stranger_who_names_it() -> None:
    """Once proven both ways it stays its owner's while her job lives, and when its tag is put right."""
    world = World()
    hers = world.train("r1")
    world.play(hers, "r1", RISE_AND_FALL[:2])
    his = world.train("r1", uid=1002)
    for number, (score, tag) in enumerate(zip(RISE_AND_FALL[2:4], (his, hers), strict=True), 3):
        world.tracker.runs["r1"].tags["slurm.job_id"] = tag
        world.evaluate(hers, "r1", number * 10, score)
        for _ in range(3):
            world.tick()

        watches = {watch.key.job_id: watch for watch in world.store.book("c").watches if watch.run_id}
        assert list(watches) == [hers]
        assert watches[hers].evals == number
        assert watches[hers].two_way is (tag == hers)
    assert remarks(world) == [(his, "foreign-run")]


@pytest.mark.slurm
@pytest.mark.mlflow
def test_a_stranger_who_claims_a_run_both_ways_gets_neither_it_nor_its_owners_stop(
    make_site: Callable[..., Site],
) -> None:
    site = make_site(enforce={"notice_s": 6.0})
    tracker = Tracker(site.mlflow.uri)
    falling = site.train(users.ALICE, FALL)
    site.wait(lambda: site.intents(falling), "the decision")
    watch = site.watch(falling)
    assert watch is not None
    hers = str(watch.run_id)
    his = site.train(users.BOB, RISE, more=f"--run {hers}")
    tracker.call("/runs/set-tag", {"run_id": hers, "key": "slurm.job_id", "value": his})
    site.wait(lambda: site.intents(falling)[0].state is State.CONFIRMED, "the stop")
    site.wait(lambda: (his, "foreign-run") in [each[:2] for each in site.remarks()], "the stranger's refusal")
    tracker.http.close()

    assert site.accounted(falling) == "CANCELLED"
    assert site.intents(his) == ()
    assert site.state(his) == "RUNNING"
    assert site.run(hers)["status"] == "RUNNING"
    assert not [value for value in site.run(hers)["tags"].values() if users.BOB in value]


@pytest.mark.slurm
@pytest.mark.mlflow
def test_tags_copied_from_another_run_or_overwritten_on_it_move_no_stop(make_site: Callable[..., Site]) -> None:
    """On an open server, where anyone may: bob gives his run alice's tags, and hers the number of his own job.

    (Seals that were copied are in tests/e2e/test_proofs.py.)
    """
    site = make_site(enforce={"notice_s": 6.0})
    tracker = Tracker(site.mlflow.uri)
    falling = site.train(users.ALICE, FALL)
    rising = site.train(users.BOB, RISE)
    site.wait(lambda: site.evals(falling) >= 1 and site.evals(rising) >= 1, "both are watched")
    hers, his = (str(watch.run_id) for job in (falling, rising) if (watch := site.watch(job)))
    site.wait(lambda: site.intents(falling), "the decision")
    for run_id, named in ((hers, rising), (his, falling)):
        tracker.call("/runs/set-tag", {"run_id": run_id, "key": "slurm.job_id", "value": named})
    for key, value in {"evalstop.state": "vetoed", "evalstop": "keep", "mlflow.user": users.BOB}.items():
        tracker.call("/runs/set-tag", {"run_id": hers, "key": key, "value": value})
    site.wait(lambda: site.intents(falling)[0].state is State.CONFIRMED, "the stop")
    tracker.http.close()

    assert site.accounted(falling) == "CANCELLED"
    assert site.state(rising) == "RUNNING"
    assert site.intents(rising) == ()
    assert dict(site.events(falling))["run"].startswith("nothing was written to the run")
    assert site.run(hers)["status"] == "RUNNING"
    assert not [tag for tag in site.run(his)["tags"] if tag.startswith("evalstop.")]
