"""What every store must do about the habits of past jobs: one class over memory, SQLite and PostgreSQL."""

import pytest

from evalstopd.core.estimates import TOP, Asked, History, Kin, PastLife, kin_of
from evalstopd.errors import Rejected
from evalstopd.ports import Histories
from tests.contracts.store_builders import CLUSTER

HOSTILE = "\x00\\u0041\udcff';drop\n"


def past(share: float = 0.25, name: str = "train", ended_s: float = 50.0) -> PastLife:
    return PastLife(HOSTILE, "ml", name, 36000.0, share * 36000.0, "COMPLETED", ended_s)


def known(*lives: PastLife, read_s: float = 100.0) -> History:
    made = History()
    for each in lives:
        made.add(each)
    made.read_until(read_s)
    return made


class HistoriesContract:
    @pytest.fixture
    def store(self) -> Histories:
        """Return an empty store of this program's version."""
        raise NotImplementedError

    def test_nothing_is_known_before_anything_was_read(self, store: Histories) -> None:
        assert store.history(CLUSTER) is None
        assert store.history_read_s(CLUSTER) is None

    def test_what_was_noted_gives_the_same_estimates(self, store: Histories) -> None:
        made = known(*[past()] * 9, past(0.7), past(0.1, name="other"), past(0.4)._replace(state="CANCELLED"))
        store.note_history(CLUSTER, None, 100.0, made.tallies, ())
        found = store.history(CLUSTER)

        assert found is not None
        assert (found.tallies, found.read_s, store.history_read_s(CLUSTER)) == (made.tallies, 100.0, 100.0)
        for name in ("train", "other", "new"):
            asked = Asked(HOSTILE, "ml", name, 7200.0)
            assert found.estimate(asked) == made.estimate(asked)

    def test_no_name_of_a_job_is_kept(self, store: Histories) -> None:
        store.note_history(CLUSTER, None, 100.0, known(past(name="secret")).tallies, ())
        found = store.history(CLUSTER)

        assert found is not None
        assert all("secret" not in kin.name for kin in found.tallies)

    def test_tallies_are_replaced_and_dropped_and_others_stay(self, store: Histories) -> None:
        everybody, user, account, name = kin_of(HOSTILE, "ml", "train")
        store.note_history(CLUSTER, None, 100.0, known(past()).tallies, ())
        later = known(past(), past(0.5), read_s=200.0)
        store.note_history(CLUSTER, 100.0, 200.0, {user: later.tallies[user]}, {name})
        found = store.history(CLUSTER)

        assert found is not None
        assert set(found.tallies) == {everybody, user, account}
        assert [sum(found.tallies[kin].ended) for kin in (everybody, user, account)] == [1.0, 2.0, 1.0]
        assert found.read_s == 200.0

    def test_who_read_to_another_moment_counts_nothing_twice(self, store: Histories) -> None:
        tallies = known(past()).tallies
        store.note_history(CLUSTER, None, 100.0, tallies, ())
        for since_s in (None, 99.0):
            with pytest.raises(Rejected):
                store.note_history(CLUSTER, since_s, 300.0, known(past(), past()).tallies, tuple(tallies))
        found = store.history(CLUSTER)

        assert found is not None
        assert (found.tallies, found.read_s) == (tallies, 100.0)

    def test_clusters_are_apart(self, store: Histories) -> None:
        store.note_history(CLUSTER, None, 100.0, known(past()).tallies, ())
        store.note_history("another", None, 5.0, {}, ())
        found = store.history("another")

        assert found is not None
        assert (found.tallies, found.read_s) == ({}, 5.0)

    def test_what_was_handed_over_can_be_changed_without_harm(self, store: Histories) -> None:
        made = known(past())
        store.note_history(CLUSTER, None, 100.0, made.tallies, ())
        made.add(past(1.0))
        first = store.history(CLUSTER)
        assert first is not None
        first.add(past(1.0))
        found = store.history(CLUSTER)

        assert found is not None
        assert found.tallies[Kin()].ended[TOP] == 0.0
