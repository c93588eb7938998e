"""The Slurm adapter against real Slurm: the contract, rights, and what only the real one shows."""

import time
from collections.abc import Callable, Iterator

import pytest
from demo.rig import users
from demo.rig.cluster import Cluster as Rig

from evalstopd.adapters.slurm import SlurmCluster
from evalstopd.adapters.slurm.clock import controllers_clock_s
from evalstopd.adapters.slurm.rights import is_operator
from evalstopd.adapters.slurm.run import ProcessRunner
from evalstopd.core.model import Life, Phase
from evalstopd.errors import Rejected, Unavailable
from evalstopd.ports import EndingQuery
from evalstopd.undo import Caller, parse_target, undo
from evalstopd.veto import keep
from evalstopd.wiring.own_shell import wait_a_moment
from tests.contracts.cluster_contract import ClusterContract, ClusterWorld
from tests.e2e.slurm_world import AsUser, SlurmWorld

pytestmark = [pytest.mark.slurm, pytest.mark.root, pytest.mark.slow]
OUTAGE_S = 10.0


@pytest.fixture(name="slurm")
def _slurm(cluster: Rig) -> Iterator[SlurmWorld]:
    world = SlurmWorld(cluster)
    yield world
    world.clear()


class TestSlurmCluster(ClusterContract):
    """The contract over real Slurm, asked as an Operator."""

    @pytest.fixture
    def world(self, slurm: SlurmWorld) -> ClusterWorld:
        return slurm


def test_each_question_is_one_command_whatever_the_number_of_jobs(slurm: SlurmWorld) -> None:
    tasks = slurm.submit_array(slurm.alice, 6)
    cluster = slurm.cluster
    questions: list[Callable[[], object]] = [
        cluster.queue,
        lambda: cluster.look(tasks),
        lambda: cluster.cancel(tasks),
        lambda: cluster.endings([EndingQuery(task, Life(0, 1)) for task in tasks]),
    ]
    for number, ask in enumerate(questions, start=1):
        ask()
        assert cluster.calls == number


def test_others_without_the_right_are_refused_and_the_job_lives(slurm: SlurmWorld) -> None:
    job_id = slurm.submit(slurm.alice, comment="mlflow_run=a")
    bob = slurm.seen_by(users.BOB)
    assert bob.look([job_id])[job_id].uid == slurm.alice
    for act in (
        lambda: bob.cancel([job_id]),
        lambda: bob.signal(job_id, "USR1"),
        lambda: bob.set_comment(job_id, "evalstop=keep"),
    ):
        with pytest.raises(Rejected):
            act()
    job = slurm.cluster.look([job_id])[job_id]
    assert (job.phase, job.comment) == (Phase.RUNNING, "mlflow_run=a")
    assert slurm.signals(job_id) == []


def test_a_running_jobs_time_limit_is_known_and_an_unlimited_jobs_is_none(slurm: SlurmWorld) -> None:
    limited = slurm.submit(slurm.alice, 1, "", "--time=90")
    unlimited = slurm.submit(slurm.alice, 1, "", "--time=UNLIMITED")
    unasked = slurm.submit(slurm.alice, 1, "")
    jobs = slurm.cluster.look([limited, unlimited, unasked])
    started_s, limit_s = jobs[limited].started_s, jobs[limited].limit_end_s
    assert started_s is not None
    assert limit_s is not None
    assert abs(limit_s - started_s - 90 * 60) <= 1
    assert [jobs[each].limit_end_s for each in (unlimited, unasked)] == [None, None]
    assert [jobs[each].time_limit_s for each in (unlimited, unasked)] == [None, None]


def test_our_hold_is_the_owners_to_release_an_admins_is_not_and_no_hold_a_strangers(slurm: SlurmWorld) -> None:
    """Slurm makes our hold a user's; an admin's hold on top of it looks the same in squeue, and must not be lifted."""
    job_id, other = slurm.submit(slurm.alice, comment="mlflow_run=a"), slurm.submit(slurm.alice)
    alice, bob = slurm.seen_by(users.ALICE), slurm.seen_by(users.BOB)
    for each in (job_id, other):
        slurm.cluster.requeue_hold(each)
        slurm.until(lambda each=each: slurm.cluster.look([each])[each].held)  # type: ignore[misc]
    slurm.rig.run("scontrol", "hold", other)
    for refused in (
        lambda: bob.requeue_hold(job_id),
        lambda: bob.release(job_id),
        lambda: alice.release(other),
        lambda: undo(bob, parse_target(job_id), Caller(slurm.bob, lambda: False), None),
        lambda: undo(slurm.cluster, parse_target(other), Caller(0, lambda: True), None),
    ):
        with pytest.raises(Rejected):
            refused()
    assert slurm.cluster.look([other])[other].comment == ""
    with pytest.raises(Rejected, match=f"ask for 'scontrol release {other}'.*evalstop=keep by now, which stands"):
        undo(alice, parse_target(other), Caller(slurm.alice, lambda: False), None)
    held = slurm.cluster.look([job_id, other])
    assert [(job.held, job.comment) for job in held.values()] == [(True, "mlflow_run=a"), (True, "evalstop=keep")]
    undo(alice, parse_target(job_id), Caller(slurm.alice, lambda: False), None)
    slurm.cluster.release(other)
    seen = slurm.cluster.look([job_id, other])
    assert [job.held for job in seen.values()] == [False, False]
    assert seen[job_id].comment == "mlflow_run=a evalstop=keep"


def test_who_may_act_on_the_jobs_of_others(slurm: SlurmWorld) -> None:
    levels = {users.ALICE: False, users.DAEMON: True, "evsnobody": False}
    for user, may in levels.items():
        assert is_operator(AsUser(slurm.rig, users.ALICE), 1, user) is may


def test_an_owner_writes_the_comment_of_a_task_that_has_the_arrays_number(slurm: SlurmWorld) -> None:
    tasks = slurm.submit_array(slurm.alice, 3)
    slurm.seen_by(users.ALICE).set_comment(tasks[-1], "evalstop=keep")
    seen = slurm.cluster.look(tasks)
    assert [seen[task].comment for task in tasks] == ["", "", "evalstop=keep"]
    assert tasks[-1].partition("_")[0] == str(seen[tasks[-1]].raw_id)


def test_an_arrays_id_vetoes_all_its_tasks_that_run_or_wait(slurm: SlurmWorld) -> None:
    """Some run, some wait, one has ended; then tasks whose scripts wrote words of their own, which stay."""
    array = slurm.submit_only(slurm.alice, "--gpus=1", "--array=0-6%3", "--comment=project=x")
    alice = slurm.seen_by(users.ALICE)
    first = [f"{array}_{task}" for task in range(3)]
    slurm.until(lambda: all(job.phase is Phase.RUNNING for job in [*slurm.cluster.look(first).values()]))
    slurm.rig.run("scancel", first[0])
    slurm.until(lambda: slurm.cluster.look([f"{array}_3"])[f"{array}_3"].phase is Phase.RUNNING)
    with pytest.raises(Rejected):
        keep(slurm.seen_by(users.BOB), array, wait_a_moment)

    assert (
        keep(alice, array, wait_a_moment)
        == f"array {array}: its 6 tasks in the queue say evalstop=keep: they will not be stopped"
    )
    assert {job.comment for job in slurm.cluster.queue().jobs} == {"project=x evalstop=keep"}
    for task in first[1:]:
        alice.set_comment(task, f"mlflow_run=r{task}")
    assert "its 6 tasks" in keep(alice, array, wait_a_moment)
    seen = slurm.cluster.look(first[1:])
    assert [seen[task].comment for task in first[1:]] == [f"mlflow_run=r{task} evalstop=keep" for task in first[1:]]


def test_each_component_of_a_heterogeneous_job_gets_the_veto_beside_its_own_words(slurm: SlurmWorld) -> None:
    """Its first component's number stands for all of them in scontrol: one text would replace the others'."""
    script = (
        "#!/bin/sh\n#SBATCH --gpus=1 --comment=mlflow_run=r1\n#SBATCH hetjob\n#SBATCH --gpus=1 --comment=project=x\n"
        "sleep 300\n"
    )
    job_id = slurm.rig.sbatch(users.ALICE, script, "--output=/dev/null")
    alice = slurm.seen_by(users.ALICE)
    slurm.until(lambda: [job.phase for job in slurm.cluster.queue().jobs] == [Phase.RUNNING] * 2)
    said = f"heterogeneous job {job_id}: its 2 components say evalstop=keep: it will not be stopped"

    assert keep(alice, f"{job_id}+1", wait_a_moment) == said
    ids = [job_id, str(int(job_id) + 1)]
    seen = slurm.cluster.look(ids)
    assert [seen[each].comment for each in ids] == ["mlflow_run=r1 evalstop=keep", "project=x evalstop=keep"]
    for part, comment in zip(ids, ("a=1", "b=2"), strict=True):
        alice.set_comment(seen[part].address, comment)
    assert keep(alice, job_id, wait_a_moment) == said
    seen = slurm.cluster.look(ids)
    assert [seen[each].comment for each in ids] == ["a=1 evalstop=keep", "b=2 evalstop=keep"]


def test_a_comment_outlives_a_requeue(slurm: SlurmWorld) -> None:
    job_id = slurm.submit(slurm.alice)
    slurm.cluster.set_comment(job_id, "evalstop=keep")
    slurm.requeue(job_id)
    job = slurm.cluster.look([job_id])[job_id]
    assert (job.restarts, job.comment) == (1, "evalstop=keep")


def test_tasks_that_wait_are_one_job_and_can_be_looked_at_one_by_one(slurm: SlurmWorld) -> None:
    array = slurm.submit_only(slurm.alice, "--hold", "--gpus=1", "--array=0-4%2")
    (job,) = slurm.cluster.queue().jobs
    assert (job.job_id, job.phase, job.gpus) == (f"{array}_[0-4%2]", Phase.PENDING, 1)
    assert slurm.cluster.look([f"{array}_3"])[f"{array}_3"].phase is Phase.PENDING


@pytest.mark.parametrize(
    ("options", "gpus"),
    [
        (["--gpus=3"], 3),
        (["--gres=gpu:2"], 2),
        (["--nodes=2", "--gpus-per-node=2"], 4),
        (["--ntasks=2", "--gpus-per-task=2"], 4),
        ([], 0),
    ],
)
def test_gpus_are_counted_however_they_were_asked_for(slurm: SlurmWorld, options: list[str], gpus: int) -> None:
    slurm.submit_only(slurm.alice, *options)
    slurm.until(lambda: [job.phase for job in slurm.cluster.queue().jobs] == [Phase.RUNNING])
    (job,) = slurm.cluster.queue().jobs
    assert job.gpus == gpus


def test_submit_times_are_epochs_whatever_the_time_zone(slurm: SlurmWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    # Slurm cuts its times to whole seconds.
    before = int(time.time())
    job_id = slurm.submit(slurm.alice)
    job = slurm.cluster.look([job_id])[job_id]
    assert before <= job.submitted_s <= time.time()
    slurm.finish(job_id)
    query = EndingQuery(job_id, job.life)
    slurm.until(lambda: query in slurm.cluster.endings([query]))
    ended_s = slurm.cluster.endings([query])[query].ended_s
    assert ended_s is not None
    assert before <= ended_s <= time.time()


def test_without_accounting_the_controller_tells_how_a_life_ended(slurm: SlurmWorld) -> None:
    cluster = _without_accounting(slurm.rig)
    job_id, again = slurm.submit(slurm.alice), slurm.submit(slurm.alice)
    queries = [EndingQuery(each, cluster.look([each])[each].life) for each in (job_id, again)]
    slurm.finish(job_id)
    slurm.requeue(again)
    slurm.until(lambda: len(cluster.endings(queries)) == 2)
    endings = cluster.endings(queries)
    assert [(endings[query].state, endings[query].source) for query in queries] == [
        ("COMPLETED", "controller"),
        ("REQUEUED", "controller"),
    ]


def test_an_outage_is_told_in_time_and_never_as_an_empty_queue(slurm: SlurmWorld) -> None:
    job_id = slurm.submit(slurm.alice)
    query = EndingQuery(job_id, slurm.cluster.look([job_id])[job_id].life)
    with slurm.down():
        began = time.monotonic()
        with pytest.raises(Unavailable):
            slurm.cluster.queue()
        assert time.monotonic() - began < OUTAGE_S
        assert slurm.cluster.endings([query]) == {}
    slurm.until(lambda: [job.job_id for job in slurm.cluster.queue().jobs] == [job_id])


def _without_accounting(rig: Rig) -> SlurmCluster:
    """Return the cluster as a site without slurmdbd has it: the same controller, no accounting configured."""
    conf = rig.directory / "etc" / "plain.conf"
    lines = (rig.directory / "etc" / "slurm.conf").read_text().splitlines()
    kept = [line for line in lines if not line.startswith("Accounting")]
    conf.write_text("\n".join([*kept, "AccountingStorageType=accounting_storage/none", ""]))
    return SlurmCluster(run=ProcessRunner(conf=str(conf)))


def test_slurmctld_tells_its_own_time(slurm: SlurmWorld) -> None:
    """In seconds since the epoch, whatever the machine's time zone."""
    asked_s = time.time()
    told_s = controllers_clock_s(AsUser(slurm.rig, users.DAEMON))

    assert asked_s - 1 <= told_s <= time.time()
