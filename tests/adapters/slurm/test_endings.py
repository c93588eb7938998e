"""Which life of a job ended how, from accounting's records or the controller's."""

import pytest

from evalstopd.adapters.slurm.cluster import SlurmCluster
from evalstopd.adapters.slurm.run import Answer
from evalstopd.core.model import Ending, Life
from evalstopd.errors import Unavailable
from evalstopd.ports import EndingQuery
from tests.adapters.slurm.fake_slurm import FakeSlurm, failed, record

FIRST = Life(0, 1000)
SECOND = Life(1, 2000)
SEVEN = EndingQuery("7", FIRST)
DISABLED = failed(1, "Slurm accounting storage is disabled")


def ask(lines: str, *queries: EndingQuery) -> dict[EndingQuery, Ending]:
    slurm = FakeSlurm(answers={"sacct": Answer(0, lines, "")})
    cluster = SlurmCluster(run=slurm)
    endings = cluster.endings(queries)
    assert cluster.calls == 1
    return dict(endings)


def test_all_lives_are_asked_for_in_one_call() -> None:
    slurm = FakeSlurm(answers={"sacct": Answer(0, "", "")})
    SlurmCluster(run=slurm).endings([SEVEN, EndingQuery("9_3", SECOND)])
    assert [argv[-1] for argv in slurm.seen] == ["--jobs=7,9_3"]


def test_nothing_to_ask_is_no_call() -> None:
    cluster = SlurmCluster(run=FakeSlurm())
    assert cluster.endings([]) == {}
    assert cluster.calls == 0


def test_the_submit_time_chooses_the_life() -> None:
    """A requeue and a reused id both leave several records under one id."""
    lines = "7|7|REQUEUED|1000|1500|0:0\n7|7|CANCELLED by 1003|2000|2500|0:15\n7|7|COMPLETED|9000|9100|0:0\n"
    assert ask(lines, SEVEN) == {SEVEN: Ending("REQUEUED", 1500, "0:0")}
    assert ask(lines, EndingQuery("7", SECOND)) == {EndingQuery("7", SECOND): Ending("CANCELLED", 2500, "0:15")}
    assert ask(lines, EndingQuery("7", Life(0, 3000))) == {}
    assert len(ask(lines, SEVEN, EndingQuery("7", SECOND))) == 2


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "SOMETHING_NEW"])
def test_what_has_not_ended_is_left_out(state: str) -> None:
    assert ask(f"7|7|{state}|1000|Unknown|0:0\n", SEVEN) == {}


def test_a_task_is_found_by_its_own_name_and_never_by_the_arrays_number() -> None:
    lines = "9_0|10|COMPLETED|1000|1100|0:0\n9_3|9|FAILED|1000|1200|1:0\n9_[4-5]|9|PENDING|1000|Unknown|0:0\n"
    found = ask(lines, EndingQuery("9_3", FIRST), EndingQuery("9", FIRST), EndingQuery("10", FIRST))
    assert found == {EndingQuery("9_3", FIRST): Ending("FAILED", 1200, "1:0")}


def test_a_component_of_a_heterogeneous_job_is_found_by_its_raw_id() -> None:
    lines = "28+0|28|CANCELLED by 1|1000|1100|0:0\n28+1|29|CANCELLED by 1|1000|1101|0:0\n"
    assert ask(lines, EndingQuery("29", FIRST)) == {EndingQuery("29", FIRST): Ending("CANCELLED", 1101, "0:0")}


def test_two_lives_of_one_second_cannot_be_told_apart() -> None:
    lines = "7|7|REQUEUED|1000|1000|0:0\n7|7|RUNNING|1000|Unknown|0:0\n"
    assert ask(lines, EndingQuery("7", Life(1, 1000))) == {}


def test_a_change_of_size_is_no_life_of_its_own() -> None:
    lines = "7|7|RESIZING|1000|1500|0:0\n7|7|TIMEOUT|1000|1900|0:0\n"
    assert ask(lines, SEVEN) == {SEVEN: Ending("TIMEOUT", 1900, "0:0")}


def test_an_unknown_time_of_the_end_is_none() -> None:
    assert ask("7|7|FAILED|1000|Unknown|1:0\n", SEVEN)[SEVEN].ended_s is None


@pytest.mark.parametrize(
    "sacct", [DISABLED, Unavailable("sacct gave no answer within 5 s"), Answer(0, "7|7|FAILED\n", "")]
)
def test_without_accounting_the_controller_tells(sacct: Answer | Exception) -> None:
    ended = record(State="FAILED", SubmitTime="1000", EndTime="1400")
    slurm = FakeSlurm([ended], answers={"sacct": sacct})
    found = SlurmCluster(run=slurm).endings([SEVEN, EndingQuery("8", FIRST)])
    assert found == {SEVEN: Ending("FAILED", 1400, source="controller")}


@pytest.mark.parametrize(
    "now",
    [
        record(State="RUNNING", SubmitTime="1000", EndTime="9999"),
        record(State="COMPLETING", SubmitTime="1000"),
        record(State="FAILED", SubmitTime="3000"),
        record(State="FAILED", SubmitTime="500", RestartCnt="1"),
    ],
)
def test_the_controller_tells_nothing_of_another_life_or_a_running_one(now: dict[str, str]) -> None:
    slurm = FakeSlurm([now], answers={"sacct": DISABLED})
    assert SlurmCluster(run=slurm).endings([SEVEN]) == {}


def test_a_later_life_of_the_same_job_tells_that_the_earlier_was_requeued() -> None:
    slurm = FakeSlurm([record(State="PENDING", SubmitTime="2000", RestartCnt="1")], answers={"sacct": DISABLED})
    found = SlurmCluster(run=slurm).endings([SEVEN])
    assert found == {SEVEN: Ending("REQUEUED", None, source="controller")}


def test_neither_accounting_nor_controller_is_unavailable() -> None:
    slurm = FakeSlurm(answers={"sacct": DISABLED, "squeue": failed(1, "Unable to contact slurm controller")})
    with pytest.raises(Unavailable):
        SlurmCluster(run=slurm).endings([SEVEN])
