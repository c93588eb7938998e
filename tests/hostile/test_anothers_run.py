"""My comment naming another's run: it harms nobody, and does not switch off the watching of whose run it is."""

from tests.fakes.world import RISE_AND_FALL, World
from tests.loop.told import remarks


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
