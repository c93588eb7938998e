"""What every store must do about leases, whatever holds it: one class, run over memory, SQLite and PostgreSQL."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from evalstopd.errors import Deposed
from evalstopd.lead.lead import LedStore
from evalstopd.ports import Changes
from tests.contracts import store_builders as make
from tests.contracts.store_builders import CLUSTER, HOSTILE

LONG_S, SHORT_S = 600.0, 0.4


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.05)


def is_over(store: LedStore, name: str) -> bool:
    lease = store.leader(name)
    return lease is not None and lease.left_s <= 0


class LeaseContract:
    @pytest.fixture
    def store(self) -> LedStore:
        """Return an empty store of this program's version."""
        raise NotImplementedError

    def test_nobody_leads_at_first(self, store: LedStore) -> None:
        assert store.leader("pair") is None

    def test_the_first_who_asks_leads_and_the_second_waits(self, store: LedStore) -> None:
        first, second = store.take("pair", "a", LONG_S), store.take("pair", "b", LONG_S)

        assert (first.holder, first.epoch) == (second.holder, second.epoch) == ("a", 1)
        assert 0 < second.left_s <= LONG_S

    @pytest.mark.timed
    def test_the_leader_renews_under_the_same_epoch(self, store: LedStore) -> None:
        store.take("pair", "a", SHORT_S)
        renewed = store.take("pair", "a", LONG_S)

        assert renewed.epoch == 1
        assert renewed.left_s > SHORT_S

    def test_a_lease_that_is_over_goes_to_who_asks_next_under_a_new_epoch(self, store: LedStore) -> None:
        store.take("pair", "a", SHORT_S)
        until(lambda: is_over(store, "pair"))
        taken = store.take("pair", "b", LONG_S)

        assert (taken.holder, taken.epoch) == ("b", 2)
        assert store.take("pair", "a", LONG_S).holder == "b"

    def test_who_resigns_need_not_be_waited_for_and_nobody_resigns_for_another(self, store: LedStore) -> None:
        store.take("pair", "a", LONG_S)
        store.resign("pair", "b")
        assert store.take("pair", "b", LONG_S).holder == "a"
        store.resign("pair", "a")
        until(lambda: is_over(store, "pair"))

        assert store.take("pair", "b", LONG_S).epoch == 2

    def test_leases_of_two_names_know_nothing_of_each_other(self, store: LedStore) -> None:
        store.take("one", "a", LONG_S)

        assert store.take(HOSTILE, HOSTILE, LONG_S).holder == HOSTILE
        assert store.leader("one") is not None
        assert store.take("one", "b", LONG_S).holder == "a"

    def test_the_leader_writes(self, store: LedStore) -> None:
        epoch = store.take("pair", "a", LONG_S).epoch
        store.record_as("pair", epoch, Changes(watches=(make.watch(),)))

        assert store.book(CLUSTER).watches == (make.watch(),)

    def test_an_old_leader_writes_nothing(self, store: LedStore) -> None:
        old = store.take("pair", "a", SHORT_S).epoch
        until(lambda: is_over(store, "pair"))
        store.take("pair", "b", LONG_S)
        with pytest.raises(Deposed, match="nothing is written"):
            store.record_as("pair", old, Changes(watches=(make.watch(),)))

        assert store.book(CLUSTER).watches == ()

    def test_a_lease_that_is_over_but_not_taken_still_writes(self, store: LedStore) -> None:
        """Nobody else has begun, so there is nothing that the writing could meet."""
        epoch = store.take("pair", "a", SHORT_S).epoch
        until(lambda: is_over(store, "pair"))
        store.record_as("pair", epoch, Changes(watches=(make.watch(),)))

        assert store.book(CLUSTER).watches == (make.watch(),)

    def test_who_never_led_writes_nothing(self, store: LedStore) -> None:
        with pytest.raises(Deposed):
            store.record_as("pair", 0, Changes(watches=(make.watch(),)))

        assert store.book(CLUSTER).watches == ()

    def test_of_many_who_ask_at_once_one_leads(self, store: LedStore) -> None:
        with ThreadPoolExecutor(6) as pool:
            asked = [pool.submit(store.take, "pair", f"holder {n}", LONG_S) for n in range(12)]
            found = {(each.result(60).holder, each.result(60).epoch) for each in asked}

        assert len(found) == 1

    def test_a_cluster_is_led_under_one_lease_while_that_lasts(self, store: LedStore) -> None:
        first, second = store.take("one", "a", LONG_S), store.take(HOSTILE, "b", LONG_S)
        store.claim("one", first.epoch, HOSTILE)
        with pytest.raises(Deposed, match=r"under the lease 'one' 'a' leads the cluster .*: give its daemons one name"):
            store.claim(HOSTILE, second.epoch, HOSTILE)
        store.claim(HOSTILE, second.epoch, CLUSTER)

        assert (store.leading(HOSTILE), store.leading(CLUSTER)) == (("one",), (HOSTILE,))

    def test_who_waits_is_told_which_cluster_is_led_and_so_is_who_looks(self, store: LedStore) -> None:
        epoch = store.take("one", "a", LONG_S).epoch
        assert store.take("one", "b", LONG_S).cluster == ""
        store.claim("one", epoch, HOSTILE)
        found = store.leader("one")

        assert store.take("one", "b", LONG_S).cluster == HOSTILE
        assert found is not None
        assert found.cluster == HOSTILE

    def test_to_claim_again_or_after_a_take_over_under_the_same_name_is_no_harm(self, store: LedStore) -> None:
        old = store.take("one", "a", SHORT_S).epoch
        store.claim("one", old, CLUSTER)
        store.claim("one", old, CLUSTER)
        until(lambda: is_over(store, "one"))
        assert store.leading(CLUSTER) == ()
        epoch = store.take("one", "b", LONG_S).epoch
        with pytest.raises(Deposed, match="has passed on"):
            store.claim("one", old, CLUSTER)
        store.claim("one", epoch, CLUSTER)

        assert store.leading(CLUSTER) == ("one",)

    def test_a_leader_that_comes_back_does_not_lead_a_cluster_that_another_lease_got_meanwhile(
        self, store: LedStore
    ) -> None:
        """Its lease was over and nobody else's: else it would go on under its old epoch, and both would lead."""
        old = store.take("one", "a", SHORT_S).epoch
        store.claim("one", old, CLUSTER)
        until(lambda: is_over(store, "one"))
        store.claim("two", store.take("two", "b", LONG_S).epoch, CLUSTER)
        with pytest.raises(Deposed):
            store.record_as("one", old, Changes(watches=(make.watch(),)))
        again = store.take("one", "a", LONG_S)
        assert (again.holder, again.epoch) == ("a", old + 1)
        with pytest.raises(Deposed, match="'two'"):
            store.claim("one", again.epoch, CLUSTER)

        assert store.leading(CLUSTER) == ("two",)

    def test_who_resigns_leaves_the_cluster_to_whoever_asks_next(self, store: LedStore) -> None:
        store.claim("one", store.take("one", "a", LONG_S).epoch, CLUSTER)
        store.resign("one", "a")
        until(lambda: is_over(store, "one"))
        store.claim("two", store.take("two", "b", LONG_S).epoch, CLUSTER)

        assert store.leading(CLUSTER) == ("two",)

    def test_who_never_led_claims_nothing(self, store: LedStore) -> None:
        with pytest.raises(Deposed):
            store.claim("one", 0, CLUSTER)

        assert store.leading(CLUSTER) == ()

    def test_of_many_leases_that_ask_for_one_cluster_at_once_one_gets_it(self, store: LedStore) -> None:
        def ask(number: int) -> bool:
            epoch = store.take(f"lease {number}", "a", LONG_S).epoch
            try:
                store.claim(f"lease {number}", epoch, CLUSTER)
            except Deposed:
                return False
            return True

        with ThreadPoolExecutor(6) as pool:
            assert sum(pool.map(ask, range(8))) == 1
        assert len(store.leading(CLUSTER)) == 1
