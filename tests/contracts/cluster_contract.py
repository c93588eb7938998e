"""What every Cluster keeps to, whether Slurm or a stand-in; a subclass's fixture brings the world to try it in."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Protocol

import pytest

from evalstopd.core.model import Job, Life, Phase
from evalstopd.core.shift import Steer
from evalstopd.errors import NotRequeueable, Rejected, Unavailable
from evalstopd.ports import Cluster, EndingQuery

UNKNOWN_ID = "99999"


class ClusterWorld(Protocol):
    """A cluster of at least six GPUs without jobs, its users, and what they do."""

    alice: int
    bob: int

    @property
    def cluster(self) -> Cluster:
        """The cluster as someone sees it who may act on every job."""

    def submit(self, uid: int, gpus: int = 1, comment: str = "") -> str:
        """Submit a job and return its id once it runs."""

    def submit_fixed(self, uid: int) -> str:
        """Submit a job that may not be requeued and return its id once it runs."""

    def submit_waiting(self, uid: int) -> str:
        """Submit a job that asks for GPUs and does not get them, whatever ends."""

    def submit_array(self, uid: int, tasks: int) -> tuple[str, ...]:
        """Submit an array, return the ids of its tasks in order once all run."""

    def finish(self, job_id: str) -> None:
        """Let a job end well."""

    def requeue(self, job_id: str) -> None:
        """Give a running job a new life, and return once that runs; at least a second has gone by."""

    def signals(self, job_id: str) -> list[str]:
        """Return the signals that a job's batch script got."""

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for what takes its time; fails where it does not come."""

    def down(self) -> AbstractContextManager[None]:
        """Take the scheduler away for a while; jobs go on."""


class ClusterContract:
    """The tests. A subclass overrides `world`."""

    @pytest.fixture
    def world(self) -> ClusterWorld:
        raise NotImplementedError

    def test_an_empty_queue_has_its_clusters_name(self, world: ClusterWorld) -> None:
        queue = world.cluster.queue()
        assert queue.jobs == ()
        assert queue.cluster

    def test_a_running_job_is_listed_with_what_the_rules_need(self, world: ClusterWorld) -> None:
        job_id = world.submit(world.bob, gpus=2, comment="mlflow_run=abc evalstop=enforce")
        queue = world.cluster.queue()
        (job,) = queue.jobs
        assert (job.cluster, job.job_id, str(job.raw_id)) == (queue.cluster, job_id, job_id)
        assert (job.uid, job.phase, job.gpus, job.restarts) == (world.bob, Phase.RUNNING, 2, 0)
        assert job.comment == "mlflow_run=abc evalstop=enforce"
        assert job.holds_gpus
        assert job.started_s is not None
        assert job.submitted_s <= job.started_s
        assert job.nodes

    def test_a_waiting_job_holds_nothing_and_has_not_started(self, world: ClusterWorld) -> None:
        job_id = world.submit_waiting(world.alice)
        (job,) = (job for job in world.cluster.queue().jobs if job.job_id == job_id)
        assert (job.phase, job.started_s, job.holds_gpus) == (Phase.PENDING, None, False)
        assert job.gpus > 0

    def test_a_look_shows_the_same_as_the_queue_and_leaves_unknown_ids_out(self, world: ClusterWorld) -> None:
        jobs = [world.submit(world.alice), *world.submit_array(world.bob, 2)]
        seen = world.cluster.look([*jobs, UNKNOWN_ID])
        assert sorted(seen) == sorted(jobs)
        assert {job.job_id: job for job in world.cluster.queue().jobs} == dict(seen)
        assert world.cluster.look([UNKNOWN_ID]) == {}
        assert world.cluster.look([]) == {}

    def test_text_of_one_job_forges_no_other(self, world: ClusterWorld) -> None:
        honest = world.submit(world.bob, comment="mlflow_run=b")
        forged = f"x\n{UNKNOWN_ID}|RUNNING|0|mlflow_run=evil\n{honest}|mlflow_run=evil\n"
        hostile = world.submit(world.alice, comment=forged)
        jobs = {job.job_id: job for job in world.cluster.queue().jobs}
        assert jobs.keys() == {honest, hostile}
        assert (jobs[honest].comment, jobs[honest].uid) == ("mlflow_run=b", world.bob)
        assert (jobs[hostile].comment, jobs[hostile].uid) == (forged, world.alice)

    def test_a_cancel_ends_the_jobs_named_and_no_other(self, world: ClusterWorld) -> None:
        first, second, third = (world.submit(uid) for uid in (world.alice, world.bob, world.alice))
        lives = self.lives(world, first, second)
        world.cluster.cancel([first, second])
        world.until(lambda: self.phases(world, first, second, third) == [Phase.ENDED, Phase.ENDED, Phase.RUNNING])
        world.until(lambda: len(world.cluster.endings(lives)) == 2)
        for ending in world.cluster.endings(lives).values():
            assert ending.state == "CANCELLED"
            assert ending.ended_s is not None
        assert [job.job_id for job in world.cluster.queue().jobs if job.phase is Phase.RUNNING] == [third]

    @pytest.mark.parametrize("task", [0, -1])
    def test_one_task_of_an_array_ends_alone(self, world: ClusterWorld, task: int) -> None:
        tasks = world.submit_array(world.bob, 4)
        sisters = [job_id for job_id in tasks if job_id != tasks[task]]
        lives = self.lives(world, *tasks)
        world.cluster.cancel([tasks[task]])
        world.until(lambda: self.phases(world, tasks[task]) == [Phase.ENDED])
        world.until(lambda: bool(world.cluster.endings(lives)))
        assert [query.job_id for query in world.cluster.endings(lives)] == [tasks[task]]
        assert self.phases(world, *sisters) == [Phase.RUNNING] * 3

    def test_a_cancel_of_what_is_gone_or_waits_is_no_error_and_costs_nothing(self, world: ClusterWorld) -> None:
        gone, waiting, running = world.submit(world.alice), world.submit_waiting(world.alice), world.submit(world.bob)
        world.finish(gone)
        world.cluster.cancel([gone, UNKNOWN_ID, waiting, running])
        world.until(lambda: self.phases(world, running) == [Phase.ENDED])
        assert self.phases(world, waiting) == [Phase.PENDING]
        world.cluster.cancel([gone])
        world.cluster.cancel([])

    def test_nice_is_set_for_those_that_wait_and_whoever_does_not_is_no_error(self, world: ClusterWorld) -> None:
        """Whether a running job's Nice changes is the version's affair: it means nothing there."""
        waiting, running = world.submit_waiting(world.alice), world.submit(world.bob)
        world.cluster.steer([Steer(running, nice=7), Steer(UNKNOWN_ID, nice=7), Steer(waiting, nice=-7)])
        world.until(lambda: world.cluster.look([waiting])[waiting].nice == -7)
        assert self.phases(world, running, waiting) == [Phase.RUNNING, Phase.PENDING]
        world.cluster.steer([])

    def test_a_signal_reaches_the_batch_script_and_the_job_goes_on(self, world: ClusterWorld) -> None:
        first, *_, last = world.submit_array(world.alice, 3)
        world.cluster.signal(last, "USR1")
        world.until(lambda: world.signals(last) == ["USR1"])
        assert world.signals(first) == []
        assert self.phases(world, first, last) == [Phase.RUNNING, Phase.RUNNING]

    def test_a_requeue_is_a_new_life_of_the_same_job(self, world: ClusterWorld) -> None:
        job_id = world.submit(world.alice)
        (first,) = self.lives(world, job_id)
        world.requeue(job_id)
        (second,) = self.lives(world, job_id)
        assert second.life.restarts == 1
        assert second.life.submitted_s > first.life.submitted_s
        world.until(lambda: first in world.cluster.endings([first, second]))
        endings = world.cluster.endings([first, second])
        assert [(query, ending.state) for query, ending in endings.items()] == [(first, "REQUEUED")]
        world.cluster.cancel([job_id])
        world.until(lambda: second in world.cluster.endings([first, second]))
        endings = world.cluster.endings([first, second])
        assert [endings[life].state for life in (first, second)] == ["REQUEUED", "CANCELLED"]

    def test_a_job_requeued_and_held_frees_its_gpus_and_waits_for_its_release(self, world: ClusterWorld) -> None:
        job_id, other = world.submit(world.alice, comment="mlflow_run=a"), world.submit(world.alice)
        (first,) = self.lives(world, job_id)
        world.cluster.requeue_hold(job_id)
        world.until(lambda: world.cluster.look([job_id])[job_id].held)
        job = world.cluster.look([job_id])[job_id]
        assert (job.phase, job.restarts, job.holds_gpus, job.comment) == (Phase.PENDING, 1, False, "mlflow_run=a")
        assert {each.job_id: each for each in world.cluster.queue().jobs}[job_id] == job
        world.until(lambda: bool(world.cluster.endings([first])))
        assert world.cluster.endings([first])[first].state == "REQUEUED"
        assert self.phases(world, other) == [Phase.RUNNING]
        world.cluster.release(job_id)
        world.cluster.release(job_id)
        world.until(lambda: not world.cluster.look([job_id])[job_id].held)
        assert world.cluster.look([job_id])[job_id].life == job.life

    def test_a_job_that_is_put_back_frees_its_gpus_and_waits_in_a_new_life(self, world: ClusterWorld) -> None:
        """What does not run, and what may not be requeued, stays as it is."""
        job_id, gone, waits = world.submit(world.alice), world.submit(world.alice), world.submit_waiting(world.alice)
        fixed = world.submit_fixed(world.alice)
        world.finish(gone)
        world.until(lambda: self.phases(world, gone) == [Phase.ENDED])
        first, *others = self.lives(world, job_id, gone, waits, fixed)
        for each in (job_id, gone, waits, UNKNOWN_ID):
            world.cluster.put_back(each)
        with pytest.raises(NotRequeueable):
            world.cluster.put_back(fixed)
        world.until(lambda: world.cluster.look([job_id])[job_id].restarts == 1)
        world.until(lambda: bool(world.cluster.endings([first])))
        job = world.cluster.look([job_id])[job_id]
        assert not job.held
        assert world.cluster.endings([first])[first].state == "REQUEUED"
        assert self.lives(world, gone, waits, fixed) == others
        assert self.phases(world, gone, waits, fixed) == [Phase.ENDED, Phase.PENDING, Phase.RUNNING]

    @pytest.mark.parametrize("task", [0, -1])
    def test_one_task_of_an_array_is_requeued_and_held_alone(self, world: ClusterWorld, task: int) -> None:
        tasks = world.submit_array(world.bob, 4)
        world.cluster.requeue_hold(tasks[task])
        world.until(lambda: world.cluster.look([tasks[task]])[tasks[task]].held)
        sisters = [job_id for job_id in tasks if job_id != tasks[task]]
        assert self.phases(world, *sisters) == [Phase.RUNNING] * 3
        world.cluster.release(tasks[task])
        world.until(lambda: not world.cluster.look([tasks[task]])[tasks[task]].held)

    def test_only_what_runs_is_requeued_and_held(self, world: ClusterWorld) -> None:
        """Slurm's plain requeuehold takes a job that has ended well back into the queue."""
        gone, waiting = world.submit(world.alice), world.submit_waiting(world.alice)
        ended, waits = self.lives(world, gone, waiting)
        world.finish(gone)
        world.until(lambda: self.phases(world, gone) == [Phase.ENDED])
        for job_id in (gone, waiting, UNKNOWN_ID):
            world.cluster.requeue_hold(job_id)
        assert self.phases(world, gone, waiting) == [Phase.ENDED, Phase.PENDING]
        assert self.lives(world, gone, waiting) == [ended, waits]

    def test_a_job_that_may_not_be_requeued_is_refused_and_runs_on(self, world: ClusterWorld) -> None:
        job_id = world.submit_fixed(world.alice)
        (life,) = self.lives(world, job_id)
        with pytest.raises(NotRequeueable):
            world.cluster.requeue_hold(job_id)
        assert self.phases(world, job_id) == [Phase.RUNNING]
        assert self.lives(world, job_id) == [life]

    def test_nobody_releases_what_is_over(self, world: ClusterWorld) -> None:
        job_id = world.submit(world.alice)
        world.finish(job_id)
        world.until(lambda: self.phases(world, job_id) == [Phase.ENDED])
        for over in (job_id, UNKNOWN_ID):
            with pytest.raises(Rejected):
                world.cluster.release(over)

    def test_an_end_is_told_of_the_very_life_asked_about(self, world: ClusterWorld) -> None:
        done, running = world.submit(world.alice), world.submit(world.alice)
        ended, goes_on = self.lives(world, done, running)
        other = EndingQuery(done, Life(0, ended.life.submitted_s - 100))
        world.finish(done)
        world.until(lambda: ended in world.cluster.endings([ended]))
        endings = world.cluster.endings([ended, goes_on, other, EndingQuery(UNKNOWN_ID, ended.life)])
        assert [(query, ending.state) for query, ending in endings.items()] == [(ended, "COMPLETED")]
        assert world.cluster.endings([]) == {}

    def test_a_comment_is_replaced_whole_and_for_its_job_alone(self, world: ClusterWorld) -> None:
        first, *_, last = world.submit_array(world.alice, 3)
        for comment in ("mlflow_run=abc evalstop=keep", 'it\'s "so", ü; a=b\\n', ""):
            world.cluster.set_comment(last, comment)
            seen = world.cluster.look([first, last])
            assert (seen[first].comment, seen[last].comment) == ("", comment)

    def test_a_comment_of_an_ended_job_is_refused(self, world: ClusterWorld) -> None:
        job_id = world.submit(world.alice)
        world.finish(job_id)
        world.until(lambda: self.phases(world, job_id) == [Phase.ENDED])
        with pytest.raises(Rejected):
            world.cluster.set_comment(job_id, "too late")

    def test_a_scheduler_that_is_away_is_unavailable_and_back_afterwards(self, world: ClusterWorld) -> None:
        job_id = world.submit(world.alice)
        cluster = world.cluster
        asks: list[Callable[[], object]] = [
            cluster.queue,
            lambda: cluster.look([job_id]),
            lambda: cluster.cancel([job_id]),
            lambda: cluster.requeue_hold(job_id),
            lambda: cluster.put_back(job_id),
            lambda: cluster.release(job_id),
            lambda: cluster.signal(job_id, "USR1"),
            lambda: cluster.set_comment(job_id, "x"),
            lambda: cluster.steer([Steer(job_id, nice=1)]),
        ]
        # All at once: each may take its whole time limit.
        with world.down(), ThreadPoolExecutor() as pool:
            for answer in [pool.submit(ask) for ask in asks]:
                with pytest.raises(Unavailable):
                    answer.result()
        world.until(lambda: self.phases(world, job_id) == [Phase.RUNNING])
        assert world.cluster.look([job_id])[job_id].comment == ""

    def phases(self, world: ClusterWorld, *job_ids: str) -> list[Phase | None]:
        seen = world.cluster.look(job_ids)
        return [seen[job_id].phase if job_id in seen else None for job_id in job_ids]

    def lives(self, world: ClusterWorld, *job_ids: str) -> list[EndingQuery]:
        seen: dict[str, Job] = dict(world.cluster.look(job_ids))
        return [EndingQuery(job_id, seen[job_id].life) for job_id in job_ids]
