"""A running job that yields, through the loop: who is left alone, what is looked at again, killed at every effect."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from evalstopd.core.model import Phase, Rung
from evalstopd.core.policies import policy
from evalstopd.core.preempt import Preemption, PreemptRules, PreemptState
from evalstopd.loop import Loop, Stance, TickReport
from evalstopd.ports import Ports
from evalstopd.report.rows import status_rows
from evalstopd.store.memory import MemoryStore
from tests.fakes.cluster import FakeCluster
from tests.fakes.world import HEALTHY, RISE_AND_FALL, RULES, World
from tests.loop.test_crash import Fuse, Killed, fused

PREEMPT = PreemptRules(policy("srtf-est"), min_run_s=5.0, fresh_s=30.0)
WAITS = {"reason": "Resources", "time_limit_s": 600}


class Site:
    """Eight GPUs that alice's long job holds, whose checkpoints are pinned; bob's jobs wait."""

    def __init__(self, asked: PreemptRules | None = PREEMPT, rung: Rung = Rung.ENFORCE) -> None:
        self.asked = asked
        self.world = World(replace(RULES, rung=rung), gpus=8)
        self.cluster: FakeCluster = self.world.cluster
        self.long = self.train()

    def train(self, comment: str = "", **fields: object) -> str:
        """Start alice's long job."""
        return self.world.train("r1", comment=comment, time_limit_s=360_000, **fields)

    def submit(self, **fields: object) -> str:
        """Submit a short job of bob's, which waits for room."""
        return self.cluster.submit(1002, 8, **{**WAITS, **fields})

    def evaluate(self, scores: tuple[float, ...] = HEALTHY, first: int = 1, ports: Ports | None = None) -> None:
        """Let the long job log and save, a pass after each."""
        for number, score in enumerate(scores, first):
            self.world.evaluate(self.long, "r1", number * 10, score)
            self.tick(ports=ports)

    def tick(self, seconds: float = 1.0, ports: Ports | None = None) -> TickReport:
        self.world.clock.time_s += seconds
        stance = Stance(self.world.rules, "hash", "test", None, self.asked)
        return Loop(ports or self.world.ports(), stance).tick()

    @property
    def asked_for(self) -> tuple[Preemption, ...]:
        store = self.world.store
        assert isinstance(store, MemoryStore)
        return store.preemptions("c", 0.0)

    @property
    def states(self) -> list[PreemptState]:
        return [each.state for each in self.asked_for]

    def phase(self, job_id: str) -> Phase:
        return self.cluster.jobs[job_id].phase


def test_a_long_job_yields_to_a_short_one_and_its_owner_is_told() -> None:
    site = Site()
    site.evaluate()
    short = site.submit()
    report = site.tick()
    site.tick()

    assert report.counts["preempted"] == 1
    assert "1 preempted" in report.summary
    assert {row.job: row.state for row in status_rows(site.world.store, site.world.store, 9)}[site.long] == "preempted"
    assert (site.phase(site.long), site.phase(short)) == (Phase.PENDING, Phase.RUNNING)
    assert site.states == [PreemptState.DONE]
    assert site.cluster.put_backs == [(site.long, 0)]
    (message,) = [each for each in site.world.notifier.told if each.kind == "preempted"]
    assert message.user == "alice"
    assert message.text.startswith(f"requeued, so that job {short} can start on its 8 GPUs: srtf-est: ")


def test_it_goes_on_from_its_checkpoint_and_yields_again_as_often_as_the_budget_says() -> None:
    site = Site(replace(PREEMPT, per_job=2))
    for turn in range(4):
        site.evaluate(tuple(score + turn for score in HEALTHY), 1 + turn * len(HEALTHY))
        short = site.submit()
        site.tick()
        if site.phase(short) is not Phase.RUNNING:
            break
        site.cluster.finish(short)
        site.tick(130.0)
        site.cluster.start()
        site.tick()

    assert site.phase(site.long) is Phase.RUNNING
    assert site.cluster.put_backs == [(site.long, 0), (site.long, 1)]


def _no_checkpoint(site: Site) -> None:
    site.world.keeper.down = True
    site.evaluate()


def _fixed(site: Site) -> None:
    site.evaluate()
    site.cluster.jobs[site.long] = replace(site.cluster.jobs[site.long], may_requeue=False)


def _veto(site: Site) -> None:
    site.evaluate()
    job = site.cluster.jobs[site.long]
    site.cluster.jobs[site.long] = replace(job, comment=f"{job.comment} evalstop=keep")


def _stale(site: Site) -> None:
    site.evaluate()
    site.tick(31.0)


def _young(site: Site) -> None:
    site.evaluate(HEALTHY[:2])


def _damaged(site: Site) -> None:
    site.evaluate()
    site.world.keeper.damaged |= site.world.keeper.pins


def _killed(site: Site) -> None:
    site.evaluate()
    site.world.switch.on = True


def _history(site: Site) -> None:
    """What the run held when it was first read was evaluated long ago, whenever it arrived here."""
    site.world.clock.time_s += 1000
    for number, score in enumerate(HEALTHY, 1):
        site.world.tracker.log("r1", number * 10, score, timestamp_ms=1_050_000)
        site.world.keeper.save("/home/alice/out-r1", number * 10, at_s=1050.0)
    site.tick()
    site.tick()


@pytest.mark.parametrize(
    "story",
    [_no_checkpoint, _fixed, _veto, _stale, _young, _damaged, _killed, _history],
    ids=lambda story: story.__name__,
)
def test_left_alone(story: Callable[[Site], None]) -> None:
    site = Site()
    story(site)
    short = site.submit()
    site.tick()
    site.tick()

    assert (site.phase(site.long), site.phase(short)) == (Phase.RUNNING, Phase.PENDING)
    assert site.asked_for == ()
    assert "put_back" not in site.cluster.calls


@pytest.mark.parametrize(
    "fields",
    [
        {"reason": "Priority"},
        {"held": True},
        {"time_limit_s": 359_990},
        {"time_limit_s": None},
        {"eligible_s": None},
        {"gpus": 9},
    ],
)
def test_who_could_not_start_or_would_not_gain_has_nobody_yield(fields: dict[str, object]) -> None:
    site = Site()
    site.evaluate()
    gpus = fields.pop("gpus", 8)
    site.cluster.submit(1002, gpus, **{**WAITS, **fields})  # type: ignore[arg-type]
    site.tick()

    assert site.asked_for == ()


def test_off_by_default_and_on_the_observe_rung() -> None:
    for site in (Site(asked=None), Site(rung=Rung.OBSERVE)):
        site.evaluate()
        site.submit()
        site.tick()

        assert site.asked_for == ()


def test_a_job_that_is_to_be_stopped_does_not_yield_as_well() -> None:
    site = Site()
    short = site.submit()
    site.evaluate(RISE_AND_FALL)

    assert site.asked_for == ()
    assert site.phase(short) is Phase.RUNNING
    assert site.cluster.cancelled == [(site.long, 0)]


def test_a_refusal_of_slurm_is_remembered_for_this_life() -> None:
    """Its requeue flag was changed between the listing and the act."""
    site = Site()
    site.evaluate()
    site.cluster.fixed.add(site.long)
    site.submit()
    for _ in range(3):
        site.tick()

    assert site.states == [PreemptState.REFUSED]
    assert site.cluster.calls.count("put_back") == 1
    assert site.phase(site.long) is Phase.RUNNING


def test_what_did_not_come_about_is_asked_for_a_few_times_then_given_up() -> None:
    site = Site()
    site.evaluate()
    site.cluster.deaf = True
    site.submit()
    for _ in range(6):
        site.tick()

    assert site.states == [PreemptState.VOID]
    assert site.cluster.calls.count("put_back") == 3


def test_a_veto_between_the_pass_and_its_last_look_wins() -> None:
    site = Site()
    site.evaluate()
    site.submit()
    ports = site.world.ports()

    class Late:
        def __getattr__(self, name: str):  # type: ignore[no-untyped-def]
            return getattr(ports.cluster, name)

        def look(self, job_ids):  # type: ignore[no-untyped-def]
            job = site.cluster.jobs[site.long]
            site.cluster.jobs[site.long] = replace(job, comment="evalstop=keep")
            return ports.cluster.look(job_ids)

    site.tick(ports=replace(ports, cluster=Late()))  # type: ignore[arg-type]

    assert site.asked_for == ()
    assert site.phase(site.long) is Phase.RUNNING


def test_a_daemon_that_died_before_the_request_asks_no_more_once_the_heir_has_gone() -> None:
    site = Site()
    site.evaluate()
    short = site.submit()
    ports = site.world.ports()

    class Fatal:
        def __getattr__(self, name: str):  # type: ignore[no-untyped-def]
            return getattr(ports.cluster, name)

        def put_back(self, job_id: str) -> None:
            raise Killed

    with pytest.raises(Killed):
        site.tick(ports=replace(ports, cluster=Fatal()))  # type: ignore[arg-type]
    assert site.states == [PreemptState.ASKED]
    site.cluster.jobs.pop(short)
    site.tick()

    assert site.states == [PreemptState.VOID]
    assert site.phase(site.long) is Phase.RUNNING


def live(fuse: Fuse) -> tuple[Site, str]:
    site = Site()
    ports = fused(site.world, fuse)
    short = ""
    for number, score in enumerate((*HEALTHY, 0.8, 0.85, 0.9), 1):
        site.world.evaluate(site.long, "r1", number * 10, score)
        if number == 7:
            short = site.submit()
        for _ in range(2):
            try:
                site.tick(0.5, ports)
            except Killed:
                site.tick(0.0, ports)
    return site, short


def test_killed_at_any_effect_the_job_yields_once_and_is_told_once_at_most() -> None:
    undisturbed = Fuse(0, after=False)
    site, short = live(undisturbed)
    wanted = (site.states, site.cluster.put_backs, site.phase(site.long), site.phase(short))
    assert wanted == ([PreemptState.DONE], [(site.long, 0)], Phase.PENDING, Phase.RUNNING)
    assert {"record", "put_back", "tell"} <= set(undisturbed.names)
    for at in range(1, undisturbed.count + 1):
        for after in (False, True):
            fuse = Fuse(at, after=after)
            site, short = live(fuse)
            where = f"killed {'after' if after else 'before'} effect {at}"

            assert fuse.blown, where
            assert (site.states, site.cluster.put_backs, site.phase(site.long), site.phase(short)) == wanted, where
            assert len([each for each in site.world.notifier.told if each.kind == "preempted"]) <= 1, where
