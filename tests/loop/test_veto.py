"""The owner's veto by command: one job, one task, a whole array; other words of the comments stay."""

from dataclasses import dataclass, field, replace

import pytest

from evalstopd.errors import Rejected, Unavailable
from evalstopd.undo import Caller, parse_target, undo
from evalstopd.veto import keep
from tests.fakes.cluster import FakeCluster


def cluster_of(**comments: str) -> FakeCluster:
    """Return a cluster with these tasks of array 42, by number or by the list of those that wait together."""
    cluster = FakeCluster(lambda: 1000.0)
    for task, comment in comments.items():
        cluster.submit(comment=comment, job_id=f"42_{task.removeprefix('t')}")
    return cluster


def kept(cluster: FakeCluster, name: str) -> str:
    return keep(cluster, name, lambda: None)


def comments(cluster: FakeCluster) -> list[str]:
    return [job.comment for job in cluster.jobs.values()]


def test_an_arrays_id_vetoes_all_its_tasks_and_says_how_many() -> None:
    cluster = cluster_of(t1="a=b", t2="a=b", **{"[3-9:2,11%2]": "a=b"})
    cluster.submit(comment="other", job_id="420_1")

    assert kept(cluster, "42") == "array 42: its 7 tasks in the queue say evalstop=keep: they will not be stopped"
    assert comments(cluster) == ["a=b evalstop=keep"] * 3 + ["other"]
    cluster.calls.clear()
    assert kept(cluster, "42").startswith("array 42: its 7 tasks")
    assert "set_comment" not in cluster.calls


def test_tasks_with_words_of_their_own_keep_them() -> None:
    cluster = cluster_of(t1="mlflow_run=r1", t2="mlflow_run=r2 evalstop=warn", t3="evalstop=keep")

    assert "its 3 tasks" in kept(cluster, "42")
    assert comments(cluster) == ["mlflow_run=r1 evalstop=keep", "mlflow_run=r2 evalstop=keep", "evalstop=keep"]


def test_waiting_tasks_that_cannot_be_written_apart_are_named() -> None:
    cluster = cluster_of(t1="mlflow_run=r1", **{"[2-4]": ""})
    with pytest.raises(Unavailable, match=r"1 tasks of array 42 now say evalstop=keep, these do not: 42_\[2-4\]; name"):
        kept(cluster, "42")

    assert comments(cluster) == ["mlflow_run=r1 evalstop=keep", ""]


def test_an_id_that_is_nothing_is_unknown_and_a_strangers_array_is_refused() -> None:
    cluster = cluster_of(t1="", t2="")
    cluster.caller = 1002
    for name, why in (("43", "unknown to Slurm"), ("42_9", "unknown to Slurm"), ("42", "another user's")):
        with pytest.raises(Rejected, match=why):
            kept(cluster, name)

    assert comments(cluster) == ["", ""]


@pytest.mark.parametrize("name", ["1", "1+0", "1+1", "2"])
def test_each_component_of_a_heterogeneous_job_keeps_its_own_words_and_gets_the_veto(name: str) -> None:
    cluster = FakeCluster(lambda: 1000.0)
    for comment in ("mlflow_run=r1 evalstop=warn", "project=x"):
        cluster.submit(comment=comment, het_id=1)
    cluster.submit(comment="other")

    said = "heterogeneous job 1: its 2 components say evalstop=keep: it will not be stopped"
    assert kept(cluster, name) == said
    assert comments(cluster) == ["mlflow_run=r1 evalstop=keep", "project=x evalstop=keep", "other"]
    cluster.calls.clear()
    assert kept(cluster, name) == said
    assert "set_comment" not in cluster.calls


def test_a_component_of_what_is_not_heterogeneous_is_refused_with_the_words_to_type() -> None:
    cluster = cluster_of(t1="")
    cluster.submit(comment="a=b")
    with pytest.raises(Rejected, match=r"no heterogeneous job in the queue has the id 2: name it without \+1"):
        kept(cluster, "2+1")
    with pytest.raises(Rejected, match="job 42 is unknown"):
        kept(cluster, "42+1")

    assert comments(cluster) == ["", "a=b"]


def test_undoing_a_held_heterogeneous_job_leaves_the_words_of_its_other_components() -> None:
    """Without a store, for its owner: whoever held it."""
    cluster = FakeCluster(lambda: 1000.0)
    for comment in ("mlflow_run=r1", "project=x"):
        cluster.submit(comment=comment, het_id=1, held=True, restarts=1)
    undo(cluster, parse_target("1"), Caller(1001, lambda: False), None)

    assert comments(cluster) == ["mlflow_run=r1 evalstop=keep", "project=x"]


@dataclass(slots=True)
class Racing(FakeCluster):
    """A cluster on which others write comments: `others` has what comes after which call of keep's, or at its pause."""

    others: list[tuple[str, str, str]] = field(default_factory=list)
    pauses: int = 0

    def _call(self, name: str) -> None:
        FakeCluster._call(self, name)
        self.write(name)

    def pause(self) -> None:
        self.pauses += 1
        self.write("pause")

    def write(self, name: str) -> None:
        if self.others and self.others[0][0] == name:
            _, job, comment = self.others.pop(0)
            self.jobs[job] = replace(self.jobs[job], comment=comment)


def racing(*others: tuple[str, str, str]) -> Racing:
    return Racing(lambda: 1000.0, others=list(others))


def test_a_veto_that_a_script_writes_away_is_written_again_before_it_is_said_to_stand() -> None:
    """The plugin had read the comment before the veto was there."""
    cluster = racing(("pause", "1", "mlflow_run=r a=b"))
    cluster.submit(comment="a=b")

    assert keep(cluster, "1", cluster.pause) == "job 1 now says evalstop=keep: it will not be stopped"
    assert comments(cluster) == ["mlflow_run=r a=b evalstop=keep"]
    assert cluster.pauses == 2


def test_a_veto_that_stands_already_is_looked_at_a_moment_later_too() -> None:
    cluster = racing(("pause", "1", "mlflow_run=r"))
    cluster.submit(comment="evalstop=keep")

    assert "evalstop=keep" in keep(cluster, "1", cluster.pause)
    assert comments(cluster) == ["mlflow_run=r evalstop=keep"]


def test_a_veto_that_is_written_away_each_time_is_not_said_to_stand() -> None:
    cluster = racing(*[("pause", "1", "a=b")] * 3)
    cluster.submit(comment="a=b")
    with pytest.raises(Unavailable, match="the comment of job 1 does not say evalstop=keep: try again"):
        keep(cluster, "1", cluster.pause)

    assert cluster.calls.count("set_comment") == 3


def test_what_a_script_writes_between_the_looks_is_kept() -> None:
    cluster = racing(("look", "1", "mlflow_run=r a=b"))
    cluster.submit(comment="a=b")
    keep(cluster, "1", cluster.pause)

    assert comments(cluster) == ["mlflow_run=r a=b evalstop=keep"]


def test_tasks_and_components_are_looked_at_a_moment_later_too() -> None:
    array, parts = racing(("pause", "42_2", "mlflow_run=r")), racing(("pause", "2", "mlflow_run=s"))
    for task in (1, 2):
        array.submit(comment="a=b", job_id=f"42_{task}")
        parts.submit(comment="", het_id=1)
    keep(array, "42", array.pause)
    keep(parts, "1", parts.pause)

    assert comments(array) == ["a=b evalstop=keep", "mlflow_run=r evalstop=keep"]
    assert comments(parts) == ["evalstop=keep", "mlflow_run=s evalstop=keep"]


def test_a_stranger_is_told_whose_the_job_is_and_nothing_that_he_could_do() -> None:
    cluster = FakeCluster(lambda: 1000.0, caller=1002)
    cluster.submit(comment="a=b")
    for part in (2, 3):
        cluster.submit(comment="a=b", het_id=2, job_id=str(part))
    for name, job in (("1", "1"), ("2+1", "2")):
        with pytest.raises(Rejected) as refused:
            kept(cluster, name)
        assert str(refused.value) == f"job {job} is another user's: only its owner or an operator may keep it"

    assert comments(cluster) == ["a=b"] * 3


@pytest.mark.parametrize("parted", ["a=b\nc=d", "a=b,c=d", "a=b\t c=d", "a=b\x1fc=d", "a=b  c=d"])
def test_what_else_the_veto_changes_in_a_comment_is_said(parted: str) -> None:
    cluster = FakeCluster(lambda: 1000.0)
    cluster.submit(comment=parted)
    cluster.submit(comment=" a=b c=d ")
    said = "line breaks, commas and the like between the words of the comment became single spaces"

    assert kept(cluster, "1") == f"job 1 now says evalstop=keep: it will not be stopped; {said}"
    assert kept(cluster, "2") == "job 2 now says evalstop=keep: it will not be stopped"
    assert comments(cluster) == ["a=b c=d evalstop=keep"] * 2
    assert kept(cluster, "1") == "job 1 already says evalstop=keep: it will not be stopped"


def test_a_comment_that_cannot_be_written_is_left_and_its_owner_told_what_to_type() -> None:
    cluster = FakeCluster(lambda: 1000.0)
    cluster.full.add(cluster.submit(comment="a=\x01"))
    ended = cluster.submit()
    cluster.finish(ended)
    with pytest.raises(Rejected, match=r"nothing was set: .* scontrol update JobId=1 Comment=evalstop=keep$"):
        kept(cluster, "1")
    with pytest.raises(Rejected, match=r"^job 2 has ended$"):
        kept(cluster, ended)

    assert comments(cluster)[0] == "a=\x01"
