"""A lease in one process: when it is over here, and what is refused then."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from evalstopd import ports
from evalstopd.core.intent import State
from evalstopd.core.shift import Steer
from evalstopd.errors import Deposed, Unavailable
from evalstopd.lead import fence
from evalstopd.lead.fence import fenced
from evalstopd.lead.lead import Lead
from evalstopd.lead.seat import LeaseSeat
from evalstopd.loop import Loop, Stance
from evalstopd.ports import Lease, PinPlace
from evalstopd.service import Service
from evalstopd.settings import load_settings
from evalstopd.store.memory import MemoryStore
from tests.fakes.world import RISE_AND_FALL, RULES, World

ACT_S = 2.0
PLACE = PinPlace(1001, "/out", "p", 1)


@dataclass
class SlowStore(MemoryStore):
    """A store whose answers take their time, and that can be cut off."""

    clock: list[float] = field(default_factory=lambda: [0.0])
    takes_s: float = 0.0
    cut: bool = False
    leading_by: dict[str, Lease] = field(default_factory=dict)
    claims: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def take(self, name: str, holder: str, for_s: float) -> Lease:
        self.clock[0] += self.takes_s
        if self.cut:
            raise Unavailable("cut off")
        return self.leading_by.get(name) or super().take(name, holder, for_s)

    def claim(self, name: str, epoch: int, cluster: str) -> None:
        self.claims.append((name, epoch))
        super().claim(name, epoch, cluster)


def lead_of(store: SlowStore) -> Lead:
    return Lead(store, "pair", "me", 10.0, lambda: store.clock[0])


def test_a_lease_counts_from_before_it_was_asked_for() -> None:
    """The store's time starts later: here it is over first."""
    store = SlowStore(takes_s=4.0)
    lead = lead_of(store)

    assert lead.beat()
    store.clock[0] = 9.9
    assert lead.leads
    store.clock[0] = 10.0
    assert not lead.leads


def test_who_still_waits_for_an_answer_when_the_lease_is_over_does_not_say_that_all_is_well() -> None:
    """A store that hangs has not failed yet: neither a leader nor who stands by may go on the last answer for ever."""
    for holder in ("me", "another"):
        store = SlowStore()
        if holder == "another":
            store.leading_by["pair"] = Lease(holder, 1, 10.0)
        lead = lead_of(store)
        lead.beat()
        seat = LeaseSeat(lead)
        store.clock[0] = 9.9
        assert (seat.known, seat.said.partition(" ")[0]) == (True, "has" if holder == "me" else "stands")
        store.clock[0] = 10.0

        assert (seat.ours, seat.known) == (False, False)
        assert seat.said == "stands aside: the store has not answered for 10 s, so who leads is not known"
        lead.beat()
        assert seat.known


def test_who_does_not_hear_from_the_store_leads_until_the_lease_is_over_and_no_longer() -> None:
    store = SlowStore()
    lead = lead_of(store)
    lead.beat()
    store.cut = True
    store.clock[0] = 9.0
    assert not lead.beat()
    assert lead.leads
    assert not lead.known
    store.clock[0] = 10.5
    with pytest.raises(Deposed):
        lead.epoch()
    store.cut = False

    assert lead.beat()
    assert lead.epoch() == 1


def test_an_act_needs_a_lease_that_outlasts_it() -> None:
    store = SlowStore()
    lead = lead_of(store)
    lead.beat()
    store.clock[0] = 7.5
    assert lead.epoch(ACT_S) == 1
    store.clock[0] = 8.5
    assert lead.epoch() == 1
    with pytest.raises(Deposed):
        lead.epoch(ACT_S)


def test_who_resigns_leads_no_more_and_a_broken_store_does_not_hinder_that() -> None:
    store = SlowStore()
    lead = lead_of(store)
    lead.beat()
    lead.resign()

    assert not lead.leads
    lead.resign()


def world_of_pair() -> tuple[World, SlowStore]:
    store = SlowStore()
    return World(store=store), store


def passes(world: World, lead: Lead) -> Service:
    loop = Loop(fenced(world.ports(), lead, ACT_S), Stance(RULES, "hash", "test"))
    settings = load_settings(None, {})
    return Service(lambda: settings, lambda _: loop, settings, LeaseSeat(lead), lead.now_s)


def play(world: World, each: Service, run_id: str = "r1") -> str:
    job = world.train(run_id)
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.clock.time_s += 1.0
        world.evaluate(job, run_id, number * 10, score)
        each.tick()
    return job


def test_the_leader_does_all_that_a_lone_daemon_does() -> None:
    world, store = world_of_pair()
    lead = lead_of(store)
    lead.beat()
    play(world, passes(world, lead))

    assert world.cluster.cancelled == [("1", 0)]


def test_who_stands_by_asks_nobody_and_does_nothing() -> None:
    world, store = world_of_pair()
    store.take("pair", "other", 600.0)
    lead = lead_of(store)
    lead.beat()
    each = passes(world, lead)
    play(world, each)
    report = each.tick()

    assert world.cluster.calls == []
    assert store.recent(10) == ()
    assert report.good
    assert report.summary == "stands by: 'other' leads, epoch 1"
    assert report.counts == Counter()


def test_of_two_lease_names_for_one_cluster_one_leads_and_the_other_touches_nothing_and_says_so() -> None:
    """Each has the lease that it asked for: without more both would act on the same job."""
    world, store = world_of_pair()
    first = Lead(store, "one", "a", 10.0, lambda: store.clock[0])
    second = Lead(store, "two", "b", 10.0, lambda: store.clock[0])
    for lead in (first, second):
        lead.beat()
    passes(world, first).tick()
    play(world, passes(world, second))
    report = passes(world, second).tick()

    assert world.cluster.cancelled == []
    assert store.points([each.key for each in store.recent(10)]) == {}
    assert not report.good
    assert "under the lease 'one' 'a' leads the cluster" in report.summary
    assert (first.said, second.said) == ("leads the cluster 'c', epoch 1", "has the lease 'two', epoch 1")
    first.resign()
    play(world, passes(world, second), "r2")
    assert world.cluster.cancelled == [("2", 0)]


def waiting_for(led: str, cluster: Callable[[], str]) -> Service:
    """Return who stands by on a store on which another process leads a cluster under the same lease."""
    store = SlowStore(leading_by={"pair": Lease("other", 1, 10.0, led)})
    lead = lead_of(store)
    lead.beat()
    service = passes(World(store=store), lead)
    service.cluster = cluster
    return service


def test_who_stands_by_for_the_leader_of_another_cluster_says_that_its_own_is_watched_by_nobody() -> None:
    asked = []
    service = waiting_for("evt4", lambda: asked.append(1) or "evt4b")  # type: ignore[func-returns-value]
    reports = [service.tick() for _ in range(3)]

    assert [each.good for each in reports] == [False] * 3
    (said,) = {each.summary for each in reports}
    assert said.startswith("stands by, and nobody watches the cluster 'evt4b' under the lease 'evalstopd', which leads")
    assert said.endswith("the cluster 'evt4': give each cluster a store.lease of its own")
    assert asked == [1], "Slurm is asked once what its cluster is called"


def silent() -> str:
    raise Unavailable("slurmctld is down")


@pytest.mark.parametrize(("led", "cluster"), [("evt4", lambda: "evt4"), ("", lambda: "evt4b"), ("evt4", silent)])
def test_who_stands_by_for_its_own_cluster_or_cannot_tell_is_well(led: str, cluster: Callable[[], str]) -> None:
    report = waiting_for(led, cluster).tick()

    assert report.good
    assert report.summary == "stands by: 'other' leads, epoch 1"


def test_which_cluster_is_led_is_asked_of_the_store_once_in_an_epoch() -> None:
    world, store = world_of_pair()
    lead = lead_of(store)
    lead.beat()
    for _ in range(3):
        passes(world, lead).tick()

    assert store.claims == [("pair", 1)]


def test_who_cannot_ask_the_store_is_not_well() -> None:
    world, store = world_of_pair()
    store.cut = True
    lead = lead_of(store)
    lead.beat()

    assert not passes(world, lead).tick().good


@pytest.mark.parametrize("deposed_at", ["look", "cancel"])
def test_a_leader_deposed_in_the_midst_of_a_stop_does_not_act_and_writes_nothing_more(deposed_at: str) -> None:
    """Between the last look and the act, or at the act itself: the next leader finds the stop as it was recorded."""
    world, store = world_of_pair()
    lead = lead_of(store)
    lead.beat()
    cluster = Hook(world.cluster, deposed_at, lambda: depose(store))
    loop = Loop(fenced(ports_with(world, cluster), lead, ACT_S), Stance(RULES, "hash", "test"))
    job = world.train("r1")
    reports = []
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.clock.time_s += 1.0
        world.evaluate(job, "r1", number * 10, score)
        reports.append(loop.tick())
    stops = store.intents_of([each.key for each in store.recent(10)])

    assert cluster.called
    assert [each.state for each in stops] == [State.PROMOTED]
    assert world.cluster.cancelled == ([] if deposed_at == "look" else [("1", 0)])
    assert any("nothing is" in trouble for report in reports for trouble in report.troubles)


class Hook:
    """A cluster at one of whose calls something happens just before."""

    def __init__(self, cluster: object, at: str, what: Callable[[], None]) -> None:
        self._cluster, self._at, self._what, self.called = cluster, at, what, False

    def __getattr__(self, name: str):  # type: ignore[no-untyped-def]
        if name == self._at:
            self.called = True
            self._what()
        return getattr(self._cluster, name)


def depose(store: SlowStore) -> None:
    """Let the lease end unseen, as a pause of the process does, and another take it."""
    store.clock[0] += 60.0
    held = store._leases.kept["pair"]
    if held.holder == "me":
        store._leases.kept["pair"] = type(held)("other", held.epoch + 1, held.until_s + 600.0)


def ports_with(world: World, cluster: object):  # type: ignore[no-untyped-def]
    return replace(world.ports(), cluster=cluster)


@pytest.mark.parametrize("verb", ["cancel", "requeue_hold", "put_back", "release", "signal", "set_comment", "steer"])
def test_every_act_on_slurm_asks_for_the_lease(verb: str) -> None:
    world, store = world_of_pair()
    guarded = fenced(world.ports(), lead_of(store), ACT_S)
    given = {"cancel": (["1"],), "signal": ("1", "USR1"), "set_comment": ("1", "x"), "steer": ([Steer("1")],)}.get(
        verb, ("1",)
    )
    with pytest.raises(Deposed):
        getattr(guarded.cluster, verb)(*given)

    assert world.cluster.calls == []


@pytest.mark.parametrize(
    "act",
    [
        lambda of: of.keeper.pin(PLACE),
        lambda of: of.keeper.publish(PLACE),
        lambda of: of.keeper.drop(PLACE),
        lambda of: of.runs.tag("r1", {}),
        lambda of: of.runs.mark_killed("r1"),
    ],
)
def test_files_and_runs_are_the_leaders_alone(act) -> None:  # type: ignore[no-untyped-def]
    world, store = world_of_pair()
    with pytest.raises(Deposed):
        act(fenced(world.ports(), lead_of(store), ACT_S))

    assert world.tracker.writes == []


def test_no_verb_of_a_port_goes_past_the_fence() -> None:
    """A verb that a port gets later must be thought of here: the fences name each of them."""
    pairs = (
        (ports.Cluster, fence.FencedCluster),
        (ports.Keeper, fence.FencedKeeper),
        (ports.RunWriter, fence.FencedRuns),
        (ports.Store, fence.FencedStore),
    )
    for port, kind in pairs:
        assert {name for name in vars(port) if not name.startswith("_")} <= set(vars(kind))
