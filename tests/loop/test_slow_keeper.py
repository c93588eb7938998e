"""One owner's slow files: they cost him his own time, and neither strangers' checkpoints nor their stops."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from evalstopd.errors import Unavailable
from evalstopd.ports import PinPlace, PinReport
from tests.fakes.keeper import FakeKeeper
from tests.fakes.world import RISE_AND_FALL, RULES, World

TICK_S = 30.0
WAIT_S = TICK_S / 10
SLOW_S = 45.0
ALICE, BOB, CAROL = 1001, 1002, 1003


@dataclass(slots=True)
class SlowKeeper(FakeKeeper):
    """A keeper at whose client nobody waits for longer than `WAIT_S`; it goes on, one request of each owner at a time.

    `slow_s` is what a request takes by owner. `calls` are those that were put to it, by owner.
    """

    world: World | None = None
    slow_s: dict[int, float] = field(default_factory=dict)
    busy: dict[int, tuple[str, PinPlace, float]] = field(default_factory=dict)
    late: set[tuple[str, PinPlace]] = field(default_factory=set)
    calls: list[tuple[int, str]] = field(default_factory=list)

    def pin(self, place: PinPlace) -> PinReport:
        """Pin, as slowly as the owner's files are."""
        return self._served("pin", place, FakeKeeper.pin)

    def publish(self, place: PinPlace) -> PinReport:
        """Publish, likewise."""
        return self._served("publish", place, FakeKeeper.publish)

    def _served(self, verb: str, place: PinPlace, work: Callable[[FakeKeeper, PinPlace], PinReport]) -> PinReport:
        assert self.world is not None
        clock = self.world.clock
        self.calls.append((place.uid, verb))
        known = self.busy.get(place.uid)
        if known is not None and known[:2] != (verb, place):
            if known[2] > clock.time_s:
                raise Unavailable("at work on another request of this owner's")
            self.late.add(known[:2])
            known = None
        if (verb, place) not in self.late:
            done_s = known[2] if known is not None else self._started(verb, place)
            clock.time_s += max(0.0, min(WAIT_S, done_s - clock.time_s))
            if clock.time_s < done_s:
                raise Unavailable("still at work")
            self.busy.pop(place.uid, None)
        self.late.discard((verb, place))
        return work(self, place)

    def _started(self, verb: str, place: PinPlace) -> float:
        assert self.world is not None
        done_s = self.world.clock.time_s + self.slow_s.get(place.uid, 0.0)
        self.busy[place.uid] = (verb, place, done_s)
        return done_s


def slow_world(owners: tuple[int, ...] = (BOB,), seconds: float = SLOW_S, **rules: float) -> tuple[World, SlowKeeper]:
    world = World(replace(RULES, tick_s=TICK_S, **rules), gpus=800)  # type: ignore[arg-type]
    world.keeper = keeper = SlowKeeper(world=world, slow_s=dict.fromkeys(owners, seconds))
    return world, keeper


def passed(world: World) -> float:
    """Make one pass; return how long it took."""
    began_s = world.clock.time_s + TICK_S
    world.tick(TICK_S)
    return world.clock.time_s - began_s


def rise(world: World, jobs: dict[str, str], step: int, score: float) -> None:
    for run, job in jobs.items():
        world.evaluate(job, run, step, score)


def test_a_strangers_checkpoint_is_pinned_in_the_pass_in_which_five_slow_ones_are_asked_for() -> None:
    world, keeper = slow_world()
    bobs = {f"b{n}": world.train(f"b{n}", uid=BOB) for n in range(5)}
    mine = world.train("a", uid=ALICE)
    rise(world, bobs, 10, 0.5)
    world.evaluate(mine, "a", 10, 0.5)
    took_s = passed(world)

    assert {pin[0] for pin in keeper.pins} == {f"c-{mine}-1000"}
    assert took_s <= WAIT_S
    assert keeper.calls.count((BOB, "pin")) == 1


def test_what_is_slow_is_pinned_all_the_same_one_after_the_other() -> None:
    world, keeper = slow_world()
    bobs = {f"b{n}": world.train(f"b{n}", uid=BOB) for n in range(3)}
    rise(world, bobs, 10, 0.5)
    took_s = [passed(world) for _ in range(9)]

    assert len(keeper.pins) == 3
    assert max(took_s) <= 2 * WAIT_S


def test_no_pass_takes_longer_than_half_a_tick_and_a_request_although_open_stops_wait_for_slow_pins() -> None:
    """As many owners with slow files as the keeper serves, each with a stop that waits; a stranger's is done."""
    owners = tuple(range(1002, 1006))
    world, _ = slow_world(owners)
    theirs = {f"b{uid}": world.train(f"b{uid}", uid=uid) for uid in owners}
    mine = world.train("a", uid=ALICE)
    took_s = []
    for number, score in enumerate((*RISE_AND_FALL, 0.3, 0.2), 1):
        rise(world, theirs | {"a": mine}, number * 10, score)
        took_s.append(passed(world))

    assert max(took_s) <= TICK_S / 2 + WAIT_S
    assert (mine, 0) in world.cluster.cancelled


def test_a_slow_publish_is_asked_for_once_a_pass_and_taken_when_it_is_done() -> None:
    world, keeper = slow_world(seconds=0.0)
    job = world.train("b", uid=BOB)
    for number, score in enumerate(RISE_AND_FALL[:4], 1):
        world.evaluate(job, "b", number * 10, score)
        passed(world)
    keeper.slow_s[BOB] = SLOW_S
    world.evaluate(job, "b", 50, RISE_AND_FALL[4])
    took_s = [passed(world) for _ in range(3)]

    assert max(took_s) <= WAIT_S
    assert keeper.calls.count((BOB, "publish")) == 3
    assert world.cluster.cancelled == [(job, 0)]


def test_requests_a_little_below_the_limit_stop_at_the_owners_share() -> None:
    world, keeper = slow_world(seconds=2.5)
    bobs = {f"b{n}": world.train(f"b{n}", uid=BOB) for n in range(5)}
    carols = {f"c{n}": world.train(f"c{n}", uid=CAROL) for n in range(5)}
    rise(world, bobs | carols, 10, 0.5)
    passed(world)

    assert keeper.calls.count((BOB, "pin")) == 3
    assert keeper.calls.count((CAROL, "pin")) == 5


def test_a_site_that_polls_often_has_no_shorter_pins_for_it() -> None:
    """A request of the keeper takes longer than a tick: what is there is pinned in the pass all the same."""
    world = World(replace(RULES, tick_s=0.4), gpus=64)
    world.keeper = keeper = SlowKeeper(world=world, slow_s=dict.fromkeys((ALICE, BOB, CAROL), 0.5))
    for number, uid in enumerate((ALICE, ALICE, BOB, CAROL)):
        job = world.train(f"r{number}", uid)
        world.evaluate(job, f"r{number}", 10, 0.5)
    world.tick(0.4)

    assert len(keeper.pins) == 4
