"""The job's comment under several writers at once: the run is named, and nobody's word is lost by it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.adapters.mlflow import job_comment
from evalstopd.core.comment import says_keep
from evalstopd.core.model import Rung
from evalstopd.core.wishes import parse_comment
from tests.fakes.comment_tools import CommentTools

READ, WRITE = "squeue", "scontrol"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommentTools:
    made = CommentTools(tmp_path)
    monkeypatch.setenv("PATH", made.path)
    return made


def named(tools: CommentTools, comment: str, others: dict[int, str] | None = None) -> tuple[str, int]:
    """Return the comment after the run `r` was named in it, and how often it was paused."""
    pauses: list[None] = []
    tools.lay(comment, others or {})
    job_comment.name_run("7", "r", lambda: pauses.append(None))
    return tools.comment, len(pauses)


def test_alone_it_looks_right_before_its_write_and_a_moment_after(tools: CommentTools) -> None:
    assert named(tools, "evalstop=warn, note") == ("mlflow_run=r evalstop=warn, note", 1)
    assert tools.calls == [READ, READ, WRITE, READ]


def test_what_is_named_already_is_left(tools: CommentTools) -> None:
    assert named(tools, "mlflow_run=r evalstop=keep") == ("mlflow_run=r evalstop=keep", 0)
    assert tools.calls == [READ]


def test_a_word_that_comes_after_the_first_look_is_kept(tools: CommentTools) -> None:
    assert named(tools, "a", {1: "a evalstop=keep"}) == ("mlflow_run=r a evalstop=keep", 1)


def test_a_word_that_comes_in_between_and_is_written_away_is_put_back(tools: CommentTools) -> None:
    assert named(tools, "a", {1: "a evalstop=keep", 3: "a"}) == ("mlflow_run=r a evalstop=keep", 2)


def test_its_own_word_is_written_again_where_another_wrote_it_away(tools: CommentTools) -> None:
    """The other one read before our write, and wrote after it: a veto, say."""
    assert named(tools, "a", {3: "a evalstop=keep"}) == ("mlflow_run=r a evalstop=keep", 2)


@pytest.mark.parametrize("after", [1, 3])
def test_a_veto_that_another_writes_away_meanwhile_is_put_back(tools: CommentTools, after: int) -> None:
    """Another process of the training, which had read the comment before the veto came."""
    wrote = "mlflow_run=s evalstop=enforce"
    comment, _ = named(tools, "evalstop=keep x", {after: wrote})

    assert parse_comment(comment).keep
    assert parse_comment(comment).run_id == "r"
    assert comment.endswith("evalstop=keep x")


def test_who_is_written_away_each_time_gives_up_and_says_so(tools: CommentTools) -> None:
    with pytest.raises(ValueError, match="others write the comment"):
        named(tools, "a", {3: "a", 6: "a", 9: "a"})

    assert tools.calls.count(WRITE) == 3


def test_what_was_replaced_on_purpose_stays_replaced() -> None:
    assert job_comment.restored("evalstop=enforce evalstop_k=3 x", "evalstop_k=4") == "evalstop_k=4 x"
    assert job_comment.restored("evalstop=warn x", "evalstop=keep x") == "evalstop=keep x"
    assert job_comment.restored("evalstop=enforce", "") == ""


WORDS = st.lists(
    st.sampled_from(
        ["evalstop=keep", "evalstop=off", "EVALSTOP : off", "evalstop=enforce", "evalstop_k=3", "x", "y=1"]
    ),
    max_size=4,
    unique=True,
).map(" ".join)


@given(WORDS, WORDS)
def test_what_is_put_back_never_lets_the_daemon_do_more(first: str, held: str) -> None:
    now, after = parse_comment(held), parse_comment(job_comment.restored(first, held))

    assert after.keep == (says_keep(first) or now.keep)
    assert after.rung is not Rung.ENFORCE or after.faults or now.rung is Rung.ENFORCE
    assert after.faults or not now.faults
