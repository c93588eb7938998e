"""The order of waiting jobs on a real Slurm cluster, by a daemon without a privilege but Slurm's Operator level."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from demo.rig import users
from demo.rig.cluster import Cluster

from evalstopd.core.shift import ShiftState
from tests.e2e.lines import Lines, lines

pytestmark = [pytest.mark.slurm, pytest.mark.root, pytest.mark.slow]
ALICE, BOB = users.ALICE, users.BOB


@pytest.fixture(name="queue")
def _queue(cluster: Cluster, reachable_directory: Path) -> Iterator[Lines]:
    with lines(cluster, reachable_directory / "lines") as made:
        yield made


def test_shorter_jobs_start_first_and_at_the_end_every_nice_is_as_found(queue: Lines) -> None:
    blocker = queue.block()
    long, short, middle = (queue.submit(user, limit=limit) for user, limit in ((ALICE, 50), (BOB, 5), (ALICE, 20)))
    own = queue.submit(BOB, "--nice=30", limit=10)
    held = queue.submit(BOB, "--hold", limit=1)
    later = queue.submit(BOB, f"--dependency=afterany:{blocker}", limit=1)
    queue.service.start_daemon()
    queue.until_ordered(short, own, middle, long)

    assert [queue.nice(job) for job in (held, later)] == [0, 0]
    assert {each.state for each in queue.shifts()} <= {ShiftState.ASKED, ShiftState.SET}
    rows = {row["job"]: row for row in queue.service.json("priorities", "show")}
    assert [rows[job]["wanted"] for job in (short, own, middle, long, held, later)] == [1, 2, 3, 4, None, None]
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
