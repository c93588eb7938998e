"""Cancels, signals and comments: what is asked, and what the answers mean."""

from collections.abc import Callable

import pytest

from evalstopd.adapters.slurm.cluster import SlurmCluster
from evalstopd.adapters.slurm.run import Answer
from evalstopd.core.model import Life
from evalstopd.core.shift import Steer
from evalstopd.errors import NotRequeueable, Rejected, Unavailable
from evalstopd.ports import EndingQuery
from tests.adapters.slurm.fake_slurm import FakeSlurm, failed

DONE = Answer(0, "", "")
DENIED = "scancel: error: Kill job error on job id 23: Access/permission denied"
GONE = "scancel: error: Kill job error on job id 24: Invalid job id specified"
ENDING = "scancel: error: Kill job error on job id 9_1: Job/step already completing or completed"
DOWN = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
ACTIONS: list[Callable[[SlurmCluster], None]] = [lambda it: it.cancel(["7"]), lambda it: it.signal("7", "USR1")]


def slurm_with(answer: Answer | Exception) -> FakeSlurm:
    return FakeSlurm(answers={"scancel": answer, "scontrol": answer})


def test_many_cancels_are_one_call_for_running_jobs_by_exact_id() -> None:
    slurm = slurm_with(DONE)
    cluster = SlurmCluster(run=slurm)
    cluster.cancel(["7", "9_3", "7"])
    assert slurm.seen == [("scancel", "--state=RUNNING", "7", "9_3")]
    assert cluster.calls == 1


def test_nothing_to_cancel_is_no_call() -> None:
    cluster = SlurmCluster(run=slurm_with(DONE))
    cluster.cancel([])
    assert cluster.calls == 0


def test_a_signal_goes_to_the_batch_script_alone() -> None:
    slurm = slurm_with(DONE)
    SlurmCluster(run=slurm).signal("9_3", "USR1")
    assert slurm.seen == [("scancel", "--signal=USR1", "--batch", "9_3")]


def test_a_requeue_and_hold_is_for_a_job_that_runs_by_exact_id() -> None:
    slurm = slurm_with(DONE)
    cluster = SlurmCluster(run=slurm)
    cluster.requeue_hold("9_3")
    cluster.release("9_3")
    assert slurm.seen == [("scontrol", "requeuehold", "Incomplete", "9_3"), ("scontrol", "release", "9_3")]


@pytest.mark.parametrize("job_id", ["", "7,8", "9_[1-3]", "--help", "7 8", "Incomplete"])
def test_no_list_and_no_option_is_requeued_or_released(job_id: str) -> None:
    cluster = SlurmCluster(run=slurm_with(DONE))
    for act in (cluster.requeue_hold, cluster.release):
        with pytest.raises(Rejected, match="not the id"):
            act(job_id)
    assert cluster.calls == 0


@pytest.mark.parametrize(
    "complaint",
    ["Requested operation is presently disabled for job 2", "Only batch jobs are accepted or processed for job 3"],
)
def test_a_job_that_slurm_may_not_requeue_is_told_from_all_other_trouble(complaint: str) -> None:
    with pytest.raises(NotRequeueable, match="may not requeue it"):
        SlurmCluster(run=slurm_with(failed(1, complaint))).requeue_hold("2")


@pytest.mark.parametrize("complaint", ["Job is pending execution for job 8", "Invalid job id specified for job 9"])
def test_what_waits_or_is_gone_is_no_failure_of_a_requeue(complaint: str) -> None:
    SlurmCluster(run=slurm_with(failed(1, complaint))).requeue_hold("8")


@pytest.mark.parametrize("answer", [failed(1, DOWN), failed(1, ""), Unavailable("no answer within 5 s")])
def test_a_requeue_or_release_without_a_clear_answer_is_unavailable(answer: Answer | Exception) -> None:
    for act in (SlurmCluster(run=slurm_with(answer)).requeue_hold, SlurmCluster(run=slurm_with(answer)).release):
        with pytest.raises(Unavailable):
            act("7")


def test_without_the_right_nothing_is_requeued_or_released() -> None:
    for complaint in ("Access/permission denied for job 1", "Invalid user id for job 1"):
        cluster = SlurmCluster(run=slurm_with(failed(1, complaint)))
        for act in (cluster.requeue_hold, cluster.release):
            with pytest.raises(Rejected) as caught:
                act("1")
            assert not isinstance(caught.value, NotRequeueable)


@pytest.mark.parametrize("name", ["", "usr1", "10", "USR1 7", "-KILL", "USR1\n", "A" * 20])
def test_only_names_of_signals_reach_a_command_line(name: str) -> None:
    cluster = SlurmCluster(run=slurm_with(DONE))
    with pytest.raises(Rejected, match="signal"):
        cluster.signal("7", name)
    assert cluster.calls == 0


@pytest.mark.parametrize("act", ACTIONS)
def test_no_right_is_rejected(act: Callable[[SlurmCluster], None]) -> None:
    for answer in (failed(210, DENIED), failed(210, ""), failed(1, f"{DENIED}\n{GONE}")):
        with pytest.raises(Rejected, match="refused"):
            act(SlurmCluster(run=slurm_with(answer)))


@pytest.mark.parametrize("act", ACTIONS)
def test_jobs_that_are_gone_are_no_failure(act: Callable[[SlurmCluster], None]) -> None:
    act(SlurmCluster(run=slurm_with(failed(1, f"{GONE}\n{ENDING}"))))


@pytest.mark.parametrize("act", ACTIONS)
@pytest.mark.parametrize(
    "answer",
    [Unavailable("scancel gave no answer within 5 s"), failed(1, DOWN), failed(1, f"{GONE}\n{DOWN}"), failed(1, "")],
)
def test_no_clear_answer_is_an_unknown_outcome(act: Callable[[SlurmCluster], None], answer: Answer | Exception) -> None:
    with pytest.raises(Unavailable, match="outcome unknown"):
        act(SlurmCluster(run=slurm_with(answer)))


def test_a_signal_that_slurm_does_not_know_is_rejected() -> None:
    with pytest.raises(Rejected, match="Unknown job signal"):
        SlurmCluster(run=slurm_with(failed(1, "Unknown job signal: FOO"))).signal("7", "FOO")


@pytest.mark.parametrize("comment", ["mlflow_run=a evalstop=keep", "", 'it\'s "so" ü', "\udcff", "x" * 1000])
def test_a_comment_is_one_argument_whatever_it_holds(comment: str) -> None:
    slurm = slurm_with(DONE)
    SlurmCluster(run=slurm).set_comment("9_3", comment)
    assert slurm.seen == [("scontrol", "update", "JobId=9_3", f"Comment={comment}")]


def test_the_first_component_of_a_heterogeneous_job_is_written_alone_and_no_other_addition_passes() -> None:
    slurm = slurm_with(DONE)
    SlurmCluster(run=slurm).set_comment("7+0", "a")
    assert slurm.seen == [("scontrol", "update", "JobId=7+0", "Comment=a")]
    for job_id in ("7+1", "7+0+0", "+0", "7+0 Nice=1", "7,8+0"):
        with pytest.raises(Rejected, match="not the id of one job"):
            SlurmCluster(run=slurm).set_comment(job_id, "a")


@pytest.mark.parametrize("comment", ["a\nb", "a\x00", "\x1b[31m", "a\u2028b", "x" * 1001, "ü" * 501, "\ud800", "\x85"])
def test_a_comment_that_others_would_misread_is_rejected(comment: str) -> None:
    cluster = SlurmCluster(run=slurm_with(DONE))
    with pytest.raises(Rejected, match="comment"):
        cluster.set_comment("7", comment)
    assert cluster.calls == 0


@pytest.mark.parametrize(
    "complaint",
    [
        "Job has already finished for job 25",
        "26_1: Job has already finished",
        "26_1: Invalid user id",
        "Invalid job id specified for job 99999",
        "Access/permission denied for job 7",
    ],
)
def test_a_refused_comment_is_rejected(complaint: str) -> None:
    with pytest.raises(Rejected, match="was not set"):
        SlurmCluster(run=slurm_with(failed(1, complaint))).set_comment("7", "x")


def test_a_comment_without_a_clear_answer_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="Unexpected message"):
        SlurmCluster(run=slurm_with(failed(1, "Unexpected message received for job 3"))).set_comment("3", "x")


def test_many_jobs_are_moved_by_one_scontrol_that_reads_its_orders() -> None:
    slurm = slurm_with(DONE)
    cluster = SlurmCluster(run=slurm)
    cluster.steer([Steer("7", nice=-20), Steer("9", priority=500), Steer("8", nice=3, anew=True)])
    assert slurm.seen == [("scontrol",)]
    assert slurm.fed == [
        "update JobId=7 Nice=-20\nupdate JobId=9 Priority=500\nrelease 8\nupdate JobId=8 Nice=3\n"
    ]  # fmt: skip


def test_two_hundred_and_fifty_jobs_are_three_calls_and_none_is_none() -> None:
    cluster = SlurmCluster(run=slurm_with(DONE))
    cluster.steer([Steer(str(number), nice=1) for number in range(250)])
    assert cluster.calls == 3
    cluster.steer([])
    assert cluster.calls == 3


@pytest.mark.parametrize("name", ["7\nshutdown", "7,8", "7_[1-3]", "-1", ""])
def test_only_the_id_of_a_job_is_ever_an_order(name: str) -> None:
    slurm = slurm_with(DONE)
    with pytest.raises(Rejected):
        SlurmCluster(run=slurm).steer([Steer(name, nice=1)])
    assert slurm.fed == []


@pytest.mark.parametrize("line", ["Access/permission denied for job 3", "Invalid user id for job 2"])
def test_one_refusal_for_lack_of_rights_is_told(line: str) -> None:
    answer = failed(1, f"Invalid job id specified for job 999\n{line}")
    with pytest.raises(Rejected, match=line):
        SlurmCluster(run=slurm_with(answer)).steer([Steer("2", nice=1), Steer("3", nice=-1)])


@pytest.mark.parametrize(
    "line",
    [
        "Invalid job id specified for job 999",
        "Job has already finished for job 4",
        "Job is no longer pending execution for job 5",
    ],
)
def test_who_no_longer_waits_is_no_failure(line: str) -> None:
    SlurmCluster(run=slurm_with(failed(1, line))).steer([Steer("4", nice=1)])


def test_a_controller_that_is_away_leaves_the_outcome_unknown() -> None:
    with pytest.raises(Unavailable):
        SlurmCluster(run=slurm_with(failed(1, DOWN))).steer([Steer("4", nice=1)])


def lived(*lives: tuple[int, int]) -> Answer:
    return Answer(0, "".join(f"7|7|{submitted}|{ran}\n" for submitted, ran in lives), "")


def test_what_ran_before_a_life_is_asked_for_once() -> None:
    """A reused id has older lives than the job's restarts: they do not count."""
    slurm = FakeSlurm(answers={"sacct": lived((50, 999), (100, 30), (200, 40), (300, 0))})
    cluster, query = SlurmCluster(run=slurm), EndingQuery("7", Life(2, 300))
    assert cluster.served([query]) == {query: 70.0}
    assert cluster.served([query]) == {query: 70.0}
    assert cluster.calls == 1


def test_what_accounting_does_not_know_yet_is_left_out_and_asked_for_again() -> None:
    slurm = FakeSlurm(answers={"sacct": lived((200, 40))})
    cluster, query = SlurmCluster(run=slurm), EndingQuery("7", Life(2, 300))
    assert cluster.served([query]) == {}
    slurm.answers["sacct"] = lived((100, 30), (200, 40))
    assert cluster.served([query]) == {query: 70.0}


@pytest.mark.parametrize("answer", [failed(1, "Slurm accounting storage is disabled"), Answer(0, "7|7|x|1\n", "")])
def test_accounting_that_cannot_tell_is_unavailable(answer: Answer) -> None:
    with pytest.raises(Unavailable):
        SlurmCluster(run=FakeSlurm(answers={"sacct": answer})).served([EndingQuery("7", Life(1, 300))])
