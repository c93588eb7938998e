"""What owners may write into the comment, and what is never understood as something else."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.comment import words_of
from evalstopd.core.model import Mode, Rung
from evalstopd.core.wishes import Signal, Wishes, merge_token, parse_comment
from tests.growth import MOST, grows_by

NAMES = st.sampled_from(["evalstop", "EVALSTOP", "Evalstop", "EvalStop", "eVALSTOP"])
SIGNS = st.sampled_from(["=", ":", " = ", "= ", " :", ":  ", "\t=\n"])
QUOTES = st.sampled_from(["", "'", '"', "`", "\u201c"])
OTHERS = st.lists(st.sampled_from(["mlflow_run=a", "x", "project=y", "a:b", "=", ":", "c= d"]), max_size=4)


@st.composite
def spelled(draw: st.DrawFn, value: str) -> str:
    """A comment with one word of ours in some spelling, among other words."""
    inside, around = draw(QUOTES), draw(QUOTES)
    named = draw(st.sampled_from([value, value.upper(), value.title()]))
    word = f"{around}{draw(NAMES)}{draw(SIGNS)}{inside}{named}{inside}{around}"
    return draw(st.sampled_from([" ", ",", "; ", "\n"])).join([*draw(OTHERS), word, *draw(OTHERS)])


def test_every_token_is_read() -> None:
    comment = (
        "mlflow_run=abc123, evalstop=enforce; evalstop_metric=eval/gold_reward evalstop_mode=min "
        "evalstop_k=3 evalstop_signal=USR1@60"
    )

    assert parse_comment(comment) == Wishes(
        "abc123", Rung.ENFORCE, False, "eval/gold_reward", Mode.MIN, 3, Signal("USR1", 60), ()
    )


@pytest.mark.parametrize("named", ["held-out", "org/squad_v2:test", "8f2e1c", "held-out@8f2e1c=="])
def test_the_dataset_is_named_by_name_digest_or_both(named: str) -> None:
    assert parse_comment(f"evalstop_dataset={named}") == Wishes(dataset=named)


def test_the_job_whose_work_goes_on_is_read_beside_all_else() -> None:
    wishes = parse_comment("evalstop=keep evalstop_undo=12_3 mlflow_run=r")

    assert (wishes.undo, wishes.keep, wishes.run_id, wishes.faults) == ("12_3", True, "r", ())


@pytest.mark.parametrize("comment", ["", "my favourite run", "(null)", "project=x team=y", "= == ,;"])
def test_other_peoples_words_mean_nothing(comment: str) -> None:
    assert parse_comment(comment) == Wishes()


@pytest.mark.parametrize(
    "comment",
    [
        "evalstop=enforce evalstop=off",
        "mlflow_run=a mlflow_run=b",
        "mlflow_run=a mlflow_run=a",
        "evalstop=maybe",
        "evalstop=",
        "evalstop_k=0",
        "evalstop_k=-1",
        "evalstop_k=2.5",
        "evalstop_mode=up",
        "evalstop_signal=KILL@5",
        "evalstop_signal=USR1",
        "evalstop_typo=1",
        "evalstop_undo=7,evalstop_undo=8",
        "evalstop_undo=7_[1-3]",
        "evalstop_undo=",
        "mlflow_run=../../x",
        "mlflow_run=" + "a" * 65,
        "evalstop_metric=x%2e",
        "evalstop_dataset=a evalstop_dataset=b",
        "evalstop_dataset=",
        "evalstop_dataset=x%2e",
        "evalstop_dataset=" + "a" * 266,
    ],
)
def test_an_unknown_value_or_a_duplicate_is_a_fault(comment: str) -> None:
    assert parse_comment(comment).faults


def test_keep_holds_even_beside_a_fault() -> None:
    assert parse_comment("evalstop=keep evalstop=enforce evalstop_k=x").keep


@pytest.mark.parametrize("comment", ["EVALSTOP=keep", "evalstop:keep", "evalstop = keep", "x;Evalstop=Keep,y"])
def test_a_veto_is_understood_however_it_is_spelled(comment: str) -> None:
    assert parse_comment(comment).keep


@given(
    st.sampled_from(["keep", "off", "observe", "warn"]).flatmap(lambda value: st.tuples(st.just(value), spelled(value)))
)
def test_what_holds_us_back_is_understood_in_any_spelling_or_ambiguous(case: tuple[str, str]) -> None:
    value, comment = case
    wishes = parse_comment(comment)

    assert wishes.keep == (value == "keep")
    assert wishes.faults or wishes.keep or (wishes.rung is not None and wishes.rung.word == value)


@pytest.mark.parametrize(
    ("comment", "rung"),
    [
        ("EVALSTOP=off", Rung.OFF),
        ("evalstop:off", Rung.OFF),
        ("EvalStop = 'Observe'", Rung.OBSERVE),
        ('{"evalstop": "warn"}', Rung.WARN),
        ("--evalstop=off", Rung.OFF),
        ("note: evalstop= OFF.", Rung.OFF),
    ],
)
def test_a_lower_rung_is_understood_where_it_is_clear(comment: str, rung: Rung) -> None:
    assert parse_comment(f"mlflow_run=a {comment}, b") == Wishes(run_id="a", rung=rung)


@given(spelled("enforce"))
def test_leave_to_enforce_is_given_in_its_documented_spelling_alone(comment: str) -> None:
    wishes = parse_comment(comment)

    assert wishes.faults or "evalstop=enforce" in words_of(comment)
    assert (wishes.rung is Rung.ENFORCE) == ("evalstop=enforce" in words_of(comment))


@given(spelled("anything"), st.sampled_from(["_k", "_mode", "_signal", "-off", "_undo", ".metric"]))
def test_no_word_of_ours_is_ignored(comment: str, more: str) -> None:
    assert parse_comment(comment).faults
    assert parse_comment(re.sub("(?i)evalstop", lambda found: found[0] + more, comment)).faults


@pytest.mark.parametrize(
    "comment",
    [
        "evalstop off",
        "no-evalstop",
        "no_evalstop=1",
        "evalstop-off",
        "evalstop==off",
        "evalstop\uff1aoff",
        "comment=evalstop=off",
        "my.evalstop:off",
        "EVALSTOP=off evalstop=enforce",
        "evalstop=off Evalstop:off",
        "EVALSTOP_K=3",
        'evalstop_k="3"',
        "evalstop_mode:max",
    ],
)
def test_what_may_be_a_no_is_ambiguous(comment: str) -> None:
    assert parse_comment(comment).faults


@pytest.mark.parametrize(
    "comment",
    ["project=/home/me/evalstop-runs", "w=https://host/me/evalstop/r?x=3", "image:registry/evalstop:1", "MLFLOW_RUN=a"],
)
def test_our_name_further_down_another_tools_path_is_no_word_of_ours(comment: str) -> None:
    assert parse_comment(comment) == Wishes()


@pytest.mark.parametrize(
    "hostile",
    ["evalstop", "evalstop=", "evalstop = ", "= ", '"', "-", " ", "evalstop_", "\u00e9", "evalstop :", "evalstop1=2 "],
)
def test_reading_a_comment_costs_no_more_than_its_length(hostile: str) -> None:
    def work(count: int) -> Callable[[], object]:
        comment = hostile * count + "?"
        return lambda: parse_comment.__wrapped__(comment)

    assert grows_by(work) < MOST


@pytest.mark.parametrize("comment", ["keep", "evalstop=keeper", "housekeeping=keep", "notevalstop=keep"])
def test_other_words_are_no_veto(comment: str) -> None:
    assert not parse_comment(comment).keep


def test_keep_is_no_rung() -> None:
    assert parse_comment("evalstop=keep") == Wishes(keep=True)


@given(st.text(max_size=300))
def test_any_text_is_read_without_harm(comment: str) -> None:
    wishes = parse_comment(comment)

    assert all(fault.isascii() and fault.isprintable() for fault in wishes.faults)


def test_merging_keeps_what_is_there_and_replaces_the_key() -> None:
    assert merge_token("mlflow_run=a evalstop=enforce note", "evalstop", "keep") == "mlflow_run=a note evalstop=keep"
    assert merge_token("", "evalstop", "keep") == "evalstop=keep"
    assert merge_token('EVALSTOP:off a "evalstop = enforce", b', "evalstop", "keep") == "a b evalstop=keep"
    assert merge_token("evalstop_k=3 evalstop x", "evalstop", "keep") == "evalstop_k=3 evalstop x evalstop=keep"


@given(st.text(alphabet="ab=,; keplsto", max_size=60))
def test_after_merging_keep_the_veto_is_always_understood(comment: str) -> None:
    assert parse_comment(merge_token(comment, "evalstop", "keep")).keep


def test_a_fault_names_what_is_wrong_cut_to_forty_characters() -> None:
    assert parse_comment("evalstop_typo=1").faults == ("'evalstop_typo' is not a known key",)
    assert parse_comment("evalstop=maybe").faults == ("evalstop has the unknown value 'maybe'",)
    assert parse_comment("mlflow_run=a mlflow_run=a").faults == ("'mlflow_run' is given more than once",)
    assert parse_comment("EVALSTOP=enforce").faults == (
        "'EVALSTOP=enforce' is not understood: words are spelled like evalstop=off",
    )
    assert parse_comment("evalstop=" + "x" * 50).faults == (f"evalstop has the unknown value '{'x' * 40}'",)


def test_only_the_first_equals_sign_parts_key_and_value() -> None:
    assert parse_comment("mlflow_run=a=b").faults == ("mlflow_run has the unknown value 'a=b'",)
    assert parse_comment("other=a=b") == Wishes()


@pytest.mark.parametrize("folder", ["out", "/scratch/me/run.1", "a/b=c@d+e", "out-%"])
def test_an_owner_names_the_folder_of_the_checkpoints(folder: str) -> None:
    wishes = parse_comment(f"evalstop_output={folder} evalstop_k=3")

    assert (wishes.output, wishes.faults != ()) == ((None, True) if "%" in folder else (folder, False))
