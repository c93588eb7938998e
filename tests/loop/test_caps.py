"""Caps and breakers in the whole loop: a stop over a cap waits its turn, a flood of stops becomes a look only."""

from dataclasses import replace

from evalstopd.breakers import breaker_rows, reset
from evalstopd.core.caps import SITE, Caps, account_scope, owner_scope
from evalstopd.core.intent import State
from evalstopd.core.model import Rung
from evalstopd.report.rows import status_rows
from evalstopd.store.memory import MemoryStore
from tests.fakes.world import RISE_AND_FALL, RULES, World
from tests.loop.told import events, intents, remarks_on, said

ROOMY = Caps(gpu_share=1.0)


def world_with(caps: Caps, **rules: object) -> World:
    return World(replace(RULES, caps=caps, **rules), gpus=1000)


def fall(world: World, jobs: dict[str, str]) -> None:
    """Let several jobs rise and fall together, one tick an eval."""
    for number, score in enumerate(RISE_AND_FALL, 1):
        for run_id, job in jobs.items():
            world.evaluate(job, run_id, number * 10, score)
        world.tick()


def submit_and_fall(world: World, count: int) -> list[str]:
    jobs = submit(world, count)
    fall(world, jobs)
    return list(jobs.values())


def submit(
    world: World, count: int, account: str = "lab", uid: int = 1001, first: int = 0, comment: str = ""
) -> dict[str, str]:
    names = [f"r{first + number}" for number in range(count)]
    return {name: world.train(name, uid, account=account, comment=comment) for name in names}


def shared(world: World, count: int, account: str = "lab") -> dict[str, str]:
    """Submit so many jobs of an account, half of them of another owner."""
    mine = submit(world, count // 2, account, 1001)
    return mine | submit(world, count - count // 2, account, 1003, count // 2)


def test_a_stop_over_the_accounts_cap_waits_for_the_hour_and_is_said_once() -> None:
    world = world_with(replace(ROOMY, stops_per_account=2), stale_s=1e6)
    fall(world, submit(world, 3))
    assert len(world.cluster.cancelled) == 2
    assert waits(world) == ["waits: 2 jobs of its account were stopped within the hour, the cap is 2"]
    waiting = [state for _, state in intents(world) if state is State.PROMOTED]
    assert len(waiting) == 1

    world.tick(seconds=3600)
    assert len(world.cluster.cancelled) == 3


def waits(world: World) -> list[str]:
    assert isinstance(world.store, MemoryStore)
    found = world.store.remarks_of([watch.key.text for watch in world.store.recent(100)])
    return [each.text for each in found if each.code.startswith("cap ")]


def test_a_large_stop_is_not_passed_over_for_ever_by_small_ones() -> None:
    """Small jobs of another owner fall each quarter of an hour; the large one's turn comes, and status says why not."""
    world = World(replace(RULES, caps=Caps(gpu_share=0.25), stale_s=1e6), gpus=1000)
    world.train("rest", 1003, gpus=20)
    fall(world, {"first": world.train("first", 1002, gpus=1, account="small")})
    large = world.train("large", 1001, gpus=8, account="big")
    fall(world, {"large": large})
    assert isinstance(world.store, MemoryStore)
    (row,) = [each for each in status_rows(world.store, world.store, 100) if each.job == large]
    assert row.why.startswith("waits: 1 GPUs were freed within the hour; 8 more would pass 25% of all in use; ")
    for number in range(10):
        fall(world, {f"s{number}": world.train(f"s{number}", 1002, gpus=1, account="small")})
        world.tick(seconds=900)
    assert (large, 0) in world.cluster.cancelled
    assert len(world.cluster.cancelled) > 5


def test_another_account_is_not_held_by_the_cap_of_the_first() -> None:
    world = world_with(replace(ROOMY, stops_per_account=1))
    fall(world, submit(world, 1) | submit(world, 1, "other", 1002, first=5))
    assert len(world.cluster.cancelled) == 2


def test_a_stop_that_has_begun_is_ended_though_the_cap_is_reached() -> None:
    """The signal is already the act: the cancel after its grace is no second stop."""
    world = world_with(replace(ROOMY, stops_per_account=1))
    job = world.train("r1", comment="evalstop_signal=USR1@2", account="lab")
    world.play(job, "r1", RISE_AND_FALL)
    world.tick(seconds=3)
    assert world.cluster.cancelled == [(job, 0)]


def test_a_cap_is_kept_over_a_restart_of_the_daemon() -> None:
    """Every tick of a World is one of a loop just started: the count lives in the store."""
    world = world_with(replace(ROOMY, stops=1))
    fall(world, submit(world, 2))
    for _ in range(5):
        world.tick(seconds=60)
    assert len(world.cluster.cancelled) == 1


def test_a_flood_of_falls_in_one_account_is_only_observed_and_others_are_stopped() -> None:
    world = world_with(replace(ROOMY, breaker_decisions=4))
    jobs = shared(world, 4)
    other = submit(world, 1, "honest", 1002, first=50)
    fall(world, jobs | other)

    assert [job for job, _ in world.cluster.cancelled] == list(other.values())
    assert {state for job, state in intents(world) if job in jobs.values()} == {State.ABANDONED}
    assert {text for kind, text in events(world) if kind == "abandoned"} == {"the job's rung is now observe"}
    assert [code for code, _ in remarks_on(world, SITE)] == ["breaker account:lab 1005"]
    fresh = submit(world, 1, first=90)
    fall(world, fresh)
    assert [job for job, _ in world.cluster.cancelled] == list(other.values())
    held = "the rule said stop for 4 jobs of one account, of 2 owners, within an hour: its jobs are only observed"
    assert said(world, "breaker") == [f"only observed while a breaker holds: {held}"] * 5


def test_the_sites_breaker_holds_everybody_and_its_reset_lets_go() -> None:
    world = world_with(Caps(gpu_share=1.0, breaker_decisions=2, breaker_accounts=2))
    fall(world, submit(world, 2, "a", 1001) | submit(world, 2, "b", 1002, first=10))
    late = submit(world, 1, "c", 1003, first=20)
    fall(world, late)
    assert world.cluster.cancelled == []
    owners = [owner_scope(1001, "a"), owner_scope(1002, "b")]
    assert [row.scope for row in rows(world) if row.holds] == [SITE, *owners]

    assert isinstance(world.store, MemoryStore)
    reset(world.store, SITE, "the eval set was broken and is mended", "admin", world.clock.time_s)
    assert [row.scope for row in rows(world) if row.holds] == owners
    fall(world, submit(world, 1, "d", 1004, first=30))
    assert len(world.cluster.cancelled) == 1


def test_a_breaker_lets_go_by_itself_after_its_time() -> None:
    world = world_with(replace(ROOMY, breaker_decisions=2, hold_s=5000.0))
    for job in submit_and_fall(world, 2):
        world.cluster.finish(job)
    world.tick(seconds=5000)
    fall(world, submit(world, 1, first=10))
    assert len(world.cluster.cancelled) == 1


def test_after_a_reset_the_jobs_that_tripped_it_are_stopped_one_by_one() -> None:
    world = world_with(replace(ROOMY, breaker_decisions=3, stops_per_account=1))
    submit_and_fall(world, 3)
    assert isinstance(world.store, MemoryStore)
    reset(world.store, owner_scope(1001, "lab"), "looked at, all true", "admin", world.clock.time_s)
    for hour in range(1, 4):
        world.tick(seconds=3600)
        world.tick()
        assert len(world.cluster.cancelled) == hour


def test_would_be_stops_trip_a_breaker_too() -> None:
    world = world_with(replace(ROOMY, breaker_decisions=2), rung=Rung.OBSERVE)
    fall(world, shared(world, 2))
    assert [row.scope for row in rows(world)] == [account_scope("lab")]


def test_where_the_site_itself_only_observes_the_owners_word_to_do_so_changes_nothing() -> None:
    world = world_with(replace(ROOMY, breaker_decisions=2), rung=Rung.OBSERVE)
    fall(world, submit(world, 2, comment="evalstop=observe"))
    assert [row.scope for row in rows(world)] == [owner_scope(1001, "lab")]


def test_after_the_owner_takes_back_his_word_his_stops_count() -> None:
    world = world_with(replace(ROOMY, breaker_decisions=2))
    jobs = submit(world, 3, comment="evalstop=observe")
    fall(world, jobs)
    for run_id, job in jobs.items():
        world.cluster.set_comment(job, f"mlflow_run={run_id}")
        world.evaluate(job, run_id, 1000, 0.1)
    world.tick()
    assert [row.scope for row in rows(world)] == [owner_scope(1001, "lab")]
    assert world.cluster.cancelled == []


def rows(world: World):  # type: ignore[no-untyped-def]
    assert isinstance(world.store, MemoryStore)
    return breaker_rows(world.store, world.clock.time_s)
