"""My comment naming another's run: it harms nobody, and does not switch off the watching of whose run it is."""

from evalstopd.core.binding import JOB_ID_TAG
from tests.fakes.world import RISE_AND_FALL, World
from tests.loop.told import remarks, said


def test_a_strangers_run_in_my_comment_harms_nobody_and_is_said_once() -> None:
    world = World()
    alice = world.train("r1", uid=1001)
    bob = world.cluster.submit(1002, 8, "mlflow_run=r1")
    for number, score in enumerate(RISE_AND_FALL[:4], 1):
        world.evaluate(alice, "r1", number, score)
        world.tick()
    writes = list(world.tracker.writes)
    world.tick()

    assert world.tracker.writes == writes == []
    assert remarks(world) == [(bob, "foreign-run"), (bob, "disputed-run")]
    world.cluster.finish(alice)
    for _ in range(3):
        world.tick()
    world.tracker.log("r1", 9, 0.1)
    world.tick()
    assert world.cluster.cancelled == []
    assert world.tracker.writes == []
    assert len(remarks(world)) == 2


def test_a_stranger_naming_the_run_does_not_switch_off_its_watching() -> None:
    world = World()
    job = world.train("r1")
    del world.tracker.runs["r1"].tags["slurm.job_id"]
    world.play(job, "r1", RISE_AND_FALL[:2])
    world.cluster.submit(1002, 8, "mlflow_run=r1")
    for number, score in enumerate(RISE_AND_FALL[2:], 3):
        world.evaluate(job, "r1", number * 10, score)
        world.tick()

    assert world.cluster.cancelled == [(job, 0)]


def test_a_stranger_who_names_a_run_first_keeps_it_from_its_owner_no_longer_than_his_job_lives() -> None:
    """Neither run nor owner says whose it is; the owner's job is refused meanwhile, told the way out, and then watched.

    What the run held by then is history: no fall before that costs the job anything.
    """
    world = World(gpus=8)
    bob = world.cluster.submit(1002, 8, "mlflow_run=r1")
    alice = world.train("r1", uid=1001)
    del world.tracker.runs["r1"].tags[JOB_ID_TAG]
    for number, score in enumerate(RISE_AND_FALL[:5], 1):
        world.tracker.log("r1", number * 10, score)
    world.tick()
    world.cluster.gpus = 16
    world.cluster.start()
    for _ in range(3):
        world.tick(60.0)
    assert remarks(world) == [(alice, "foreign-run")]
    assert said(world, "foreign-run")[0].endswith(f"tag says so: {JOB_ID_TAG}={alice}")
    world.cluster.finish(bob, "CANCELLED")
    for _ in range(3):
        world.tick(600.0)
    assert world.cluster.cancelled == []
    for number, score in enumerate((0.9, 0.8, 0.7, 0.6), 6):
        world.evaluate(alice, "r1", number * 10, score)
        world.tick(3600.0)

    assert world.cluster.cancelled == [(alice, 0)]


def test_a_later_job_that_names_a_strangers_run_is_not_stopped_by_what_it_held() -> None:
    world = World()
    alice = world.train("r1", uid=1001)
    del world.tracker.runs["r1"].tags[JOB_ID_TAG]
    world.play(alice, "r1", RISE_AND_FALL[:4])
    world.cluster.finish(alice)
    world.tick()
    for step, score in ((50, 0.5), (60, 0.4), (70, 0.3)):
        world.tracker.log("r1", step, score)
    bob = world.cluster.submit(1002, 8, "mlflow_run=r1")
    for _ in range(5):
        world.tick(60.0)

    assert world.cluster.cancelled == []
    assert bob not in [job for job, _ in remarks(world)]
