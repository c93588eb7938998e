"""slurm_link: its pure half, and its words under several writers at once; a real cluster tries it in tests/e2e."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples.needs import needs
from tests.fakes.comment_tools import CommentTools


@pytest.fixture(scope="module")
def link() -> Any:
    return needs("mlflow", "mini_rlhf.slurm_link")


@pytest.mark.parametrize(
    ("comment", "merged"),
    [
        ("", "mlflow_run=new"),
        ("evalstop=keep", "mlflow_run=new evalstop=keep"),
        ("mlflow_run=old", "mlflow_run=new"),
        ("evalstop=keep;mlflow_run=old, my note", "mlflow_run=new evalstop=keep;my note"),
        ("a\nmlflow_run=old\nmlflow_run=older b", "mlflow_run=new a\nb"),
        ("not_mlflow_run=x", "mlflow_run=new not_mlflow_run=x"),
    ],
)
def test_merging_names_one_run_and_keeps_the_rest(link: Any, comment: str, merged: str) -> None:
    assert link.merge(comment, "new") == merged


@settings(deadline=None)
@given(st.lists(st.sampled_from(["evalstop=keep", "x", "mlflow_run=old", "é=ü", "mlflow_run="]), max_size=6))
def test_merging_twice_is_merging_once(link: Any, words: list[str]) -> None:
    once = link.merge(";".join(words), "new")
    kept = [word for word in words if not word.startswith("mlflow_run=")]

    assert link.merge(once, "new") == once
    assert once.replace(";", " ").split() == ["mlflow_run=new", *kept]


@pytest.mark.parametrize("run_id", ["", "a b", "a;evalstop=off", "a\n", "x" * 65])
def test_an_id_that_would_forge_words_is_refused(link: Any, run_id: str) -> None:
    with pytest.raises(ValueError, match="no run id"):
        link.merge("", run_id)


def test_the_comment_is_read_whole(link: Any) -> None:
    """Newlines and bars belong to the comment; (null) is Slurm's word for none."""
    assert link.parse_comment("a\n9|RUNNING b~R\n", "~R") == "a\n9|RUNNING b"
    assert link.parse_comment("(null)~R\n", "~R") == ""


@pytest.mark.parametrize("output", ["", "\n", "one~R\ntwo~R\n", "cut off"])
def test_any_other_number_of_jobs_is_refused(link: Any, output: str) -> None:
    with pytest.raises(ValueError, match="exactly one job"):
        link.parse_comment(output, "~R")


def test_the_run_is_named_again_where_another_wrote_it_away(
    link: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `evalstopd keep` does that read the comment before: both words stand in the end."""
    tools = CommentTools(tmp_path)
    monkeypatch.setenv("PATH", tools.path)
    tools.lay("a", {2: "a evalstop=keep"})
    link.name_run("7", "new", lambda: None)
    assert tools.comment == "mlflow_run=new a evalstop=keep"
    tools.lay("a", {2: "a", 4: "a", 6: "a"})
    with pytest.raises(ValueError, match="others write it"):
        link.name_run("7", "new", lambda: None)


def test_a_task_is_addressed_alone(link: Any) -> None:
    """The last task's raw id is the array's: it must not be used."""
    task = {"SLURM_JOB_ID": "7", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "3"}
    assert link.exact_job_id(task) == "7_3"
    assert link.exact_job_id({"SLURM_JOB_ID": "8"}) == "8"
    assert link.exact_job_id({}) is None
    assert link.run_tags({**task, "SLURM_CLUSTER_NAME": "evs"}) == {
        "slurm.job_id": "7",
        "slurm.cluster": "evs",
    }
    assert link.run_tags(task) == {"slurm.job_id": "7"}
