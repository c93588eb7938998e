"""A PostgreSQL server that hangs under the whole daemon: no wrong stop, no long pass, nothing lost, nothing twice."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import pairwise

import pytest
from demo.rig import users

from evalstopd.core.intent import State
from tests.e2e.site import FALL, RISE, Site
from tests.store import postgres

pytestmark = [pytest.mark.slurm, pytest.mark.mlflow]
# A third of a lease is the beat that renews it: no tick is shorter.
LEASE_S, TICK_S, NOTICE_S = 14.0, 5.0, 12.0
# An answer is waited for 15 s, then a new connection for 5 s; the rest is for a machine that is busy.
LONGEST_S = 35.0
HALF_A_NODE = ("--gpus=2", "--nodes=1")
_PASS = re.compile(
    r"^(?P<at>\S+ \S+),\d+ (?P<level>[A-Z]+) evalstopd: (?P<text>\d+ jobs, .*|.*(?:failed|lease|leads).*)$"
)


@pytest.fixture
def server() -> Iterator[str]:
    """Yield the folder of the socket of a server of its own, which the daemon's account can reach."""
    try:
        with postgres.server() as home:
            os.chmod(home, 0o755)
            yield home
    except postgres.NotHere as reason:
        pytest.skip(f"PostgreSQL: {reason}")


def log_of(site: Site, since: int = 0) -> str:
    return str(site.service.log.read_text(errors="replace")[since:])


def passes(log: str) -> list[tuple[datetime, str]]:
    """Return when the log tells of a pass, and what it says."""
    found = [match for line in log.splitlines() if (match := _PASS.match(line))]
    return [(datetime.fromisoformat(each["at"]), each["text"]) for each in found]


def warned(site: Site, job: str) -> bool:
    return [each.state for each in site.intents(job)] == [State.WARNED]


def steps(site: Site, job: str) -> list[int]:
    watch = site.watch(job)
    assert watch is not None
    return sorted(point.step for point in site.store.points([watch.key])[watch.key])


def test_a_server_that_hangs_through_the_notice_and_past_the_lease(make_site: Callable[..., Site], server: str) -> None:
    """The stop comes after it, once; who says keep meanwhile is heard; the evals of that time are all there."""
    site = make_site(
        store={"url": f"postgresql://tests@/postgres?host={server}", "lease_s": LEASE_S},
        enforce={"notice_s": NOTICE_S},
        daemon={"tick_s": TICK_S},
    )
    rising = site.train(users.BOB, RISE, *HALF_A_NODE, pace_s=8.0, more="--linger-s 600")
    falling, kept = (site.train(users.ALICE, FALL, *HALF_A_NODE, pace_s=4.0, more="--linger-s 600") for _ in range(2))
    site.wait(lambda: warned(site, falling) and warned(site, kept), "both decisions")
    before = len(log_of(site))
    with postgres.hanging(server):
        # By then every notice is over, and so is the lease.
        site.wait(
            lambda: log_of(site, before).count("could not be renewed") >= 4, "the daemon meets it again and again"
        )
        assert site.service.command("keep", kept, user=users.ALICE).returncode == 0
        assert [site.state(job) for job in (rising, falling, kept)] == ["RUNNING"] * 3
        hung = log_of(site, before)
    since = before + len(hung)
    site.wait(lambda: "passes are good again" in log_of(site, since), "a good pass")
    first_passes = [text for _, text in passes(log_of(site, since))]
    site.wait(lambda: site.intents(falling)[0].state is State.CONFIRMED, "the stop")
    site.wait(lambda: site.intents(kept)[0].closed, "the veto")
    site.wait(lambda: site.evals(rising) == 8, "all evals of the rising job")

    # It keeps to its time limits, and says each thing once.
    moments = [at for at, _ in passes(log_of(site, before))]
    assert max((later - earlier).total_seconds() for earlier, later in pairwise(moments)) < LONGEST_S
    said = Counter(line.partition(" WARNING ")[2] for line in hung.splitlines() if " WARNING evalstopd" in line)
    assert set(said.values()) == {1}, said
    assert len(said) <= 3, said
    assert "good" not in hung
    assert not [text for _, text in passes(hung) if text.startswith("leads")], "no pass says that it leads meanwhile"
    # At most the pass that was in hand is not good any more.
    assert len([text for text in first_passes if " jobs, " not in text]) <= 1, first_passes

    # No wrong stop, and the right one once.
    assert (site.accounted(falling), site.state(kept), site.state(rising)) == ("CANCELLED", "RUNNING", "RUNNING")
    assert (site.intents(kept)[0].state, site.intents(rising)) == (State.VETOED, ())
    kinds = Counter(kind for kind, _ in site.events(falling))
    assert {kinds[kind] for kind in ("planned", "warned", "promoted", "cancelling", "cancelled", "confirmed")} == {1}
    assert site.intents(falling)[0].cancel_tries == 1
    controller = (site.cluster.directory / "log" / "slurmctld.log").read_text()
    assert len(re.findall(rf"REQUEST_KILL_JOB JobId={falling}\b", controller)) == 1
    # Nothing is lost and nothing is there twice.
    assert steps(site, rising) == [10 * number for number in range(1, 9)]
    assert steps(site, kept) == [10 * number for number in range(1, 9)]
    assert steps(site, falling) == [10 * number for number in range(1, len(steps(site, falling)) + 1)]
    assert len(steps(site, falling)) >= 5
    assert site.service.command("audit", "verify").returncode == 0
