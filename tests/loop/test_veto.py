"""The owner's veto by command: one job, one task, a whole array; other words of the comments stay."""

import pytest

from evalstopd.errors import Rejected, Unavailable
from evalstopd.veto import keep
from tests.fakes.cluster import FakeCluster


def cluster_of(**comments: str) -> FakeCluster:
    """Return a cluster with these tasks of array 42, by number or by the list of those that wait together."""
    cluster = FakeCluster(lambda: 1000.0)
    for task, comment in comments.items():
        cluster.submit(comment=comment, job_id=f"42_{task.removeprefix('t')}")
    return cluster


def comments(cluster: FakeCluster) -> list[str]:
    return [job.comment for job in cluster.jobs.values()]


def test_an_arrays_id_vetoes_all_its_tasks_and_says_how_many() -> None:
    cluster = cluster_of(t1="a=b", t2="a=b", **{"[3-9:2,11%2]": "a=b"})
    cluster.submit(comment="other", job_id="420_1")

    assert keep(cluster, "42") == "array 42: its 7 tasks in the queue say evalstop=keep: they will not be stopped"
    assert comments(cluster) == ["a=b evalstop=keep"] * 3 + ["other"]
    cluster.calls.clear()
    assert keep(cluster, "42").startswith("array 42: its 7 tasks")
    assert "set_comment" not in cluster.calls


def test_tasks_with_words_of_their_own_keep_them() -> None:
    cluster = cluster_of(t1="mlflow_run=r1", t2="mlflow_run=r2 evalstop=warn", t3="evalstop=keep")

    assert "its 3 tasks" in keep(cluster, "42")
    assert comments(cluster) == ["mlflow_run=r1 evalstop=keep", "mlflow_run=r2 evalstop=keep", "evalstop=keep"]


def test_waiting_tasks_that_cannot_be_written_apart_are_named() -> None:
    cluster = cluster_of(t1="mlflow_run=r1", **{"[2-4]": ""})
    with pytest.raises(Unavailable, match=r"1 tasks of array 42 now say evalstop=keep, these do not: 42_\[2-4\]; name"):
        keep(cluster, "42")

    assert comments(cluster) == ["mlflow_run=r1 evalstop=keep", ""]


def test_an_id_that_is_nothing_is_unknown_and_a_strangers_array_is_refused() -> None:
    cluster = cluster_of(t1="", t2="")
    cluster.caller = 1002
    for name, why in (("43", "unknown to Slurm"), ("42_9", "unknown to Slurm"), ("42", "permission denied")):
        with pytest.raises(Rejected, match=why):
            keep(cluster, name)

    assert comments(cluster) == ["", ""]
