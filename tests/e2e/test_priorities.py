"""The order of waiting jobs on a real Slurm cluster, by a daemon without a privilege but Slurm's Operator level."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from demo.rig import users
from demo.rig.cluster import Cluster

from evalstopd.core.shift import ShiftState
from tests.e2e.lines import Lines, basic_priority, lines
from tests.e2e.warm_service import Loaded

pytestmark = [pytest.mark.slurm, pytest.mark.root, pytest.mark.slow]
ALICE, BOB = users.ALICE, users.BOB


@pytest.fixture(name="queue")
def _queue(cluster: Cluster, reachable_directory: Path, made_store: Path, loaded: Loaded) -> Iterator[Lines]:
    with lines(loaded, cluster, reachable_directory / "lines", made_store) as made:
        yield made


def test_shorter_jobs_start_first_and_at_the_end_every_nice_is_as_found(queue: Lines) -> None:
    blocker = queue.block()
    long, short, middle = (queue.submit(user, limit=limit) for user, limit in ((ALICE, 50), (BOB, 5), (ALICE, 20)))
    own = queue.submit(BOB, "--nice=30", limit=10)
    held = queue.submit(BOB, "--hold", limit=1)
    later = queue.submit(BOB, f"--dependency=afterany:{blocker}", limit=1)
    queue.service.start_daemon()
    queue.until_ordered(short, middle, long, own)

    assert [queue.nice(job) for job in (held, later)] == [0, 0]
    assert {each.state for each in queue.shifts()} <= {ShiftState.ASKED, ShiftState.SET}
    rows = {row["job"]: row for row in queue.service.json("priorities", "show")}
    assert [rows[job]["wanted"] for job in (short, middle, long, own, held, later)] == [1, 2, 3, None, None, None]
    assert rows[own]["why"] == "has a Nice of its own"
    assert rows[held]["why"] == "held"
    assert rows[later]["why"].startswith("may not start yet")

    assert queue.service.stop_daemon() == 0
    assert [queue.nice(job) for job in (long, short, middle, own, held, later)] == [0, 0, 0, 30, 0, 0]
    assert queue.shifts() == ()


def test_the_order_in_which_they_start(queue: Lines) -> None:
    blocker = queue.block()
    long, short, middle = (queue.submit(user, limit=limit) for user, limit in ((ALICE, 50), (BOB, 5), (ALICE, 20)))
    queue.service.start_daemon()
    queue.until_ordered(short, middle, long)

    assert queue.run_all(blocker, long, short, middle) == [short, middle, long]


def three(queue: Lines) -> tuple[str, str, str]:
    """Submit a long, a short and a middle job, in this order."""
    made = [queue.submit(user, limit=limit) for user, limit in ((ALICE, 50), (BOB, 5), (ALICE, 20))]
    return made[0], made[1], made[2]


def test_fifo_keeps_the_order_of_submission_against_multifactor(
    cluster: Cluster, reachable_directory: Path, made_store: Path, loaded: Loaded
) -> None:
    with lines(loaded, cluster, reachable_directory / "lines", made_store, priorities={"policy": "fifo"}) as queue:
        blocker = queue.block()
        first, second = queue.submit(ALICE), queue.submit(BOB)
        queue.weigh(first, -50)
        assert queue.order(first, second) == [second, first]
        queue.service.start_daemon()
        queue.until_ordered(first, second)

        assert queue.run_all(blocker, first, second) == [first, second]


def test_srtf_lets_the_job_with_less_left_start_first(
    cluster: Cluster, reachable_directory: Path, made_store: Path, loaded: Loaded
) -> None:
    """By Slurm's own word and by submit time the other one would be first, by time limit they are equal."""
    with lines(loaded, cluster, reachable_directory / "lines", made_store, priorities={"policy": "srtf-est"}) as queue:
        again = queue.requeued(ALICE, 10, runs_s=3)
        blocker, fresh = queue.submit(ALICE, seconds=3600), queue.submit(BOB, limit=10)
        queue.cluster.run("scontrol", "update", f"JobId={blocker}", "Nice=-1000")
        queue.requeue(again)
        queue.weigh(again, -20)
        queue.wait(lambda: queue.state(blocker) == "RUNNING", "the blocker runs")
        assert queue.order(again, fresh) == [fresh, again]
        queue.service.start_daemon()
        queue.until_ordered(again, fresh)

        assert queue.run_all(blocker, again, fresh) == [again, fresh]


def test_las_lets_the_job_start_first_that_has_had_less(
    cluster: Cluster, reachable_directory: Path, made_store: Path, loaded: Loaded
) -> None:
    with lines(
        loaded, cluster, reachable_directory / "lines", made_store, priorities={"policy": "las:first=8,second=16"}
    ) as queue:
        again = queue.requeued(ALICE, 10, runs_s=4)
        blocker = queue.submit(ALICE, seconds=3600)
        queue.cluster.run("scontrol", "update", f"JobId={blocker}", "Nice=-1000")
        queue.requeue(again)
        queue.wait(lambda: queue.state(blocker) == "RUNNING", "the blocker runs")
        fresh = queue.submit(BOB, limit=10)
        assert queue.order(again, fresh) == [again, fresh]
        queue.service.start_daemon()
        queue.until_ordered(fresh, again)
        queue.cluster.run("scancel", blocker)
        queue.wait(lambda: queue.state(fresh) != "PENDING", "the fresh job has started")
        assert queue.state(again) == "PENDING"


@pytest.mark.parametrize("mechanism", ["nice", "priority"])
def test_reconfigured_and_restarted_in_between_nothing_is_lost_or_repeated(
    cluster: Cluster, reachable_directory: Path, made_store: Path, loaded: Loaded, mechanism: str
) -> None:
    with lines(
        loaded, cluster, reachable_directory / "lines", made_store, priorities={"mechanism": mechanism}
    ) as queue:
        queue.block()
        long, short, middle = three(queue)
        own = queue.submit(BOB, "--nice=30", limit=60)
        found = {job: (queue.priority(job), queue.nice(job)) for job in (long, short, middle, own)}
        queue.service.start_daemon()
        queue.until_ordered(short, middle, long, own)
        queue.passes()
        asked = {each.key.job_id: (each.asked, each.asked_s) for each in queue.shifts()}
        cluster.run("scontrol", "reconfigure")
        queue.passes()
        cluster.stop_controller()
        queue.service.kill_daemon()
        cluster.start_controller()
        queue.service.start_daemon()
        queue.passes(3)

        assert queue.order(short, middle, long, own) == [short, middle, long, own]
        assert {each.key.job_id: (each.asked, each.asked_s) for each in queue.shifts()} == asked
        queue.service.kill_daemon()
        done = queue.service.command("priorities", "restore")
        assert done.returncode == 0, done.stderr
        assert {job: (queue.priority(job), queue.nice(job)) for job in found} == found
        assert queue.shifts() == ()


def test_under_basic_priority_too(
    cluster: Cluster, reachable_directory: Path, made_store: Path, loaded: Loaded
) -> None:
    with basic_priority(cluster), lines(loaded, cluster, reachable_directory / "lines", made_store) as queue:
        queue.wait(lambda: "idle" in cluster.run("sinfo", "-h", "-o", "%T"), "the nodes are back")
        blocker = queue.block()
        jobs = three(queue)
        found = [queue.priority(job) for job in jobs]
        queue.service.start_daemon()
        queue.until_ordered(jobs[1], jobs[2], jobs[0])
        assert sorted(queue.priority(job) for job in jobs) == sorted(found)
        cluster.stop_controller()
        cluster.start_controller()
        queue.passes()
        assert queue.order(*jobs) == [jobs[1], jobs[2], jobs[0]]
        assert queue.service.stop_daemon() == 0
        assert [queue.priority(job) for job in jobs] == found

        queue.service.start_daemon()
        queue.until_ordered(jobs[1], jobs[2], jobs[0])
        assert queue.run_all(blocker, *jobs) == [jobs[1], jobs[2], jobs[0]]


def test_restore_is_refused_while_a_daemon_works_and_switching_off_takes_back(queue: Lines) -> None:
    queue.block()
    long, short, middle = three(queue)
    queue.service.start_daemon()
    queue.until_ordered(short, middle, long)
    refused = queue.service.command("priorities", "restore")
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    assert "switch its policy off instead" in refused.stderr

    queue.service.configure(priorities={"policy": ""})
    queue.service.reload()
    queue.wait(lambda: queue.shifts() == (), "taken back")
    assert [queue.nice(job) for job in (long, short, middle)] == [0, 0, 0]


def above(queue: Lines, other: str, *jobs: str) -> int:
    """Return how many of these jobs would start before another one."""
    order = queue.order(other, *jobs)
    return order.index(other)


def test_nobody_gains_on_jobs_that_are_not_governed(
    cluster: Cluster, reachable_directory: Path, made_store: Path, loaded: Loaded
) -> None:
    """By resubmitting, or by resetting what the daemon set: as many stand before a stranger's job as would anyway."""
    cluster.add_account("free")
    cluster.add_user(BOB, "free")
    changes = {"rules": {"exempt_accounts": ["free"]}, "priorities": {"reassert": 1}}
    with lines(loaded, cluster, reachable_directory / "lines", made_store, **changes) as queue:
        queue.block()
        long = queue.submit(ALICE, limit=50)
        other = queue.submit(BOB, "--account=free", "--nice=20", limit=90)
        short = queue.submit(ALICE, limit=5)
        queue.weigh(short, -40)
        assert queue.order(long, other, short) == [long, other, short]
        queue.service.start_daemon()
        queue.until_ordered(short, other, long)
        assert queue.nice(other) == 20

        cluster.as_user(ALICE, ["scancel", short])
        queue.wait(lambda: queue.nice(long) == 0, "the job that was put back has its own place again")
        short = queue.submit(ALICE, limit=5)
        queue.weigh(short, -40)
        queue.until_ordered(short, other, long)

        for _ in range(2):
            queue.wait(lambda: queue.nice(long) != 0, "the daemon has set it")
            queue.passes()
            assert cluster.as_user(ALICE, ["scontrol", "update", f"JobId={long}", "Nice=0"]).returncode == 0
        queue.wait(lambda: queue.log().count("left alone") > 0, "left alone, and said")
        queue.until_ordered(long, other, short)
        queue.passes(3)
        assert above(queue, other, long, short) == 1
        assert queue.nice(short) == 0
        said = queue.service.json("priorities", "show")
        assert "did not stay" in next(row["why"] for row in said if row["job"] == long)


def test_a_job_with_a_nice_of_its_own_lends_nobody_its_place(queue: Lines) -> None:
    """Two tiny jobs of bob's, one below the least that Slurm gives, and one of his whose place they are to clear."""
    queue.block()
    long, short, middle = three(queue)
    queue.service.start_daemon()
    queue.until_ordered(short, middle, long)
    queue.passes(3)
    found = {job: (queue.priority(job), queue.nice(job)) for job in (long, short, middle)}
    low, lowest = queue.submit(BOB, "--nice=900", limit=1), queue.submit(BOB, "--nice=100000", limit=1)
    queue.passes(4)

    assert {job: (queue.priority(job), queue.nice(job)) for job in found} == found
    assert [queue.nice(job) for job in (low, lowest)] == [900, 100_000]
    rows = {row["job"]: row for row in queue.service.json("priorities", "show")}
    assert {rows[job]["why"] for job in (low, lowest)} == {"has a Nice of its own"}


@pytest.mark.parametrize("mechanism", ["nice", "priority"])
@pytest.mark.parametrize("leaves", ["Dependency=afterany:{blocker}", "StartTime=now+1hour", "held"])
def test_who_leaves_the_line_is_given_back_what_he_had(
    cluster: Cluster, reachable_directory: Path, made_store: Path, loaded: Loaded, mechanism: str, leaves: str
) -> None:
    with lines(
        loaded, cluster, reachable_directory / "lines", made_store, priorities={"mechanism": mechanism}
    ) as queue:
        blocker = queue.block()
        long, short, middle = three(queue)
        queue.service.start_daemon()
        queue.until_ordered(short, middle, long)
        changes = ("hold", long) if leaves == "held" else ("update", f"JobId={long}", leaves.format(blocker=blocker))
        assert cluster.as_user(ALICE, ["scontrol", *changes]).returncode == 0
        queue.wait(lambda: queue.order(short, middle) == [short, middle] and queue.nice(long) == 0, "given back")
        queue.passes(3)
        if leaves == "held":
            assert (queue.state(long), queue.priority(long)) == ("PENDING", 0)
            assert cluster.as_user(ALICE, ["scontrol", "release", long]).returncode == 0
            queue.until_ordered(short, middle, long)


def test_after_a_change_of_the_lever_the_order_goes_on(queue: Lines) -> None:
    queue.block()
    long, short, middle = three(queue)
    found = {job: (queue.priority(job), queue.nice(job)) for job in (long, short, middle)}
    queue.service.start_daemon()
    queue.until_ordered(short, middle, long)
    for mechanism in ("priority", "nice"):
        queue.service.configure(priorities={"mechanism": mechanism})
        queue.service.reload()
        queue.wait(lambda name=mechanism: name in {each.lever.value for each in queue.shifts()}, "the other lever")
        queue.until_ordered(short, middle, long)
        queue.passes(3)
        assert {each.lever.value for each in queue.shifts()} == {mechanism}
    assert queue.service.stop_daemon() == 0
    assert {job: (queue.priority(job), queue.nice(job)) for job in found} == found


def test_without_the_right_one_clear_line_and_nothing_is_half_done(
    cluster: Cluster, reachable_directory: Path, made_store: Path, loaded: Loaded
) -> None:
    cluster.run("sacctmgr", "-i", "modify", "user", users.DAEMON, "set", "adminlevel=None")
    try:
        with lines(loaded, cluster, reachable_directory / "lines", made_store) as queue:
            queue.block()
            jobs = three(queue)
            checked = {row["what"]: row for row in queue.service.json("check")}
            assert not checked["priorities"]["good"]
            queue.service.start_daemon()
            queue.wait(lambda: "Operator" in queue.log(), "it says so")
            queue.passes(3)
            assert [queue.nice(job) for job in jobs] == [0, 0, 0]
            assert queue.order(*jobs) == list(jobs)
            remarks = queue.service.book.remarks_of(["site"])
            assert len([each for each in remarks if each.code == "priorities-denied"]) == 1
    finally:
        cluster.run("sacctmgr", "-i", "modify", "user", users.DAEMON, "set", "adminlevel=Operator")
