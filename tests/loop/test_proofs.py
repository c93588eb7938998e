"""Jobs whose comment says nothing: bound by a seal or a checked tag, over the emulated ports."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.binding import Trust
from evalstopd.core.mac import SiteKey, job_secret, seal
from evalstopd.core.model import Job, Rung
from evalstopd.core.rules import Rules, ServerClass
from evalstopd.loop.claims import MOST_SOUGHT
from tests.fakes.world import HEALTHY, RISE_AND_FALL, RULES, World
from tests.loop.test_outages import flaky
from tests.loop.told import remarks

KEY = b"k" * 32
SEALS = replace(RULES, trust=Trust(SiteKey(KEY)))
TAGS = replace(RULES, trust=Trust(tags=True))


def start(world: World, run_id: str = "r1", comment: str = "", uid: int = 1001) -> str:
    """Start a job that names no run, and a run that names the job, as the plugin makes it."""
    job_id = world.cluster.submit(uid, 8, comment)
    job = world.cluster.jobs[job_id]
    run = world.tracker.add_run(run_id)
    run.tags |= {"slurm.job_id": str(job.raw_id), "slurm.cluster": job.cluster}
    run.user, run.started_ms = job.user, 1000 * (job.started_s or 0)
    return job_id


def put_seal(world: World, job_id: str, run_id: str = "r1", made_for: str = "") -> str:
    """Seal a run by the secret of the job's present life."""
    job = world.cluster.jobs[job_id]
    tag = seal(job_secret(KEY, job, str(job.started_s)), made_for or run_id)
    world.tracker.runs[run_id].tags["evalstop.mac"] = tag
    return tag


def proof(world: World, run_id: str = "r1") -> tuple[str, bool]:
    held = world.store.holders([run_id])[run_id]
    return held.proof, held.two_way


def test_a_sealed_run_is_judged_its_job_stopped_and_its_outcome_written() -> None:
    world = World(SEALS)
    job = start(world)
    put_seal(world, job)
    world.play(job, "r1", RISE_AND_FALL)
    for _ in range(3):
        world.tick()

    assert world.cluster.cancelled == [(job, 0)]
    assert proof(world) == ("mac", True)
    assert world.tracker.runs["r1"].status == "KILLED"
    assert world.tracker.runs["r1"].tags["evalstop.state"] == "confirmed"


def test_where_users_are_checked_a_tag_stops_the_job_and_nothing_is_written_to_the_run() -> None:
    world = World(TAGS)
    job = start(world)
    world.play(job, "r1", RISE_AND_FALL)
    for _ in range(3):
        world.tick()

    assert world.cluster.cancelled == [(job, 0)]
    assert proof(world) == ("tag", False)
    assert world.tracker.writes == []


@pytest.mark.parametrize("rules", [RULES, SEALS, replace(TAGS, server=ServerClass.OPEN, trust=Trust())])
def test_a_tag_alone_binds_nothing_where_it_is_no_proof(rules: Rules) -> None:
    world = World(rules)
    job = start(world)
    world.play(job, "r1", RISE_AND_FALL)

    assert world.store.book("c").watches == ()
    assert world.tracker.reads == []
    assert world.cluster.jobs[job].phase == "running"


def test_a_server_that_is_open_whatever_was_declared_is_taken_for_open_and_that_is_said() -> None:
    world = World(TAGS)
    world.gate.open = True
    by_tag = start(world, "r1")
    by_comment = world.train("r2")
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.evaluate(by_tag, "r1", number, score)
        world.evaluate(by_comment, "r2", number, score)
        report = world.tick()

    assert world.cluster.cancelled == []
    assert [watch.key.job_id for watch in world.store.book("c").watches] == [by_comment]
    assert world.store.book("c").watches[0].rung_now is Rung.WARN
    assert "taken for open" in report.summary


def test_an_owner_who_asks_for_enforce_is_stopped_by_a_seal_on_an_open_server() -> None:
    world = World(replace(SEALS, server=ServerClass.OPEN))
    job = start(world, comment="evalstop=enforce evalstop_output=out-r1")
    other = start(world, "r2")
    for run_id, each in (("r1", job), ("r2", other)):
        put_seal(world, each, run_id)
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.evaluate(job, "r1", number, score)
        world.evaluate(other, "r2", number, score)
        world.tick()

    assert world.cluster.cancelled == [(job, 0)]


def test_until_it_is_known_who_may_enter_no_run_is_read() -> None:
    world = World(SEALS)
    world.gate.down = True
    job = world.train("r2")
    world.play(job, "r2", RISE_AND_FALL[:3])
    assert world.tracker.reads == []

    world.gate.down = False
    world.play(job, "r2", RISE_AND_FALL)
    world.tick()
    assert world.cluster.cancelled == [(job, 0)]


def test_a_life_that_seals_the_run_anew_goes_on_with_the_curve() -> None:
    world = World(SEALS)
    job = start(world)
    put_seal(world, job)
    for number, score in enumerate((0.1, 0.4, 0.8), 1):
        world.evaluate(job, "r1", number, score)
        world.tick()
    world.cluster.requeue(job)
    world.clock.time_s += 5
    world.cluster.start()
    world.tick()
    assert remarks(world) == []
    reads = len(world.tracker.reads)
    put_seal(world, job)
    for number, score in enumerate((0.7, 0.6), 4):
        world.evaluate(job, "r1", number, score)
        world.tick()
    world.tick()

    assert len(world.tracker.reads) > reads
    assert world.cluster.cancelled == [(job, 1)]


def test_two_sealed_runs_or_another_than_the_comments_are_ambiguous_and_said_once() -> None:
    world = World(SEALS)
    two = start(world, "r1")
    put_seal(world, two, "r1")
    tags = dict(world.tracker.runs["r1"].tags)
    world.tracker.add_run("r2").tags |= tags
    put_seal(world, two, "r2")
    named = start(world, "r3", "mlflow_run=r4")
    put_seal(world, named, "r3")
    world.tracker.add_run("r4")
    for number, score in enumerate(RISE_AND_FALL, 1):
        for job, run_id in ((two, "r1"), (two, "r2"), (named, "r3"), (named, "r4")):
            world.evaluate(job, run_id, number, score)
        world.tick()

    assert world.cluster.cancelled == []
    assert sorted(remarks(world)) == [(two, "ambiguous-runs"), (named, "ambiguous-runs")]


def test_the_searches_of_a_pass_do_not_grow_with_the_jobs_and_all_are_found() -> None:
    world = World(SEALS, gpus=10_000)
    jobs = [start(world, f"r{number}") for number in range(5 * MOST_SOUGHT)]
    world.tick()
    assert world.tracker.searches == MOST_SOUGHT

    for number, job in enumerate(jobs):
        put_seal(world, job, f"r{number}")
        world.tracker.log(f"r{number}", 1, 0.5, timestamp_ms=int(world.clock.time_s * 1000))
    for _ in range(60):
        world.tick()
    assert len(world.store.book("c").watches) == len(jobs)


def test_jobs_without_a_run_are_looked_for_ever_more_rarely() -> None:
    world = World(replace(SEALS, tick_s=30.0))
    start(world)
    counts = []
    for _ in range(4):
        before = world.tracker.searches
        for _ in range(20):
            world.tick(30.0)
        counts.append(world.tracker.searches - before)

    assert counts[0] >= 19
    assert counts == sorted(counts, reverse=True)
    assert 1 <= counts[-1] <= 5


def test_without_any_proof_but_the_comment_nothing_is_searched() -> None:
    world = World()
    world.play(world.train("r1"), "r1", RISE_AND_FALL[:3])

    assert world.tracker.searches == 0


def test_a_veto_in_the_comment_holds_for_a_sealed_run() -> None:
    world = World(replace(SEALS, notice_s=3.0))
    job = start(world)
    put_seal(world, job)
    world.play(job, "r1", RISE_AND_FALL[:5])
    world.cluster.set_comment(job, "evalstop=keep")
    world.play(job, "r1", RISE_AND_FALL)

    assert world.cluster.cancelled == []


class CommentedFirst:
    """A cluster whose owner writes a comment right before the last look."""

    def __init__(self, world: World, job: str, comment: str) -> None:
        self._world, self._job, self._comment = world, job, comment

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world.cluster, name)

    def look(self, job_ids: Sequence[str]) -> Mapping[str, Job]:
        held = self._world.cluster.jobs[self._job]
        self._world.cluster.jobs[self._job] = replace(held, comment=self._comment)
        return self._world.cluster.look(job_ids)


@pytest.mark.parametrize(
    ("comment", "sealed", "stopped"),
    [("mlflow_run=r9", True, False), ("mlflow_run=r1", True, True), ("note", True, True), ("note", False, False)],
)
def test_at_the_last_look_the_job_must_still_go_by_the_run(comment: str, sealed: bool, stopped: bool) -> None:
    """A seal needs no comment, but one that names another run wins; a run bound by the comment needs it to stay."""
    world = World(SEALS)
    job = start(world, comment="" if sealed else "mlflow_run=r1")
    if sealed:
        put_seal(world, job)
    world.play(job, "r1", RISE_AND_FALL[:4])
    world.evaluate(job, "r1", 50, RISE_AND_FALL[4])
    cluster: Any = CommentedFirst(world, job, comment)
    world.tick(ports=replace(world.ports(), cluster=cluster))

    assert "look" in world.cluster.calls
    assert world.cluster.cancelled == ([(job, 0)] if stopped else [])


def test_a_proof_that_changes_is_recorded() -> None:
    world = World(SEALS)
    job = start(world)
    put_seal(world, job)
    world.play(job, "r1", RISE_AND_FALL[:2])
    assert proof(world) == ("mac", True)
    world.cluster.set_comment(job, "mlflow_run=r1")
    world.play(job, "r1", RISE_AND_FALL[:3])

    assert proof(world) == ("comment", True)
    assert world.store.book("c").watches[0].proof == "comment"


def test_a_risk_accepted_in_writing_holds_when_the_server_turns_out_to_be_open() -> None:
    """Its tags are still anyone's word: the one that names the output folder, say."""
    world = World(replace(SEALS, open_server_accepted="ours alone"))
    world.gate.open = True
    job = world.train("r2")
    world.tracker.runs["r2"].tags["evalstop.output_dir"] = "elsewhere"
    world.play(job, "r2", RISE_AND_FALL)

    assert world.cluster.cancelled == [(job, 0)]


def test_a_run_that_is_over_before_its_job_is_no_trouble() -> None:
    world = World(SEALS)
    job = start(world)
    put_seal(world, job)
    world.play(job, "r1", RISE_AND_FALL[:3])
    world.tracker.runs["r1"].status = "FINISHED"
    for _ in range(5):
        world.tick()

    assert remarks(world) == []
    assert world.cluster.cancelled == []


@given(
    st.sampled_from(["finder", "gate"]), st.lists(st.sampled_from(["fine", "fails before", "fails after"]), max_size=40)
)
def test_however_the_search_and_the_door_flap_a_sealed_job_is_stopped_once_and_a_healthy_one_never(
    what: str, fates: list[str]
) -> None:
    world = World(SEALS)
    falling, rising = start(world), start(world, "r2")
    put_seal(world, falling)
    put_seal(world, rising, "r2")
    ports = flaky(world, what, iter(fates))
    for number, (low, high) in enumerate(zip((*RISE_AND_FALL, 0.3, 0.2), (*HEALTHY, 0.8, 0.9), strict=True), 1):
        world.evaluate(falling, "r1", number * 10, low)
        world.evaluate(rising, "r2", number * 10, high)
        for _ in range(3):
            world.tick(ports=ports)
    for _ in range(10):
        world.tick()

    assert world.cluster.cancelled in ([(falling, 0)], [])
    assert len(fates) > 5 or world.cluster.cancelled
