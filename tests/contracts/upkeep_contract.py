"""What every store must do about jobs long over, whatever holds it: one class over memory, SQLite and PostgreSQL."""

from dataclasses import replace
from typing import Any, Protocol

import pytest

from evalstopd.core.intent import State
from evalstopd.core.model import JobKey
from evalstopd.core.watch import PinState
from evalstopd.ports import Accounts, Archive, Chain, Changes, Pulse, Pulses, Store, Upkeep
from evalstopd.report.audit.verify import verify
from tests.contracts import store_builders as make
from tests.contracts.store_builders import CLUSTER, ENDED, HOSTILE, key, point, watch

OLD_S, LIMIT_S = 1000.0, 5000.0


class AnyStore(Store, Archive, Accounts, Chain, Upkeep, Pulses, Protocol):
    """All ports in one."""


def over(of: JobKey, at_s: float = OLD_S, **changes: Any) -> Any:
    return watch(of, ending=ENDED, vanished_s=at_s, **changes)


def pinned(of: JobKey, step: int = 20, state: PinState = PinState.PINNED) -> Any:
    return make.pin(of, step, state=state, path=f"/o/.evalstop/x/step-{step}")


class UpkeepContract:
    @pytest.fixture
    def store(self) -> AnyStore:
        """Return an empty store of this program's version."""
        raise NotImplementedError

    # --- old pins

    def test_pins_of_jobs_long_over_are_found_the_oldest_first(self, store: AnyStore) -> None:
        late, early, young, running = (key(name) for name in "1234")
        watches = (over(late, 2000.0), over(early, 1000.0), over(young, LIMIT_S), watch(running))
        pins = (pinned(late), pinned(early, 30), pinned(early, 20), pinned(young), pinned(running))
        store.record(Changes(watches=watches, pins=pins))

        assert store.old_pins(CLUSTER, LIMIT_S, 10) == (pinned(early, 20), pinned(early, 30), pinned(late))
        assert store.old_pins(CLUSTER, LIMIT_S, 2) == (pinned(early, 20), pinned(early, 30))
        assert store.old_pins("another", LIMIT_S, 10) == ()

    @pytest.mark.parametrize("state", PinState)
    def test_only_what_is_on_a_disk_counts(self, store: AnyStore, state: PinState) -> None:
        store.record(Changes(watches=(over(key()),), pins=(pinned(key(), state=state),)))
        there = state in (PinState.PINNED, PinState.PUBLISHED, PinState.OUTDATED, PinState.STALE)

        assert len(store.old_pins(CLUSTER, LIMIT_S, 10)) == there

    @pytest.mark.parametrize("state", State)
    @pytest.mark.parametrize("begun", [{}, {"acted_s": 5.0}, {"cancel_tries": 1}])
    def test_what_a_stop_keeps_is_left_alone(self, store: AnyStore, state: State, begun: dict[str, Any]) -> None:
        """Only a stop that was given up before anything was asked of Slurm has not stopped the job."""
        store.record(
            Changes(watches=(over(key()),), pins=(pinned(key()),), intents=(make.intent(state=state, **begun),))
        )
        given_up = state in (State.VETOED, State.ABANDONED) and not begun

        assert len(store.old_pins(CLUSTER, LIMIT_S, 10)) == given_up

    # --- forgetting

    def test_jobs_long_over_are_forgotten_with_their_points(self, store: AnyStore) -> None:
        old, young, running = (key(name) for name in "123")
        watches = (over(old), over(young, LIMIT_S), watch(running))
        store.record(Changes(watches=watches, points=tuple((each.key, point()) for each in watches)))

        assert store.prune("another", LIMIT_S, 10) == 0
        assert store.prune(CLUSTER, LIMIT_S, 10) == 1
        assert store.prune(CLUSTER, LIMIT_S, 10) == 0
        assert store.find("1") == store.lives_of([old]) == ()
        assert store.points([old, young, running]) == {old: (), young: (point(),), running: (point(),)}
        assert {each.key for each in store.recent(10)} == {young, running}

    def test_so_many_at_a_time(self, store: AnyStore) -> None:
        store.record(Changes(watches=tuple(over(key(str(n)), float(n)) for n in range(5))))

        assert store.prune(CLUSTER, LIMIT_S, 2) == 2
        assert {each.key.job_id for each in store.recent(10)} == {"2", "3", "4"}

    @pytest.mark.parametrize("state", State)
    def test_what_was_decided_is_kept_with_its_points_and_the_chain_verifies(
        self, store: AnyStore, state: State
    ) -> None:
        decided, booked, plain = key("1"), key("2"), key("3")
        intent = make.intent(decided, state=state)
        watches = (over(decided), over(booked), over(plain))
        store.record(
            Changes(
                watches=watches,
                points=tuple((each.key, point()) for each in watches),
                intents=(intent,),
                events=(make.event(intent),),
                credits=(make.credit(intent),),
                would_be=(make.would_be(booked),),
                remarks=(make.remark(plain.text), make.remark("site")),
                bindings=(make.binding(plain),),
            )
        )

        assert store.prune(CLUSTER, LIMIT_S, 10) == 1
        assert store.points([decided, booked]) == {decided: (point(),), booked: (point(),)}
        assert store.intents_of([decided]) == (intent,)
        assert store.events_of([intent.id]) == (make.event(intent),)
        assert store.remarks_of([plain.text]) == (make.remark(plain.text),)
        assert store.holders(["run-1"])["run-1"].key == plain
        assert store.find("3") == ()
        found = verify(store)
        assert (found.good, found.forgotten) == (True, 1)

    def test_a_job_with_a_pin_on_the_disk_is_kept_until_the_pin_is_gone(self, store: AnyStore) -> None:
        store.record(Changes(watches=(over(key()),), pins=(pinned(key()),)))
        assert store.prune(CLUSTER, LIMIT_S, 10) == 0
        store.record(Changes(pins=(pinned(key(), state=PinState.DROPPED),)))

        assert store.prune(CLUSTER, LIMIT_S, 10) == 1
        assert store.pins_of([key()]) == ()
        assert verify(store).good

    def test_a_job_that_comes_again_under_the_same_key_is_watched_anew(self, store: AnyStore) -> None:
        store.record(Changes(watches=(over(key()),), points=((key(), point()),)))
        store.prune(CLUSTER, LIMIT_S, 10)
        store.record(Changes(watches=(watch(),), points=((key(), point(2)),)))

        assert store.book(CLUSTER).watches == (watch(),)
        assert store.points([key()]) == {key(): (point(2),)}
        assert verify(store).good

    # --- signs of life

    def test_the_last_sign_of_life_of_each_daemon_is_kept(self, store: AnyStore) -> None:
        first = Pulse("b", 1, 10.0, None, leads=False, version="1", digest="d", summary=HOSTILE)
        other, later = replace(first, name=HOSTILE), replace(first, pid=2, at_s=20.0, good_s=20.0, leads=True)
        for each in (first, other, later):
            store.note_pulse(each)

        assert set(store.pulses()) == {other, later}

    def test_a_daemon_unheard_of_for_a_week_is_forgotten(self, store: AnyStore) -> None:
        old = Pulse("a", 1, 10.0, 10.0, leads=False, version="1", digest="d", summary="", holder="a:1", ended=True)
        new = replace(old, name="b", at_s=10.0 + 7 * 86_400, holder="b:2", ended=False)
        store.note_pulse(old)
        store.note_pulse(new)
        assert store.pulses() == (old, new)
        store.note_pulse(replace(new, at_s=new.at_s + 1))
        assert store.pulses() == (replace(new, at_s=new.at_s + 1),)
