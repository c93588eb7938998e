"""A flood of self-made declines to trip the site's or an account's breaker trips its owner's only."""

import pwd
from collections.abc import Callable

import pytest
from demo.rig import users
from demo.rig.cluster import Cluster

from evalstopd.core.caps import SITE, Caps, account_scope, owner_scope
from evalstopd.core.intent import State
from tests.core.test_caps import decision, flood, scopes
from tests.e2e.site import FALL, Site
from tests.loop.test_caps import fall, rows, submit, world_with


def test_one_account_never_trips_the_site() -> None:
    assert scopes(flood("a", 1, 1000)) == [owner_scope(1, "a")]
    assert scopes([*flood("a", 1, 1000), *flood("a", 2, 1000, 1000)]) == [account_scope("a")]


def test_one_owner_with_many_accounts_never_trips_the_site() -> None:
    """Not even where each account holds an honest job of somebody else's, too."""
    decisions = [each for at, name in enumerate("abcdef") for each in flood(name, 1, 5, 10 * at)]
    honest = [decision(900 + at, name, uid=20 + at) for at, name in enumerate("abcdef")]
    assert SITE not in scopes([*decisions, *honest])


def test_one_owner_cannot_trip_the_sites_breaker() -> None:
    """A flood of self-made declines over many accounts costs their owner his own breakers, and nobody else."""
    world = world_with(Caps(gpu_share=1.0, breaker_decisions=2, breaker_accounts=2))
    flood = {
        name: job for number in range(4) for name, job in submit(world, 2, f"mine{number}", 1001, 10 * number).items()
    }
    other = submit(world, 1, "honest", 1002, first=500)
    fall(world, flood | other)
    assert [job for job, _ in world.cluster.cancelled] == list(other.values())
    assert SITE not in {row.scope for row in rows(world)}


def test_falls_that_risk_nothing_trip_nothing() -> None:
    """Eleven jobs that their owner keeps at observe fall: his colleague's job is stopped as ever."""
    world = world_with(Caps(gpu_share=1.0))
    flood = submit(world, 11, "ml2", 1001, comment="evalstop=observe")
    fall(world, flood)
    other = submit(world, 1, "ml2", 1002, first=500)
    fall(world, other)
    assert [job for job, _ in world.cluster.cancelled] == list(other.values())
    assert rows(world) == ()


def test_an_owners_flood_in_his_account_holds_himself_and_not_his_colleagues() -> None:
    world = world_with(Caps(gpu_share=1.0, breaker_decisions=3))
    fall(world, submit(world, 6, "ml2", 1001))
    other, late = submit(world, 1, "ml2", 1002, first=500), submit(world, 1, "ml2", 1001, first=600)
    fall(world, other | late)
    assert [job for job, _ in world.cluster.cancelled] == list(other.values())
    assert [row.scope for row in rows(world)] == [owner_scope(1001, "ml2")]


@pytest.mark.slurm
@pytest.mark.mlflow
def test_a_flood_of_self_made_declines_trips_its_owners_breaker_and_the_next_owner_is_stopped_as_ever(
    make_site: Callable[..., Site], cluster: Cluster
) -> None:
    """On real Slurm: bob's array falls as one in an account; alice's job, falling beside it in the same, is stopped."""
    cluster.add_account("flood")
    cluster.add_user(users.BOB, "flood")
    cluster.add_user(users.ALICE, "flood")
    site = make_site(enforce={"notice_s": 8.0}, caps={"breaker_decisions": 3, "breaker_accounts": 2, "gpu_share": 1.0})
    go = cluster.work(users.BOB) / "go"
    wait = f"until [ -e {go} ]; do sleep 0.1; done"
    script = f"#!/bin/sh\n{wait}\nexec {site.command(FALL, pace_s=0.5)}\n"
    array = cluster.sbatch(users.BOB, script, "--account=flood", "--gpus=1", "--array=0-3")
    honest = site.train(users.ALICE, FALL, "--account=flood", "--gpus=4", "--nodes=1")
    tasks = [f"{array}_{number}" for number in range(4)]
    site.wait(lambda: {site.state(task) for task in tasks} == {"RUNNING"}, "all of the flood's tasks run")
    go.touch()
    site.wait(lambda: site.intents(honest) and site.intents(honest)[0].state is State.CONFIRMED, "the honest stop")
    site.wait(lambda: all(site.evals(task) == 8 for task in tasks), "the flood is over")

    held = [row["scope"] for row in site.service.json("breakers") if row["holds"]]
    assert held == [owner_scope(pwd.getpwnam(users.BOB).pw_uid, "flood")]
    assert {site.state(task) for task in tasks} == {"RUNNING"}
