"""Identity: a stop is for one life of one job, whatever the id, the name, the account or accounting say meanwhile."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from demo.rig import users

from evalstopd.core.intent import State
from evalstopd.core.model import Ending, Phase
from evalstopd.ports import EndingQuery
from evalstopd.report.rows import status_rows
from evalstopd.store.memory import MemoryStore
from tests.e2e.site import FALL, Site
from tests.fakes.overlaid import Overlaid
from tests.fakes.world import RISE_AND_FALL, RULES, World
from tests.loop.told import events, intents, remarks

NOTICE = replace(RULES, notice_s=3.0)
DECIDED = RISE_AND_FALL[:5]


def decided(**fields: object) -> tuple[World, str]:
    """Return a world in which a job's stop was decided, and waits for the notice."""
    world = World(NOTICE)
    job = world.train("r1", **fields)
    world.play(job, "r1", DECIDED)
    assert [state for _, state in intents(world)] == [State.WARNED]
    return world, job


def change(world: World, job: str, **fields: object) -> None:
    world.cluster.jobs[job] = replace(world.cluster.jobs[job], **fields)  # type: ignore[arg-type]


def passes(world: World, count: int = 8) -> None:
    for _ in range(count):
        world.tick()


def state(world: World) -> State:
    return intents(world)[0][1]


def test_a_requeue_during_the_notice_ends_the_intent_and_the_next_life_is_the_same_job() -> None:
    """Same id, new submit time, Restarts up."""
    world, job = decided()
    world.clock.time_s += 2
    world.cluster.requeue(job)
    world.cluster.start()
    passes(world)
    assert isinstance(world.store, MemoryStore)

    assert world.cluster.cancelled == []
    assert state(world) is State.ABANDONED
    (watch,) = world.store.recent(9)
    assert (watch.life.restarts, watch.evals) == (1, 5)
    world.play(job, "r1", (0.3, 0.2))
    assert world.cluster.cancelled == []


@pytest.mark.parametrize("uid", [1001, 1002])
@pytest.mark.parametrize("accounted", [True, False])
def test_another_job_that_got_the_id_is_never_hit(uid: int, accounted: bool) -> None:
    """ "Id reuse": the newer submit time tells, for the same owner's job too, whether or not the old end is known."""
    world, job = decided()
    old = world.cluster.jobs[job]
    if accounted:
        world.cluster.finish(job)
    change(world, job, uid=uid, phase=Phase.RUNNING, state="RUNNING", submitted_s=old.submitted_s + 60, restarts=0)
    passes(world)

    assert world.cluster.cancelled == []
    assert world.cluster.jobs[job].phase is Phase.RUNNING
    assert [each for _, each in intents(world) if each is not State.ABANDONED] == []


def test_a_component_of_a_heterogeneous_job_is_never_ended_alone() -> None:
    """ "Het jobs (whole only)": Slurm ends them as a whole, so their components are not judged one by one."""
    world = World()
    job = world.train("r1", het_id=5)
    world.cluster.submit(het_id=5)
    world.play(job, "r1", RISE_AND_FALL)

    assert world.cluster.cancelled == []
    assert intents(world) == []
    assert world.tracker.reads == []
    assert remarks(world) == [(job, "het-job")], "said once, of the component that names a run"


@pytest.mark.parametrize("ending", ["COMPLETED", "FAILED", "TIMEOUT"])
def test_a_job_that_ends_at_the_moment_of_the_stop_is_not_said_to_have_been_stopped(ending: str) -> None:
    """Between last look and cancel: nothing was ended by us, so nobody is told so, and the run is not marked."""
    world = World()
    job = world.train("r1")
    world.play(job, "r1", DECIDED[:4])
    world.evaluate(job, "r1", 50, DECIDED[4])
    cancel = world.cluster.cancel

    def finish_first(job_ids):  # type: ignore[no-untyped-def]
        world.cluster.finish(job, ending)
        return cancel(job_ids)

    world.tick(ports=replace(world.ports(), cluster=Overlaid(world.cluster, cancel=finish_first)))
    passes(world, 3)

    assert world.cluster.cancelled == []
    assert state(world) is State.ABANDONED
    assert dict(events(world))["abandoned"] == f"the job ended by itself before the cancel: {ending}"
    assert "stopped" not in {message.kind for message in world.notifier.told}
    assert world.tracker.runs["r1"].status == "RUNNING"
    assert world.tracker.runs["r1"].tags["evalstop.state"] == "abandoned"


def test_a_job_that_is_renamed_is_still_the_same() -> None:
    world, job = decided()
    change(world, job, name="harmless", comment=f"{world.cluster.jobs[job].comment} note")
    passes(world)

    assert world.cluster.cancelled == [(job, 0)]


def test_a_job_moved_to_another_account_is_counted_there() -> None:
    world, job = decided(account="old")
    change(world, job, account="new")
    passes(world)

    assert world.cluster.cancelled == [(job, 0)]
    assert [each.account for each in world.store.decisions("c", 0.0)] == ["new"]


@pytest.mark.parametrize("moved", [{"account": "free"}, {"partition": "debug"}])
def test_a_job_moved_out_of_the_daemons_reach_is_not_stopped(moved: dict[str, str]) -> None:
    """ "Moved to another account or partition": one that the site does not govern."""
    world = World(replace(NOTICE, exempt_accounts=("free",), partitions=("gpu",), stale_s=20.0))
    job = world.train("r1")
    world.play(job, "r1", DECIDED)
    change(world, job, **moved)
    passes(world, 30)

    assert world.cluster.cancelled == []
    assert state(world) is State.ABANDONED


def test_a_suspended_job_is_stopped_only_once_it_runs_again() -> None:
    world, job = decided()
    change(world, job, phase=Phase.SUSPENDED, state="SUSPENDED")
    passes(world, 10)
    assert world.cluster.cancelled == []
    assert state(world) is State.WARNED
    change(world, job, phase=Phase.RUNNING, state="RUNNING")
    passes(world, 2)

    assert world.cluster.cancelled == [(job, 0)]


def test_a_job_suspended_right_before_the_last_look_is_left_alone() -> None:
    world, job = decided()
    look = world.cluster.look

    def suspend_first(job_ids):  # type: ignore[no-untyped-def]
        change(world, job, phase=Phase.SUSPENDED, state="SUSPENDED")
        return look(job_ids)

    ports = replace(world.ports(), cluster=Overlaid(world.cluster, look=suspend_first))
    for _ in range(5):
        world.tick(ports=ports)

    assert world.cluster.cancelled == []
    assert state(world) is State.PROMOTED


def test_the_end_is_that_of_the_life_submitted_then_whatever_else_has_the_id() -> None:
    """ "Sacct record chosen by this life's submit": earlier and later records of the id tell nothing of it."""
    world, job = decided()
    life = world.cluster.jobs[job].life
    for submitted_s, restarts in ((life.submitted_s - 500, 0), (life.submitted_s + 1, 1)):
        other = EndingQuery(job, replace(life, submitted_s=submitted_s, restarts=restarts))
        world.cluster.ended[other] = Ending("COMPLETED", 1.0)
    passes(world)
    assert isinstance(world.store, MemoryStore)
    ended = world.store.intents_of([world.store.recent(1)[0].key])[0].ending

    assert world.cluster.cancelled == [(job, 0)]
    assert ended is not None
    assert ended.state == "CANCELLED"


def test_without_accounting_an_end_that_nobody_remembers_is_abandoned_as_unknown_and_said_so() -> None:
    """ "Without slurmdbd scontrol within MinJobAge, else abandoned(unknown) and said so"."""
    world, job = decided()
    cluster = Overlaid(world.cluster, endings=lambda queries: {})
    ports = replace(world.ports(), cluster=cluster)
    for _ in range(5):
        world.tick(ports=ports)
    assert world.cluster.cancelled == [(job, 0)]
    del world.cluster.jobs[job]
    for _ in range(2):
        world.tick(1200.0, ports=ports)
    assert state(world) is State.CANCELLED
    for _ in range(3):
        world.tick(1200.0, ports=ports)
    assert isinstance(world.store, MemoryStore)
    (row,) = status_rows(world.store, world.store, 9)

    assert world.cluster.cancelled == [(job, 0)]
    assert (row.state, row.why) == ("abandoned", "how the job ended could not be learned")
    assert world.tracker.runs["r1"].tags["evalstop.state"] == "abandoned"


@pytest.mark.slurm
@pytest.mark.mlflow
def test_suspended_and_renamed_during_the_notice_then_stopped_once_it_runs_on(make_site: Callable[..., Site]) -> None:
    """On real Slurm: while it is suspended nothing is done, its new name changes nothing, running again it is ended."""
    site = make_site(enforce={"notice_s": 3.0})
    job = site.train(users.ALICE, FALL)
    site.wait(lambda: site.intents(job), "the decision")
    site.cluster.run("scontrol", "suspend", job)
    site.cluster.run("scontrol", "update", f"JobId={job}", "Name=harmless")
    before = site.service.log.stat().st_size
    site.wait(lambda: site.service.log.read_text()[before:].count(" watched") >= 12, "passes beyond the notice")
    assert site.state(job) == "SUSPENDED"
    assert not site.intents(job)[0].closed
    site.cluster.run("scontrol", "resume", job)
    site.wait(lambda: site.intents(job)[0].state is State.CONFIRMED, "the stop")

    watch = site.watch(job)
    assert watch is not None
    assert (watch.name, site.accounted(job)) == ("harmless", "CANCELLED")


def asked(site: Site, job: str) -> list[str]:
    """Return what was asked of the controller that would end the job, one of its components, or their lives."""
    log = (site.cluster.directory / "log" / "slurmctld.log").read_text()
    ids = "|".join((job, str(int(job) + 1)))
    return re.findall(rf"(?:REQUEST_KILL_JOB|[Rr]equeue).*JobId=(?:{ids})\b.*", log)


@pytest.mark.slurm
@pytest.mark.mlflow
def test_a_heterogeneous_job_on_real_slurm_is_left_whole(make_site: Callable[..., Site]) -> None:
    """Its owner is told why nothing is done; once he ends it both components are gone, and nobody else asked for it."""
    site = make_site(enforce={"stop_action": "requeue-hold-or-cancel"})
    script = f"#!/bin/sh\n#SBATCH --gpus=1\n#SBATCH hetjob\n#SBATCH --gpus=1\nexec {site.command(FALL, pace_s=0.2)}\n"
    job = site.cluster.sbatch(users.ALICE, script)
    site.wait(lambda: "mlflow_run=" in site.cluster.squeue("-j", job, "-o", "%k"), "its comment names a run")
    before = site.service.log.stat().st_size
    site.wait(lambda: site.service.log.read_text()[before:].count(" jobs, ") >= 10, "passes")

    assert site.cluster.squeue("-j", job, "-o", "%T").split() == ["RUNNING", "RUNNING"]
    assert (site.evals(job), site.intents(job), asked(site, job)) == (0, (), [])
    line = "no action: a component of a heterogeneous job is not judged alone"
    said = [text for whose, code, text in site.remarks() if (whose, code) == (job, "het-job")]
    assert said == [line]
    assert line in site.service.command("explain", job).stdout

    assert site.cluster.as_user(users.ALICE, ["scancel", job]).returncode == 0
    assert len(asked(site, job)) == 1
    site.wait(lambda: not site.cluster.squeue("-j", job, "-o", "%T").split(), "both components are gone")
    site.wait(lambda: (watch := site.watch(job)) is not None and watch.ending is not None, "the end is in the book")
    assert site.intents(job) == ()
