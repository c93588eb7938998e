"""What owners may write into the comment, and what is never understood as something else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.model import Mode, Rung
from evalstopd.core.wishes import Signal, Wishes, merge_token, parse_comment


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


@given(st.text(alphabet="ab=,; keplsto", max_size=60))
def test_after_merging_keep_the_veto_is_always_understood(comment: str) -> None:
    assert parse_comment(merge_token(comment, "evalstop", "keep")).keep


def test_a_fault_names_what_is_wrong_cut_to_forty_characters() -> None:
    assert parse_comment("evalstop_typo=1").faults == ("'evalstop_typo' is not a known key",)
    assert parse_comment("evalstop=maybe").faults == ("evalstop has the unknown value 'maybe'",)
    assert parse_comment("mlflow_run=a mlflow_run=a").faults == ("'mlflow_run' is given more than once",)
    assert parse_comment("evalstop=" + "x" * 50).faults == (f"evalstop has the unknown value '{'x' * 40}'",)


def test_only_the_first_equals_sign_parts_key_and_value() -> None:
    assert parse_comment("mlflow_run=a=b").faults == ("mlflow_run has the unknown value 'a=b'",)
    assert parse_comment("other=evalstop_k=3") == Wishes()


@pytest.mark.parametrize("folder", ["out", "/scratch/me/run.1", "a/b=c@d+e", "out-%"])
def test_an_owner_names_the_folder_of_the_checkpoints(folder: str) -> None:
    wishes = parse_comment(f"evalstop_output={folder} evalstop_k=3")

    assert (wishes.output, wishes.faults != ()) == ((None, True) if "%" in folder else (folder, False))
