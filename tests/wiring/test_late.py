"""A tracker that is made at its first question: once, and anew where it could not be made."""

import pytest

from evalstopd.errors import Misconfigured
from evalstopd.late import LateGate, LateTracker
from evalstopd.ports import RunQuery
from tests.fakes.tracker import FakeTracker
from tests.fakes.world import FakeGate


def test_nothing_is_made_before_the_first_question_and_all_of_them_are_passed_on() -> None:
    made: list[FakeTracker] = []

    def make() -> FakeTracker:
        made.append(FakeTracker())
        made[0].add_run("r1", **{"slurm.job_id": "7", "slurm.cluster": "c"})
        return made[0]

    late = LateTracker(make)
    assert made == []
    assert set(late.read([RunQuery("r1", "m")])) == {RunQuery("r1", "m")}
    (found,) = late.naming("c", [7]).values()
    assert isinstance(found, tuple)
    assert [run.run_id for run in found] == ["r1"]
    late.tag("r1", {"evalstop.state": "warned"})
    assert late.mark_killed("r1") == "KILLED"
    assert (made[0].runs["r1"].tags["evalstop.state"], made[0].runs["r1"].status) == ("warned", "KILLED")
    assert len(made) == 1


def test_what_making_it_raises_comes_with_each_question_until_it_can_be_made() -> None:
    gates: list[FakeGate] = []

    def make() -> FakeGate:
        if not gates:
            raise Misconfigured("mlflow.tracking_uri is not set")
        return gates[0]

    late = LateGate(make)
    for _ in range(2):
        with pytest.raises(Misconfigured):
            late.admits_strangers()
    gates.append(FakeGate(open=True))
    assert late.admits_strangers()
