"""What every store must do, whatever holds it: one class, run over memory, SQLite and PostgreSQL."""

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from itertools import count
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalstopd.core.binding import Binding
from evalstopd.core.caps import BreakerTurn, Decision, Turn
from evalstopd.core.chain import Entry, extend
from evalstopd.core.intent import CLOSED, TRANSITIONS, IntentEvent, State
from evalstopd.core.model import JobKey, Life, Point, Rung
from evalstopd.core.preempt import Preemption, PreemptState
from evalstopd.core.shift import Shift, ShiftState
from evalstopd.core.watch import PinState, Remark, lived
from evalstopd.errors import Rejected
from evalstopd.ports import Accounts, Archive, Book, Chain, Changes, Span, Store
from evalstopd.report.audit.verify import verify
from tests.contracts import store_builders as make
from tests.contracts.store_builders import CLUSTER, ENDED, HOSTILE, key, point, watch


class AnyStore(Store, Archive, Accounts, Chain, Protocol):
    """All ports of a store in one."""


Fresh = Callable[[JobKey], JobKey]
# One store serves all examples of a test: each example reads back only what it wrote.
edges = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


class StoreContract:
    @pytest.fixture
    def store(self) -> Iterator[AnyStore]:
        """Yield an empty store of this program's version."""
        raise NotImplementedError

    # --- what is written is read back, to the bit

    def test_is_empty_at_first(self, store: AnyStore) -> None:
        assert store.book(CLUSTER) == Book()
        assert store.points([key()]) == {key(): ()}
        assert store.recent(5) == store.find("7") == store.intents_of([key()]) == store.pins_of([key()]) == ()
        assert store.head() is None
        assert store.held(0, 5) == store.unsealed(5) == ()

    def test_takes_empty_changes(self, store: AnyStore) -> None:
        store.record(Changes())

        assert store.book(CLUSTER) == Book()

    @pytest.fixture
    def fresh(self) -> Callable[[JobKey], JobKey]:
        """Return what makes a key one that no example had before."""
        numbers = count()
        return lambda owner: replace(owner, cluster=f"{owner.cluster}{next(numbers)}")

    @edges
    @given(each=make.watches)
    def test_keeps_any_watch(self, store: AnyStore, fresh: Fresh, each: Any) -> None:
        each = replace(each, key=fresh(each.key))
        store.record(Changes(watches=(each,)))

        assert repr([kept for kept in store.find(each.key.job_id) if kept.key == each.key]) == repr([each])

    @edges
    @given(owner=make.keys, each=make.points)
    def test_keeps_any_point(self, store: AnyStore, fresh: Fresh, owner: JobKey, each: Any) -> None:
        owner = fresh(owner)
        store.record(Changes(points=((owner, each),)))

        assert repr(store.points([owner])) == repr({owner: (each,)})

    @edges
    @given(each=make.pins)
    def test_keeps_any_pin(self, store: AnyStore, fresh: Fresh, each: Any) -> None:
        each = replace(each, key=fresh(each.key))
        store.record(Changes(pins=(each,)))

        assert repr(store.pins_of([each.key])) == repr((each,))

    @edges
    @given(each=make.intents)
    def test_keeps_any_intent(self, store: AnyStore, fresh: Fresh, each: Any) -> None:
        each = replace(each, key=fresh(each.key))
        store.record(Changes(intents=(each,)))

        assert repr(store.intents_of([each.key])) == repr((each,))

    @edges
    @given(seq=make.whole, at_s=make.times, kind=make.texts, text=make.texts)
    def test_keeps_any_event(self, store: AnyStore, fresh: Fresh, seq: int, at_s: float, kind: str, text: str) -> None:
        decided = make.intent(fresh(key()))
        each = IntentEvent(decided.id, seq, at_s, kind, text)
        store.record(Changes(intents=(decided,), events=(each,)))

        assert store.events_of([decided.id]) == (each,)

    @edges
    @given(changes=make.credits_differ)
    def test_keeps_any_credit(self, store: AnyStore, fresh: Fresh, changes: dict[str, Any]) -> None:
        decided = make.intent(fresh(key()))
        each = make.credit(decided, **changes)
        store.record(Changes(intents=(decided,), credits=(each,)))

        assert store.credits_of([decided.key]) == (each,)

    def test_an_intent_is_credited_once(self, store: AnyStore) -> None:
        one, other = make.intent(key("1")), make.intent(key("2"))
        first, again = make.credit(one, at_s=1.0), make.credit(one, at_s=2.0, gpu_hours=99.0)
        store.record(Changes(intents=(one, other), credits=(first, again)))
        store.record(Changes(credits=(again, make.credit(other, at_s=3.0))))

        assert store.credits_of([one.key]) == (first,)
        assert store.credits_of([one.key, other.key]) == (make.credit(other, at_s=3.0), first)
        assert store.credits_of([key("3")]) == ()

    def test_it_tells_the_stops_that_were_done_to_jobs_of_an_id(self, store: AnyStore) -> None:
        done = [make.intent(key("1", submitted_s=n), state=state, created_s=float(n)) for n, state in enumerate(State)]
        elsewhere = make.intent(key("1", cluster="beta"), state=State.CONFIRMED)
        store.record(Changes(intents=(*done, elsewhere, make.intent(key("2"), state=State.CONFIRMED))))
        stopped = [each for each in reversed(done) if each.state in (State.HELD, State.CONFIRMED, State.UNDONE)]

        assert store.stops_of(CLUSTER, ["1", "3"]) == tuple(stopped)
        assert store.stops_of(CLUSTER, []) == ()

    @edges
    @given(each=make.would_bes)
    def test_keeps_any_would_be_stop(self, store: AnyStore, fresh: Fresh, each: Any) -> None:
        each = replace(each, key=fresh(each.key))
        store.record(Changes(would_be=(each,)))

        assert repr(store.would_be_of([each.key])) == repr((each,))

    @edges
    @given(each=make.remarks)
    def test_keeps_any_remark(self, store: AnyStore, each: Remark) -> None:
        store.record(Changes(remarks=(each,)))

        assert each in store.remarks_of([each.subject])

    @edges
    @given(owner=make.keys, run_id=make.texts)
    def test_keeps_any_binding(self, store: AnyStore, owner: JobKey, run_id: str) -> None:
        store.record(Changes(bindings=(make.binding(owner, run_id),)))

        assert store.holders([run_id]) == {run_id: make.binding(owner, run_id)}

    @edges
    @given(one=make.texts, other=make.texts)
    def test_keeps_keys_apart_that_differ_in_one_byte(self, store: AnyStore, one: str, other: str) -> None:
        subjects = {f"1{one}", f"1{other}", "1\\u0000", "1\x00", "1\\\\u0000"}
        store.record(Changes(remarks=tuple(make.remark(each, code=each) for each in subjects)))

        for each in subjects:
            assert {remark.code for remark in store.remarks_of([each])} == {each}

    # --- the book

    def test_book_has_the_watches_without_an_ending(self, store: AnyStore) -> None:
        live, over = watch(key("1")), watch(key("2"), ending=ENDED)
        elsewhere = watch(key("3", cluster="beta"))
        store.record(Changes(watches=(over, live, elsewhere)))

        assert store.book(CLUSTER).watches == (live,)
        assert store.book("beta").watches == (elsewhere,)
        assert store.book("gamma").watches == ()

    def test_a_watch_leaves_the_book_when_its_ending_is_known_and_returns_with_a_new_life(
        self, store: AnyStore
    ) -> None:
        store.record(Changes(watches=(watch(),)))
        store.record(Changes(watches=(watch(ending=ENDED),)))
        over = store.book(CLUSTER).watches
        store.record(Changes(watches=(watch(life=make.life(1)),)))

        assert over == ()
        assert store.book(CLUSTER).watches == (watch(life=make.life(1)),)

    def test_a_watch_replaces_the_one_of_the_same_job(self, store: AnyStore) -> None:
        store.record(Changes(watches=(watch(declines=1),)))
        store.record(Changes(watches=(watch(declines=2, nodes=("n1", "n2"), gpus=8),)))

        assert store.book(CLUSTER).watches == store.find("7") == (watch(declines=2, nodes=("n1", "n2"), gpus=8),)

    def test_jobs_that_share_an_id_are_kept_apart(self, store: AnyStore) -> None:
        older, newer = watch(key(submitted_s=1), first_s=1.0), watch(key(submitted_s=2), first_s=2.0)
        store.record(Changes(watches=(older, newer)))

        assert store.find("7") == (newer, older)
        assert store.find("70") == ()

    def test_book_has_the_pins_of_live_jobs_but_the_dropped_ones(self, store: AnyStore) -> None:
        kept = tuple(make.pin(key("1"), step, state=PinState.PINNED) for step in (10, 20))
        dropped = make.pin(key("1"), 30, state=PinState.DROPPED)
        of_ended, of_nobody = make.pin(key("2")), make.pin(key("3"))
        watches = (watch(key("1")), watch(key("2"), ending=ENDED))
        store.record(Changes(watches=watches, pins=(dropped, *reversed(kept), of_ended, of_nobody)))

        assert store.book(CLUSTER).pins == kept
        assert set(store.pins_of([key("1"), key("2")])) == {*kept, dropped, of_ended}

    def test_a_pin_replaces_the_one_of_the_same_step(self, store: AnyStore) -> None:
        pinned = make.pin(state=PinState.PINNED, path=HOSTILE, files=3, size=2**40, manifest="m")
        store.record(Changes(watches=(watch(),), pins=(make.pin(),)))
        store.record(Changes(pins=(pinned,)))

        assert store.book(CLUSTER).pins == (pinned,)

    @pytest.mark.parametrize("state", State)
    def test_book_has_the_open_intents_and_the_confirmed_that_lack_a_note(self, store: AnyStore, state: State) -> None:
        bare, noted = make.intent(key("1"), state=state), make.intent(key("2"), state=state, handed_to=("9",))
        store.record(Changes(intents=(bare, noted)))

        expected = () if state in CLOSED - {State.CONFIRMED} else (bare,) if state in CLOSED else (bare, noted)
        assert store.book(CLUSTER).intents == expected
        assert store.book("beta").intents == ()

    def test_a_closed_intent_is_tended_until_the_fate_of_its_message_is_booked(self, store: AnyStore) -> None:
        told = make.intent(key("1"), state=State.CONFIRMED, handed_to=("9",))
        waiting = replace(make.intent(key("2"), state=State.CONFIRMED, handed_to=("9",)), telling="stopped")
        store.record(Changes(intents=(told, waiting)))
        assert store.book(CLUSTER).intents == (waiting,)
        store.record(Changes(intents=(replace(waiting, telling=""),)))
        assert store.book(CLUSTER).intents == ()

    def test_only_the_newest_fifty_closed_intents_may_want_a_note(self, store: AnyStore) -> None:
        closed = [make.intent(key(str(n)), state=State.CONFIRMED, changed_s=float(n)) for n in range(60)]
        noted = [replace(each, handed_to=("9",)) if each.changed_s >= 58 else each for each in closed]
        given_up = make.intent(key("60"), state=State.ABANDONED, changed_s=60.0)
        store.record(Changes(intents=(*noted, given_up)))

        assert {each.changed_s for each in store.book(CLUSTER).intents} == {float(n) for n in range(11, 58)}

    def test_book_tells_the_newest_trigger_of_the_present_life(self, store: AnyStore) -> None:
        given_up = [make.intent(key("1"), step, state=State.ABANDONED) for step in (80, 40)]
        earlier_life = make.intent(key("2"), 90, state=State.CONFIRMED)
        watches = (watch(key("1")), watch(key("2"), life=make.life(1)), watch(key("3")))
        store.record(Changes(watches=watches, intents=(*given_up, earlier_life)))

        assert store.book(CLUSTER).triggered == {key("1"): 80}

    def test_a_would_be_stop_is_booked_once_a_life(self, store: AnyStore) -> None:
        first, again = make.would_be(at_s=1.0), make.would_be(at_s=2.0)
        store.record(Changes(watches=(watch(),), would_be=(first,)))
        store.record(Changes(would_be=(again,)))
        booked = store.book(CLUSTER).booked
        store.record(Changes(watches=(watch(life=make.life(1)),)))

        assert booked == {key()}
        assert store.book(CLUSTER).booked == frozenset()
        assert store.would_be_of([key()]) == (first,)

    def test_it_tells_who_a_run_was_last_bound_to_even_when_that_job_is_over(self, store: AnyStore) -> None:
        store.record(Changes(bindings=(make.binding(key("1"), "r"), make.binding(key("1"), "s"))))
        store.record(Changes(bindings=(make.binding(key("2"), "r"), make.binding(key("3", cluster="beta"), "t"))))

        held = {"r": key("2"), "s": key("1"), "t": key("3", cluster="beta")}
        found = store.holders(["r", "s", "t", "never"])
        assert {run_id: binding.key for run_id, binding in found.items()} == held

    def test_book_tells_what_was_said_of_live_jobs_and_of_the_site(self, store: AnyStore) -> None:
        watches = (watch(key("1")), watch(key("2"), ending=ENDED))
        said = [make.remark(key("1").text, "a"), make.remark(key("1").text, "a"), make.remark("site", "b")]
        store.record(Changes(watches=watches, remarks=(*said, make.remark(key("2").text, "c"))))

        assert store.book(CLUSTER).said == {(key("1").text, "a"), ("site", "b")}
        assert store.book("beta").said == {("site", "b")}

    # --- points

    def test_a_point_is_stored_once_and_keeps_when_it_arrived(self, store: AnyStore) -> None:
        nan = point(2, float("nan"), arrived_s=1.0)
        store.record(Changes(points=((key(), point(arrived_s=1.0)), (key(), nan), (key(), nan))))
        store.record(Changes(points=((key(), point(arrived_s=9.0)), (key(), replace(nan, arrived_s=9.0)))))

        assert [each.arrived_s for each in store.points([key()])[key()]] == [1.0, 1.0]

    def test_a_stored_point_takes_a_standard_error_once_and_nothing_else(self, store: AnyStore) -> None:
        late = point(arrived_s=9.0, stderr=0.1)
        store.record(Changes(points=((key(), point(arrived_s=1.0)),)))
        store.record(Changes(points=((key(), late),)))
        store.record(Changes(points=((key(), replace(late, stderr=0.2)), (key(), replace(late, stderr=None)))))

        assert store.points([key()]) == {key(): (point(arrived_s=1.0, stderr=0.1),)}

    @pytest.mark.parametrize(
        "other",
        [
            point(life=1),
            point(run_id="run-2"),
            point(step=2, timestamp_ms=1001),
            point(timestamp_ms=5),
            point(value=0.5000000000000001),
            point(metric="eval/other"),
            point(dataset="clean@c1"),
        ],
    )
    def test_a_point_that_differs_in_anything_that_counts_is_another_one(self, store: AnyStore, other: Any) -> None:
        store.record(Changes(points=((key(), point()),)))
        store.record(Changes(points=((key(), other), (key("8"), point()))))

        assert set(store.points([key(), key("8"), key("9")])[key()]) == {point(), other}
        assert store.points([key("8")]) == {key("8"): (point(),)}

    def test_the_longest_names_of_run_metric_and_dataset_together_are_kept(self, store: AnyStore) -> None:
        """A database's key may not be longer than a third of its page, and these names hardly get shorter packed."""
        letters = [chr(0x10000 + 97 * number) for number in range(250)]
        longest = point(run_id="r" * 256, metric="".join(letters), dataset=f"{''.join(letters[::-1][:200])}@{'d' * 64}")
        store.record(Changes(points=((key(), longest),)))

        assert store.points([key()]) == {key(): (longest,)}

    def test_points_are_told_for_thousands_of_jobs_at_once(self, store: AnyStore) -> None:
        owners = [key(str(n)) for n in range(1200)]
        store.record(Changes(points=tuple((each, point()) for each in owners)))

        assert store.points([*owners, owners[0]]) == {each: (point(),) for each in owners}

    # --- intents: compare and set, all or nothing

    @pytest.mark.parametrize("stored", State)
    def test_an_intent_moves_only_along_the_table(self, store: AnyStore, stored: State) -> None:
        for new in State:
            owner = key(f"to_{new}")
            before, after = make.intent(owner, state=stored), make.intent(owner, state=new, note="moved")
            store.record(Changes(intents=(before,)))
            may = new == stored or new in TRANSITIONS[stored]
            with nullcontext() if may else pytest.raises(Rejected, match="another daemon"):
                store.record(Changes(intents=(after,)))

            assert store.intents_of([owner]) == ((after,) if may else (before,))

    def test_a_lost_race_writes_nothing_at_all(self, store: AnyStore) -> None:
        store.record(Changes(watches=(watch(),), intents=(make.intent(state=State.VETOED),)))
        before = store.book(CLUSTER)
        late, other = make.intent(state=State.WARNED), make.intent(key("8"))
        changes = Changes(
            watches=(watch(declines=5), watch(key("8"))),
            points=((key(), point()),),
            pins=(make.pin(),),
            intents=(other, late),
            events=(make.event(other),),
            would_be=(make.would_be(),),
            bindings=(make.binding(),),
            remarks=(make.remark("site"),),
        )
        with pytest.raises(Rejected):
            store.record(changes)

        assert store.book(CLUSTER) == before
        assert store.points([key()]) == {key(): ()}
        assert store.events_of([other.id]) == store.would_be_of([key()]) == store.pins_of([key()]) == ()
        assert store.find("8") == store.intents_of([key("8")]) == store.remarks_of(["site"]) == ()

    def test_recording_the_same_again_does_no_harm(self, store: AnyStore) -> None:
        planned = make.intent()
        changes = Changes(watches=(watch(),), intents=(planned,), events=(make.event(planned),), pins=(make.pin(),))
        store.record(changes)
        store.record(changes)

        assert store.intents_of([key()]) == (planned,)
        assert store.events_of([planned.id]) == (make.event(planned),)

    def test_the_evidence_of_a_stop_stays_what_it_was(self, store: AnyStore) -> None:
        store.record(Changes(intents=(make.intent(),)))
        rewritten = make.evidence(reason="other", scores=(9.0,), steps=(9,))
        store.record(Changes(intents=(make.intent(state=State.WARNED, evidence=rewritten, created_s=0.0),)))

        assert store.intents_of([key()]) == (make.intent(state=State.WARNED),)

    def test_several_moves_of_an_intent_in_one_writing_follow_the_table_too(self, store: AnyStore) -> None:
        states = (State.PLANNED, State.WARNED, State.PROMOTED)
        store.record(Changes(intents=tuple(make.intent(state=state) for state in states)))
        with pytest.raises(Rejected):
            store.record(Changes(intents=(make.intent(state=State.CANCELLED), make.intent(state=State.WARNED))))

        assert store.intents_of([key()]) == (make.intent(state=State.PROMOTED),)

    # --- events

    def test_events_are_told_intent_by_intent_in_order(self, store: AnyStore) -> None:
        one, two = make.intent(key("1")), make.intent(key("2"))
        events = [make.event(each, seq) for each in (one, two) for seq in (10, 9, 0)]
        store.record(Changes(intents=(one, two), events=tuple(events)))

        told = store.events_of([two.id, one.id, "nobody's"])
        assert [(each.intent_id, each.seq) for each in told] == [(i.id, n) for i in (two, one) for n in (0, 9, 10)]

    def test_another_event_under_the_same_number_is_refused(self, store: AnyStore) -> None:
        planned = make.intent()
        first, other = make.event(planned), make.event(planned, text="other")
        store.record(Changes(intents=(planned,), events=(first,)))
        for attempt in ((other,), (make.event(planned, 1), make.event(planned, 1, text="other"))):
            with pytest.raises(Rejected, match="another daemon"):
                store.record(Changes(events=attempt, remarks=(make.remark("site"),)))

        assert store.events_of([planned.id]) == (first,)
        assert store.remarks_of(["site"]) == ()

    def test_an_event_of_an_unknown_intent_is_refused(self, store: AnyStore) -> None:
        with pytest.raises(Rejected, match="no intent"):
            store.record(Changes(events=(make.event(make.intent()),)))

    # --- listings: the newest first

    def test_recent_watches_are_those_first_seen_last(self, store: AnyStore) -> None:
        seen = [watch(key(str(n)), first_s=float(n), ending=ENDED if n % 2 else None) for n in range(12)]
        store.record(Changes(watches=tuple(seen)))

        assert store.recent(3) == (seen[11], seen[10], seen[9])
        assert store.recent(100) == tuple(reversed(seen))
        assert store.recent(0) == ()

    def test_watches_since_a_moment_are_those_first_seen_at_it_or_later(self, store: AnyStore) -> None:
        seen = [
            watch(key(str(n), cluster=f"c{n % 2}"), first_s=float(n), ending=ENDED if n % 2 else None) for n in range(5)
        ]
        store.record(Changes(watches=tuple(seen)))

        assert store.watched_since(3.0) == (seen[4], seen[3])
        assert store.watched_since(0.0) == tuple(reversed(seen))
        assert store.watched_since(4.5) == ()

    def test_listings_begin_with_the_newest(self, store: AnyStore) -> None:
        intents = [make.intent(trigger_step=n, created_s=float(n), state=State.VETOED) for n in (1, 10, 2)]
        pins = [make.pin(step=n, wanted_s=float(n)) for n in (1, 10, 2)]
        stops = [make.would_be(life=make.life(n), at_s=float(n)) for n in (1, 10, 2)]
        remarks = [make.remark(subject, text=f"{n}", at_s=float(n)) for subject in "ab" for n in (1, 10, 2)]
        store.record(Changes(intents=tuple(intents), pins=tuple(pins), would_be=tuple(stops), remarks=tuple(remarks)))

        assert [each.created_s for each in store.intents_of([key(), key()])] == [10, 2, 1]
        assert [each.step for each in store.pins_of([key(), key()])] == [10, 2, 1]
        assert [each.at_s for each in store.would_be_of([key(), key()])] == [10, 2, 1]
        assert [each.at_s for each in store.remarks_of(["a", "b", "a"])] == [10, 10, 2, 2, 1, 1]

    def test_remarks_of_one_moment_are_told_last_written_first(self, store: AnyStore) -> None:
        for text in ("first", "second"):
            store.record(Changes(remarks=tuple(make.remark(each, text=text) for each in ("b", "a"))))

        told = [(each.subject, each.text) for each in store.remarks_of(["a", "b"])]
        assert told == [("a", "second"), ("b", "second"), ("a", "first"), ("b", "first")]

    # --- what was decided within a span

    def test_decisions_and_remarks_are_told_within_a_span_the_oldest_first(self, store: AnyStore) -> None:
        intents = [make.intent(key(str(n)), created_s=float(n)) for n in (3, 1, 2, 0)]
        stops = [make.would_be(key(str(n)), at_s=float(n)) for n in (3, 1, 2, 0)]
        remarks = [make.remark(f"{n}", at_s=float(n)) for n in (0, 1, 2, 3)]
        store.record(Changes(intents=tuple(intents), would_be=tuple(stops), remarks=tuple(remarks)))
        span = Span(1.0, 3.0)

        assert [each.created_s for each in store.intents_within(span)] == [1.0, 2.0]
        assert [each.at_s for each in store.would_be_within(span)] == [1.0, 2.0]
        assert [each.at_s for each in store.remarks_within(span)] == [1.0, 2.0]
        assert store.intents_within(Span(4.0, 9.0)) == store.would_be_within(Span(4.0, 9.0)) == ()

    def test_watches_and_all_lives_of_jobs_are_told(self, store: AnyStore) -> None:
        first = watch(started_s=1.0, limit_end_s=99.0, gpus=4, ending=ENDED)
        second = watch(life=make.life(1), started_s=2.0, gpus=8)
        store.record(Changes(watches=(first,)))
        store.record(Changes(watches=(replace(second, gpus=2), watch(key("8")))))
        store.record(Changes(watches=(second,)))

        assert store.watches_of([key(), key("9")]) == {key(): second}
        assert store.lives_of([key(), key("9")]) == (lived(first), lived(second))

    # --- the chain over the book

    def test_every_row_that_is_appended_gets_a_link_and_the_head_is_the_last(self, store: AnyStore) -> None:
        planned = make.intent()
        store.record(Changes(intents=(planned,), events=(make.event(planned),), would_be=(make.would_be(),)))
        store.record(Changes(intents=(replace(planned, events=2),), events=(make.event(planned, 1),)))
        store.record(Changes(credits=(make.credit(planned),)))
        store.record(Changes(credits=(make.credit(planned),), remarks=(make.remark("site"), make.remark("site"))))
        links = [held.link for held in store.held(0, 99)]

        assert [link.kind for link in links] == [
            *("decision", "intent", "event", "would-be"), *("intent", "event"), "credit", *("remark", "remark"),
        ]  # fmt: skip
        assert [link.seq for link in links] == list(range(1, 10))
        assert tuple(links) == extend(0, "0" * 64, [Entry(link.kind, link.ref, link.digest) for link in links])
        head = store.head()
        assert head is not None
        assert (head.length, head.hash) == (9, links[-1].hash)
        assert [held.link for held in store.held(2, 3)] == links[2:5]
        assert verify(store, head).good

    def test_points_are_sealed_in_a_batch_a_job_and_pins_bindings_and_breakers_row_by_row(
        self, store: AnyStore
    ) -> None:
        points = ((key(), point(1)), (key("8"), point(1)), (key(), point(2, math.nan, stderr=0.1)))
        turn = BreakerTurn(CLUSTER, "site", Turn.TRIPPED, 1.0, 2.0, "too many")
        store.record(Changes(points=points, pins=(make.pin(),), bindings=(make.binding(),), breakers=(turn,)))
        store.record(Changes(points=((key(), point(3)),), pins=(make.pin(state=PinState.PINNED),)))
        refs = [(held.link.kind, held.link.ref) for held in store.held(0, 99)]

        job, other = key().text, key("8").text
        assert refs == [
            ("binding", "1"), ("breaker", "2"), ("pin", f"{job}:20"), ("points", f"{job}:0"), ("points", f"{other}:0"),
            ("pin", f"{job}:20"), ("points", f"{job}:5"),
        ]  # fmt: skip
        assert verify(store).good
        assert store.holders(["run-1"]) == {"run-1": make.binding()}
        assert store.breakers() == (turn,)

    def test_points_that_are_there_already_get_no_link_and_a_late_error_seals_its_batch_anew(
        self, store: AnyStore
    ) -> None:
        points = tuple((key(), point(step)) for step in (1, 2, 3))
        store.record(Changes(points=points))
        store.record(Changes(points=points))
        assert len(store.held(0, 99)) == 1
        late = ((key(), point(2, stderr=0.25)), (key(), point(4)))
        store.record(Changes(points=late))
        store.record(Changes(points=((key(), point(2, stderr=0.5)),)))
        links = [held.link for held in store.held(0, 99)]

        assert sorted(link.ref for link in links) == [f"{key().text}:0", f"{key().text}:0", f"{key().text}:1"]
        assert [each.stderr for each in store.points([key()])[key()]] == [None, 0.25, None, None]
        assert verify(store).good

    def test_a_life_is_sealed_where_it_changes_and_not_where_a_watch_does(self, store: AnyStore) -> None:
        """A pass writes many watches, and of most only when their run is read next."""
        ended = watch(ending=make.ENDED, name="other", started_s=5)
        for each in (watch(), watch(evals=3), watch(nodes=("n1",)), watch(name="other"), ended, ended):
            store.record(Changes(watches=(each,)))
        store.record(Changes(watches=(watch(life=make.life(1)), watch(key("8"), started_s=5, limit_end_s=-0.0))))
        refs = [(held.link.kind, held.link.ref) for held in store.held(0, 99)]

        first, job = f"{key().text}:0:1700000000", key().text
        assert refs == [
            *[("life", first)] * 3, ("life", f"{job}:1:1700000001"), ("life", f"{key('8').text}:0:1700000000"),
        ]  # fmt: skip
        assert verify(store).good
        assert store.lives_of([key()])[0] == lived(ended)

    def test_a_preemption_is_sealed_at_each_writing(self, store: AnyStore) -> None:
        asked = Preemption(key(), make.life(), "9", 4, 20.0, 100.0, "it yields")
        for each in (asked, asked.ended(PreemptState.VOID, "the heir is gone")):
            store.record(Changes(preemptions=(each,)))

        assert [held.link.kind for held in store.held(0, 99)] == ["preemption"] * 2
        assert verify(store).good

    @edges
    @given(seen=make.watches, gpus=make.whole, at_s=make.times, text=make.texts)
    def test_any_life_and_preemption_is_sealed_as_it_is_read_back(
        self, store: AnyStore, fresh: Fresh, seen: Any, gpus: int, at_s: float, text: str
    ) -> None:
        seen = replace(seen, key=fresh(seen.key))
        asked = Preemption(seen.key, seen.life, text, gpus, at_s, at_s, text, text, gpus, note=text)
        store.record(Changes(watches=(seen,), preemptions=(asked,)))
        store.record(Changes(watches=(replace(seen, ending=None), replace(seen, name=text, gpus=gpus))))

        assert verify(store).breaks == ()

    def test_what_is_there_already_or_refused_gets_no_link(self, store: AnyStore) -> None:
        planned = make.intent()
        store.record(Changes(intents=(planned,), events=(make.event(planned),), would_be=(make.would_be(),)))
        before = store.head()
        twice = (make.event(planned), make.event(planned))
        store.record(Changes(events=twice, would_be=(make.would_be(at_s=9.0), make.would_be(at_s=8.0))))
        with pytest.raises(Rejected):
            store.record(Changes(events=(make.event(planned, text="other"),), remarks=(make.remark("site"),)))

        assert store.head() == before
        assert verify(store).good

    def test_of_two_with_one_name_in_one_writing_the_first_is_kept_and_sealed(self, store: AnyStore) -> None:
        one, other = make.intent(), make.intent(state=State.WARNED, evidence=make.evidence(reason="other"))
        stops = (make.would_be(at_s=1.0), make.would_be(at_s=2.0))
        store.record(Changes(intents=(one, other), events=(make.event(one),) * 2, would_be=stops))

        kinds = [held.link.kind for held in store.held(0, 99)]
        assert kinds == ["decision", "intent", "intent", "event", "would-be"]
        assert store.would_be_of([key()]) == stops[:1]
        assert verify(store).good

    def test_the_seal_of_the_evidence_holds_although_later_writings_bring_another(self, store: AnyStore) -> None:
        store.record(Changes(intents=(make.intent(),)))
        rewritten = make.evidence(reason="other")
        store.record(Changes(intents=(make.intent(state=State.WARNED, evidence=rewritten, created_s=0.0),)))

        assert verify(store).good

    @edges
    @given(points=st.lists(make.points, max_size=4), pin=make.pins, text=make.texts, at_s=make.times)
    def test_any_point_pin_binding_or_breaker_is_sealed_as_it_is_read_back(
        self, store: AnyStore, fresh: Fresh, points: list[Point], pin: Any, text: str, at_s: float
    ) -> None:
        pin = replace(pin, key=fresh(pin.key))
        bound = Binding(pin.key, text, text, two_way=True, since_s=at_s)
        turn = BreakerTurn(CLUSTER, text, Turn.RESET, at_s, at_s, text, text)
        brought = tuple((pin.key, each) for each in points)
        store.record(Changes(points=brought, pins=(pin,), bindings=(bound,), breakers=(turn,)))
        store.record(Changes(points=tuple((pin.key, replace(each, stderr=0.5)) for each in points)))

        assert verify(store).breaks == ()

    @edges
    @given(intent=make.intents, stop=make.would_bes, remark=make.remarks, text=make.texts, at_s=make.times)
    def test_any_row_is_sealed_as_it_is_read_back(
        self, store: AnyStore, fresh: Fresh, intent: Any, stop: Any, remark: Remark, text: str, at_s: float
    ) -> None:
        intent, stop = replace(intent, key=fresh(intent.key)), replace(stop, key=fresh(stop.key))
        event, owed = IntentEvent(intent.id, 0, at_s, text, text), make.credit(intent, at_s=at_s, how=text)
        store.record(Changes(intents=(intent,), events=(event,), credits=(owed,), would_be=(stop,), remarks=(remark,)))

        assert verify(store).breaks == ()

    def test_writers_at_once_make_one_unbroken_chain(self, store: AnyStore) -> None:
        def record(thread: int) -> None:
            for n in range(15):
                mine = make.intent(key(f"{thread}_{n}"))
                store.record(Changes(intents=(mine,), events=(make.event(mine),)))
                store.record(Changes(would_be=(make.would_be(mine.key),), remarks=(make.remark("site"),) * 2))

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(record, range(3)))

        found = verify(store)
        assert found.breaks == ()
        assert found.links == 3 * 15 * 6

    # --- many at once

    def test_two_threads_record_at_once_and_nothing_is_lost(self, store: AnyStore) -> None:
        def record(thread: int) -> None:
            for n in range(20):
                mine = make.intent(key(f"{thread}_{n}"))
                store.record(Changes(watches=(watch(mine.key),), intents=(mine,), events=(make.event(mine),)))
                store.record(Changes(points=((key("shared"), point(n)),), remarks=(make.remark("site", f"{thread}"),)))

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(record, range(2)))

        book = store.book(CLUSTER)
        assert len(book.watches) == len(book.intents) == 40
        assert len(store.events_of([each.id for each in book.intents])) == 40
        assert len(store.points([key("shared")])[key("shared")]) == 20
        assert len(store.remarks_of(["site"])) == 40

    def test_of_two_daemons_that_move_an_intent_apart_one_wins(self, store: AnyStore) -> None:
        store.record(Changes(intents=(make.intent(state=State.PROMOTED),)))

        def move(to: State) -> bool:
            try:
                store.record(Changes(intents=(make.intent(state=to),)))
            except Rejected:
                return False
            return True

        with ThreadPoolExecutor(2) as pool:
            won = list(pool.map(move, (State.CANCELLED, State.VETOED)))

        winner = State.CANCELLED if won[0] else State.VETOED
        assert sorted(won) == [False, True]
        assert store.intents_of([key()])[0].state is winner

    def test_decisions_are_intents_and_would_be_stops_of_a_cluster_the_oldest_first(self, store: AnyStore) -> None:
        of_other = make.intent(key("9", cluster="beta"))
        acted = make.intent(created_s=50.0, acted_s=70.0, gpus=4)
        store.record(
            Changes(
                watches=(watch(account="lab"),),
                intents=(acted, of_other),
                would_be=(make.would_be(key("8"), at_s=40.0), make.would_be(key("6"), at_s=45.0, wished=True)),
            )
        )

        assert store.decisions(CLUSTER, 0.0) == (
            Decision(key("8"), "", 0, 40.0, rung=Rung.OBSERVE),
            Decision(key("6"), "", 0, 45.0, wished=True, rung=Rung.OBSERVE),
            Decision(key(), "lab", 4, 50.0, 70.0, rung=acted.rung),
        )

    def test_a_decision_counts_from_when_it_was_made_or_acted_on(self, store: AnyStore) -> None:
        store.record(
            Changes(intents=(make.intent(created_s=50.0, acted_s=70.0), make.intent(key("8"), created_s=60.0)))
        )

        assert [each.key.job_id for each in store.decisions(CLUSTER, 60.0)] == ["7", "8"]
        assert [each.key.job_id for each in store.decisions(CLUSTER, 61.0)] == ["7"]
        assert store.decisions(CLUSTER, 71.0) == ()

    def test_the_last_turn_of_each_breaker_is_kept(self, store: AnyStore) -> None:
        turns = [
            BreakerTurn(cluster, scope, turn, at_s, at_s + 5, HOSTILE, HOSTILE)
            for cluster, scope, turn, at_s in (
                (CLUSTER, "site", Turn.TRIPPED, 1.0),
                (CLUSTER, f"account:{HOSTILE}", Turn.TRIPPED, 2.0),
                ("beta", "site", Turn.TRIPPED, 3.0),
                (CLUSTER, "site", Turn.RESET, 4.0),
            )
        ]
        store.record(Changes(breakers=tuple(turns[:3])))
        store.record(Changes(breakers=(turns[3],)))

        assert store.book(CLUSTER).breakers == (turns[1], turns[3])
        assert store.breakers() == (turns[1], turns[3], turns[2])

    @edges
    @given(make.shifts)
    def test_any_shift_is_read_back_until_it_is_removed(self, store: AnyStore, shift: Shift) -> None:
        store.record(Changes(shifts=(shift,)))
        assert shift in store.book(shift.key.cluster).shifts
        store.record(Changes(unshifted=(shift.key,)))

        assert shift.key not in [each.key for each in store.book(shift.key.cluster).shifts]

    def test_a_shift_replaces_the_one_of_the_same_job_and_no_other(self, store: AnyStore) -> None:
        first, other = make.shift(), make.shift(key("8"))
        store.record(Changes(shifts=(other, first, make.shift(key("9", cluster="beta")))))
        again = replace(first, asked=7, before=3, state=ShiftState.SET, tries=2, why=HOSTILE)
        store.record(Changes(shifts=(again,), unshifted=(key("77"),)))

        assert store.book(CLUSTER).shifts == (again, other)

    def test_a_shift_may_be_removed_and_written_anew_at_once(self, store: AnyStore) -> None:
        store.record(Changes(shifts=(make.shift(),)))
        store.record(Changes(shifts=(make.shift(asked=5),), unshifted=(key(),)))

        assert [each.asked for each in store.book(CLUSTER).shifts] == [5]

    @edges
    @given(make.preemptions)
    def test_any_preemption_is_read_back(self, store: AnyStore, asked: Preemption) -> None:
        store.record(Changes(preemptions=(asked,)))

        assert asked in store.preemptions(asked.key.cluster, asked.at_s)

    def test_a_preemption_replaces_the_one_of_the_same_life_and_old_ones_are_left_out(self, store: AnyStore) -> None:
        first = Preemption(key(), Life(0, 100), "9", 8, 50.0, 40.0, HOSTILE)
        later = replace(first, life=Life(1, 200), at_s=60.0)
        other = replace(first, key=key("8"), at_s=55.0)
        store.record(Changes(preemptions=(later, other, first, replace(first, key=key("7", cluster="beta")))))
        done = replace(first.ended(PreemptState.DONE, HOSTILE), tries=2)
        store.record(Changes(preemptions=(done,)))

        assert store.preemptions(CLUSTER, 0.0) == (done, other, later)
        assert store.preemptions(CLUSTER, 55.0) == (other, later)

    @pytest.mark.timed
    def test_a_book_of_two_thousand_watches_costs_half_a_second_at_most(self, store: AnyStore) -> None:
        watches = tuple(watch(key(str(n)), nodes=("n1", "n2"), reads=_READS) for n in range(2000))
        pins = tuple(make.pin(each.key, step) for each in watches for step in (10, 20, 30))
        over = tuple(watch(key(f"o{n}"), ending=ENDED) for n in range(2000))
        store.record(Changes(watches=(*watches, *over), pins=pins))
        best = min(_seconds(lambda: store.book(CLUSTER)) for _ in range(3))

        assert len(store.book(CLUSTER).watches) == 2000
        assert best <= 0.5


_READS = replace(watch().reads, arrivals=tuple(float(n) for n in range(9)), due_s=100.0)


def _seconds(work: Any) -> float:
    """Return the processor's time: other processes on the machine do not count."""
    begin = time.process_time()
    work()
    return time.process_time() - begin
