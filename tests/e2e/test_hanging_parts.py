"""Accounting that hangs or is away, a store that is locked: real parts, no wrong stop, no long pass."""

import os
import pwd
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from itertools import pairwise

import pytest
from demo.rig import users

from evalstopd.core.intent import State
from tests.e2e.site import FALL, RISE, Site

pytestmark = [pytest.mark.slurm, pytest.mark.mlflow]
MakeSite = Callable[..., Site]
SLURM = {"time_limit_s": 3.0}
# A pass may wait for sacct once, and a busy machine for the processor; PATIENCE is the store's of one writing.
LONGEST_S = 25.0
SHORT = "0.1,0.2"
_PASS = re.compile(r"^(\S+ \S+),\d+ .*(?: jobs, | failed|locked)", re.MULTILINE)


def longest_pass_s(site: Site, since: int) -> float:
    """Return the longest time between two passes that the daemon's log tells of, from a place in it on."""
    with site.service.log.open(errors="replace") as log:
        log.seek(since)
        times = [datetime.fromisoformat(each) for each in _PASS.findall(log.read())]
    return max((later - earlier).total_seconds() for earlier, later in pairwise(times))


def place_in_log(site: Site) -> int:
    return site.service.log.stat().st_size


def confirmed(site: Site, job: str) -> bool:
    return bool(site.intents(job)) and site.intents(job)[0].state is State.CONFIRMED


def ended(site: Site, job: str) -> str:
    watch = site.watch(job)
    return watch.ending.state if watch is not None and watch.ending is not None else ""


@pytest.mark.parametrize("how", ["hangs", "down"])
def test_accounting_away_while_a_stop_is_under_way_and_a_job_ends(make_site: MakeSite, how: str) -> None:
    """The controller still knows how both ended; the rising job goes on; nothing waits for accounting without end."""
    site = make_site(slurm=SLURM)
    options = ("--gpus=1", "--nodes=1")
    rising = site.train(users.BOB, RISE, *options, pace_s=0.5, more="--linger-s 600")
    ending = site.train(users.ALICE, SHORT, *options, pace_s=0.5, more="--linger-s 40")
    site.wait(lambda: site.watch(ending) and site.evals(rising), "both jobs watched")
    # Slurm may refuse a comment while accounting hangs, for as long as that lasts: its run is named before.
    falling = site.train(users.ALICE, FALL, *options, pace_s=3.0, more="--linger-s 600")
    site.wait(lambda: best_is_pinned(site, falling), "the best of the falling job is safe")
    since = place_in_log(site)
    with site.cluster.accounting_hangs() if how == "hangs" else site.cluster.accounting_down():
        site.wait(lambda: confirmed(site, falling), "the stop, confirmed by the controller", 180)
        site.wait(lambda: ended(site, ending), "the end of the other job", 180)
    site.wait(lambda: site.accounted(falling) == "CANCELLED", "accounting caught up", 180)

    assert ended(site, ending) == "COMPLETED"
    assert site.intents(falling)[0].cancel_tries == 1
    assert (site.state(rising), site.intents(rising)) == ("RUNNING", ())
    assert longest_pass_s(site, since) < LONGEST_S


def best_is_pinned(site: Site, job: str) -> bool:
    watch = site.watch(job)
    return watch is not None and any(pin.step == 30 and pin.safe for pin in site.store.pins_of([watch.key]))


@contextmanager
def locked(site: Site) -> Iterator[None]:
    """Hold the writers' lock of the daemon's store, under its own account."""
    os.seteuid(pwd.getpwnam(users.DAEMON).pw_uid)
    try:
        with closing(sqlite3.connect(site.service.database, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            os.seteuid(0)
            yield
            other.execute("ROLLBACK")
            os.seteuid(pwd.getpwnam(users.DAEMON).pw_uid)
    finally:
        os.seteuid(0)


def test_a_store_that_another_process_has_locked_stops_nothing_and_the_stop_comes_after_it(make_site: MakeSite) -> None:
    """What cannot be recorded is not done; once it can be, the job is stopped, once."""
    site = make_site()
    job = site.train(users.ALICE, FALL, pace_s=3.0, more="--linger-s 600")
    site.wait(lambda: best_is_pinned(site, job), "its best checkpoint is safe before the trainer rotates it away")
    since = place_in_log(site)
    with locked(site):
        site.wait(
            lambda: site.service.log.read_text(errors="replace")[since:].count("locked") >= 2, "two failed passes"
        )
        assert site.state(job) == "RUNNING"
        assert "evalstop.state" not in site.run(str(site.watch(job).run_id))["tags"]  # type: ignore[union-attr]
    site.wait(lambda: confirmed(site, job), "the stop after all")

    assert site.intents(job)[0].cancel_tries == 1
    assert [kind for kind, _ in site.events(job)].count("cancelling") == 1
    assert site.accounted(job) == "CANCELLED"
    assert longest_pass_s(site, since) < LONGEST_S
