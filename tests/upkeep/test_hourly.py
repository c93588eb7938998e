"""Upkeep beside the passes: pins that nobody needs go, jobs long over are forgotten, and nothing else."""

from collections import Counter
from dataclasses import replace

import pytest

from evalstopd.core.watch import Pin, PinState
from evalstopd.errors import CheckpointFailed, Rejected
from evalstopd.loop import Loop, Stance, TickReport
from evalstopd.ports import PinPlace
from evalstopd.settings import Settings, load_settings
from evalstopd.store.memory import MemoryStore
from evalstopd.upkeep.hourly import DAY_S, HOUR_S, Hourly
from evalstopd.upkeep.pins import place_of
from tests.contracts.store_builders import pin
from tests.fakes.keeper import FakeKeeper
from tests.fakes.world import HEALTHY, RISE_AND_FALL, RULES, World

GOOD = TickReport(good=True, counts=Counter(), troubles=(), cluster="c")


class PathKeeper(FakeKeeper):
    """A keeper that tells paths as the real one does, and keeps what it was asked to drop."""

    asked: list[PinPlace]
    fault: Exception | None

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.fault = [], None

    def _report(self, place: PinPlace):  # type: ignore[no-untyped-def]
        return replace(super()._report(place), path=f"/home/alice/.evalstop/{place.pin}/step-{place.step}")

    def drop(self, place: PinPlace) -> None:
        self.asked.append(place)
        if self.fault is not None:
            raise self.fault
        super().drop(place)


class Kept:
    """A world with a job that ended, and the upkeep over it."""

    def __init__(self, scores: tuple[float, ...] = HEALTHY, **settings: object) -> None:
        self.store, self.keeper = MemoryStore(), PathKeeper()
        self.world = World(store=self.store)
        self.world.keeper = self.keeper
        self.settings: Settings = load_settings(None, {})
        job = self.world.train("r1")
        self.world.play(job, "r1", scores)
        if scores is HEALTHY:
            self.world.cluster.finish(job)
        for _ in range(3):
            self.world.tick()
        self.loop = Loop(self.world.ports(), Stance(RULES, "hash", "test"))
        self.hourly = Hourly(self.store, lambda: self.settings, lambda: self.loop)
        self.keeper.asked.clear()

    def set(self, pin_keep_days: float = 30.0, keep_days: float = 0.0) -> None:
        rules = self.settings.rules.model_copy(update={"pin_keep_days": pin_keep_days})
        store = self.settings.store.model_copy(update={"keep_days": keep_days})
        self.settings = self.settings.model_copy(update={"rules": rules, "store": store})

    def after(self, days: float, report: TickReport = GOOD, *, leads: bool = True) -> None:
        self.world.clock.time_s += days * DAY_S
        self.hourly(report, 0.0, leads)

    def pins(self) -> list[PinState]:
        return [each.state for each in self.store.pins_of([watch.key for watch in self.store.recent(5)])]

    def said(self) -> list[str]:
        found = self.store.remarks_of([watch.key.text for watch in self.store.recent(5)])
        return [each.text for each in found if each.code == "pins-dropped"]


def test_pins_of_a_job_that_was_not_stopped_go_after_their_time_and_the_book_says_so() -> None:
    kept = Kept()
    assert set(kept.pins()) == {PinState.PINNED, PinState.DROPPED}
    kept.after(29.0)
    assert not kept.keeper.asked
    kept.after(1.1)

    assert set(kept.pins()) == {PinState.DROPPED}
    assert kept.keeper.pins == set()
    assert kept.said() == ["pins of a job that ended long ago and was not stopped were dropped: steps 50, 60, 70"]


def test_pins_of_a_stopped_job_stay_for_good() -> None:
    kept = Kept(RISE_AND_FALL)
    assert PinState.PUBLISHED in kept.pins()
    kept.after(10_000.0)

    assert not kept.keeper.asked
    assert PinState.PUBLISHED in kept.pins()


def test_zero_days_keep_everything() -> None:
    kept = Kept()
    kept.set(pin_keep_days=0.0)
    kept.after(10_000.0)

    assert not kept.keeper.asked
    assert len(kept.store.recent(5)) == 1


def test_jobs_long_over_are_forgotten_once_their_pins_are_gone() -> None:
    kept = Kept()
    kept.set(keep_days=60.0)
    kept.after(59.0)
    kept.after(2.0)

    assert kept.store.recent(5) == ()


def test_a_stopped_job_is_never_forgotten() -> None:
    kept = Kept(RISE_AND_FALL)
    kept.set(keep_days=1.0)
    kept.after(1000.0)
    key = kept.store.recent(5)[0].key

    assert len(kept.store.points([key])[key]) >= 5


@pytest.mark.parametrize(
    ("report", "leads"),
    [(GOOD, False), (replace(GOOD, good=False), True), (replace(GOOD, instead="stands by", cluster=""), True)],
)
def test_only_the_leader_keeps_house_and_only_after_a_good_pass(report: TickReport, leads: bool) -> None:
    kept = Kept()
    kept.after(100.0, report, leads=leads)

    assert not kept.keeper.asked


def test_the_kill_switch_holds_for_upkeep() -> None:
    kept = Kept()
    kept.world.switch.on = True
    kept.after(100.0)

    assert not kept.keeper.asked


def test_it_is_done_once_an_hour() -> None:
    kept = Kept()
    kept.after(1.0)
    kept.set(pin_keep_days=0.5)
    kept.after(0.9 * HOUR_S / DAY_S)
    assert not kept.keeper.asked
    kept.after(0.2 * HOUR_S / DAY_S)

    assert kept.keeper.asked


def test_a_keeper_that_is_away_is_asked_again_in_an_hour() -> None:
    kept = Kept()
    kept.keeper.down = True
    kept.after(100.0)
    assert PinState.PINNED in kept.pins()
    kept.keeper.down = False
    kept.after(1.0)

    assert set(kept.pins()) == {PinState.DROPPED}


@pytest.mark.parametrize(("fault", "hours"), [(Rejected("not as pinned"), 1), (CheckpointFailed("timed out"), 3)])
def test_a_pin_that_cannot_be_dropped_is_given_up(fault: Exception, hours: int) -> None:
    kept = Kept()
    kept.keeper.fault = fault
    for _ in range(hours + 3):
        kept.after(100.0)

    assert set(kept.pins()) == {PinState.LOST, PinState.DROPPED}
    assert len(kept.keeper.asked) == 3 * hours
    assert kept.said() == []


@pytest.mark.parametrize("path", ["", "/home/alice/step-20", "home/.evalstop/x/step-20", "/h/.evalstop/x/step-21"])
def test_a_path_that_the_keeper_never_made_is_left_alone(path: str) -> None:
    assert place_of(replace(pin(step=20), path=path)) is None


def test_a_pins_place_follows_from_its_path() -> None:
    made: Pin = replace(pin(step=20), path="/home/alice/.evalstop/c-1-2/step-20")

    assert place_of(made) == PinPlace(1001, "/home/alice/.evalstop", "c-1-2", 20)
