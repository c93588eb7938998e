"""squeue's answer as a whole: what users write changes no other record, and in doubt there is no answer."""

import re

import pytest
from hypothesis import strategies as st

from evalstopd.adapters.slurm.cluster import SlurmCluster
from evalstopd.adapters.slurm.run import Answer
from evalstopd.core.model import Job, Phase
from evalstopd.errors import Rejected, Unavailable
from tests.adapters.slurm.fake_slurm import FakeSlurm, failed, numbered, record

FORGED = "x\n999|RUNNING|0|mlflow_run=evil\n"
any_text = st.text(st.characters(codec=None), max_size=60)


def queue_of(*records: dict[str, str]) -> tuple[Job, ...]:
    return SlurmCluster(run=FakeSlurm(records)).queue().jobs


def test_a_record_becomes_a_job() -> None:
    (job,) = queue_of(record(NodeList="n[0-1]", HetJobID="5", Nice="-20"))
    assert job == Job(
        cluster="evs",
        job_id="7",
        raw_id=7,
        uid=1001,
        user="alice",
        phase=Phase.RUNNING,
        state="RUNNING",
        submitted_s=1796002372,
        started_s=1796002373,
        restarts=0,
        gpus=1,
        account="ml",
        qos="normal",
        partition="gpu",
        priority=1000,
        nice=-20,
        comment="mlflow_run=abc",
        name="train",
        work_dir="/home/alice",
        nodes=("n0", "n1"),
        het_id=5,
        eligible_s=1796002372,
        time_limit_s=6000,
        reason="None",
    )
    assert job.holds_gpus


def test_tasks_are_named_by_their_array_and_those_that_wait_are_one_job() -> None:
    running = record(JobID="12", ArrayJobID="9", ArrayTaskID="2")
    last = record(JobID="9", ArrayJobID="9", ArrayTaskID="3")
    rest = record(JobID="20", ArrayJobID="20", ArrayTaskID="4-9%2", State="PENDING")
    jobs = queue_of(running, last, rest)
    assert [(job.job_id, job.raw_id) for job in jobs] == [("9_2", 12), ("9_3", 9), ("20_[4-9%2]", 20)]
    assert jobs[2].phase is Phase.PENDING


def test_a_pending_jobs_forecast_is_no_start_and_its_allotment_holds_nothing() -> None:
    (job,) = queue_of(record(State="PENDING", StartTime="1827538373"))
    assert job.started_s is None
    assert not job.holds_gpus


def test_a_running_jobs_end_is_that_of_its_time_limit_and_an_unlimited_one_has_none() -> None:
    limited, unlimited = record(EndTime="1796005973"), record(JobID="8", ArrayJobID="8")
    pending = record(JobID="9", ArrayJobID="9", State="PENDING", EndTime="1827538373")
    assert [job.limit_end_s for job in queue_of(limited, unlimited, pending)] == [1796005973, None, None]


@pytest.mark.parametrize(("days", "known"), [(364, True), (365, False), (400, False)])
def test_the_year_that_slurm_gives_in_a_partition_without_a_limit_is_no_limit(days: int, known: bool) -> None:
    """Its end, and the GPU-hours up to it, would be made up."""
    started_s = 1796002373
    told = record(EndTime=str(started_s + days * 86400), TimeLimit=f"{days}-00:00:00")
    (job,) = queue_of(told)
    assert (job.limit_end_s is not None, job.time_limit_s is not None) == (known, known)


@pytest.mark.parametrize(
    ("text", "limit_s"),
    [
        ("1:00", 60),
        ("10:00", 600),
        ("2:03:04", 7384),
        ("1-02:04:00", 93840),
        ("UNLIMITED", None),
        ("NOT_SET", None),
        ("Partition_Limit", None),
        ("INVALID", None),
    ],
)
def test_a_time_limit_is_told_of_pending_jobs_too(text: str, limit_s: int | None) -> None:
    assert [job.time_limit_s for job in queue_of(record(TimeLimit=text, State="PENDING"))] == [limit_s]


def test_unset_texts_are_empty() -> None:
    (job,) = queue_of(record(Comment="(null)", Account="(null)", QOS="N/A", NodeList="", StartTime="N/A"))
    assert (job.comment, job.account, job.qos, job.nodes, job.started_s) == ("", "", "", (), None)


def test_the_separator_is_random_long_and_not_among_the_arguments() -> None:
    """Arguments can be read by every user of the machine while squeue runs."""
    slurm = FakeSlurm([record()])
    cluster = SlurmCluster(run=slurm)
    words = set()
    for _ in range(20):
        cluster.queue()
        (word,) = set(re.findall("[0-9a-f]{24}", slurm.formats[-1]))
        words.add(word)
        assert not any(word in argument for argument in slurm.seen[-1])
    assert len(words) == 20


def test_thousands_of_records_are_read() -> None:
    jobs = queue_of(*numbered(5000, Comment="c" * 1000))
    assert len(jobs) == 5000
    assert {job.comment for job in jobs} == {"c" * 1000}


@pytest.mark.parametrize("lost", [1, 2, 10, 30, 200, 400, 700])
def test_a_cut_answer_is_no_answer(lost: int) -> None:
    slurm = FakeSlurm(numbered(3), tamper=lambda text: text[:-lost])
    with pytest.raises(Unavailable, match="cut short"):
        SlurmCluster(run=slurm).queue()


def test_an_answer_with_its_middle_lost_is_no_answer() -> None:
    slurm = FakeSlurm(numbered(3), tamper=lambda text: text[:100] + text[len(text) // 2 :])
    with pytest.raises(Unavailable):
        SlurmCluster(run=slurm).queue()


def test_an_answer_in_the_default_format_is_no_answer() -> None:
    slurm = FakeSlurm(answers={"squeue": Answer(0, "  7  gpu train alice R 0:03 1 n0\n", "")})
    with pytest.raises(Unavailable, match="another format"):
        SlurmCluster(run=slurm).queue()


@pytest.mark.parametrize(
    "broken",
    [
        {"JobID": "x"},
        {"JobID": ""},
        {"JobID": "7 "},
        {"JobID": "\u0667"},
        {"UserID": "alice"},
        {"UserID": "N/A"},
        {"SubmitTime": "2026-01-01T00:00:00"},
        {"SubmitTime": "N/A"},
        {"StartTime": "soon"},
        {"RestartCnt": "N/A"},
        {"ArrayTaskID": "3", "ArrayJobID": "N/A"},
        {"Cluster": ""},
        {"Cluster": "(null)"},
    ],
)
def test_one_unreadable_record_spoils_the_whole_answer(broken: dict[str, str]) -> None:
    with pytest.raises(Unavailable):
        queue_of(*numbered(2), record(**broken))


def test_a_job_listed_twice_spoils_the_answer() -> None:
    with pytest.raises(Unavailable, match="raw id twice: 7"):
        queue_of(record(), record(Comment="other"))
    task = {"ArrayJobID": "9", "ArrayTaskID": "1"}
    with pytest.raises(Unavailable, match="job id twice: 9_1"):
        queue_of(record(JobID="10", **task), record(JobID="11", **task))


def test_two_clusters_in_one_answer_spoil_it() -> None:
    with pytest.raises(Unavailable, match="several clusters: evs, other"):
        queue_of(record(), record(JobID="8", Cluster="other"))


def test_a_cluster_that_changes_its_name_is_unavailable() -> None:
    slurm = FakeSlurm([record()])
    cluster = SlurmCluster(run=slurm)
    cluster.queue()
    slurm.records = [record(Cluster="other")]
    with pytest.raises(Unavailable, match="calls itself other, not evs"):
        cluster.queue()


def test_an_empty_queue_asks_for_the_name_once() -> None:
    config = Answer(0, "Configuration data\nClusterName             = evs\nCommunicationParameters = (null)\n", "")
    slurm = FakeSlurm(answers={"scontrol": config})
    cluster = SlurmCluster(run=slurm)
    for _ in range(3):
        queue = cluster.queue()
        assert (queue.cluster, queue.jobs) == ("evs", ())
    assert cluster.calls == 4


def test_an_empty_queue_without_a_name_is_unavailable() -> None:
    slurm = FakeSlurm(answers={"scontrol": Answer(0, "no such thing\n", "")})
    with pytest.raises(Unavailable, match="names no cluster"):
        SlurmCluster(run=slurm).queue()


def test_a_failed_squeue_is_unavailable_and_never_an_empty_queue() -> None:
    complaint = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
    slurm = FakeSlurm(answers={"squeue": failed(1, complaint)})
    for ask in (SlurmCluster(run=slurm).queue, lambda: SlurmCluster(run=slurm).look(["7"])):
        with pytest.raises(Unavailable, match="Unable to contact slurm controller"):
            ask()


def test_the_queue_is_one_call() -> None:
    cluster = SlurmCluster(run=FakeSlurm(numbered(1000)))
    cluster.queue()
    assert cluster.calls == 1


def test_a_look_is_one_call_by_exact_ids_and_leaves_unknown_ones_out() -> None:
    ended = record(State="CANCELLED", EndTime="1796002503")
    slurm = FakeSlurm([ended, record(JobID="12", ArrayJobID="9", ArrayTaskID="2")])
    cluster = SlurmCluster(run=slurm)
    seen = cluster.look(["9_2", "7", "99999", "7"])
    assert list(seen) == ["9_2", "7"]
    assert seen["7"].phase is Phase.ENDED
    assert cluster.calls == 1
    assert slurm.seen[0][-2:] == ("--states=all", "--jobs=9_2,7,99999")


def test_a_look_at_an_arrays_raw_id_shows_none_of_its_tasks() -> None:
    slurm = FakeSlurm([record(JobID="9", ArrayJobID="9", ArrayTaskID="3")])
    assert SlurmCluster(run=slurm).look(["9"]) == {}


def test_a_look_at_one_unknown_id_shows_nothing() -> None:
    slurm = FakeSlurm(answers={"squeue": failed(1, "slurm_load_jobs error: Invalid job id specified")})
    assert SlurmCluster(run=slurm).look(["99999"]) == {}


def test_the_same_complaint_about_the_whole_queue_is_no_empty_queue() -> None:
    slurm = FakeSlurm(answers={"squeue": failed(1, "slurm_load_jobs error: Invalid job id specified")})
    with pytest.raises(Unavailable):
        SlurmCluster(run=slurm).queue()


def test_nothing_to_look_at_is_no_call() -> None:
    cluster = SlurmCluster(run=FakeSlurm())
    assert cluster.look([]) == {}
    assert cluster.calls == 0


@pytest.mark.parametrize(
    "job_id", ["", "-u", "7 8", "7,8", "9_[0-3]", "9_", "_1", "7\n", "--me", "\u0667", "7.0", "7+1"]
)
def test_only_exact_ids_reach_a_command_line(job_id: str) -> None:
    cluster = SlurmCluster(run=FakeSlurm())
    for ask in (lambda: cluster.look([job_id]), lambda: cluster.cancel(["7", job_id])):
        with pytest.raises(Rejected, match="not the id of one job"):
            ask()
    assert cluster.calls == 0
