"""Accounting files: both forms tell the same, old and new JSON alike; what makes no sense names its place."""

import json

import pytest

from evalstopd.errors import Misconfigured
from evalstopd.slurmtext.sacct import NO_LENGTH, NO_SUBMISSION, read_framed, read_sacct

TABLE = (
    "JobID|JobIDRaw|Submit|Elapsed|State|AllocTRES|TimelimitRaw|Account|User|Cluster\n"
    "7_1|8|2026-01-05T10:00:00|01:00:00|CANCELLED by 1000|cpu=8,gres/gpu:a100=4|90|ml|alice|red\n"
)


def record(**changes: object) -> dict[str, object]:
    limit = {"set": True, "infinite": False, "number": 90}
    return {
        "job_id": 8,
        "account": "ml",
        "user": "alice",
        "cluster": "red",
        "time": {"submission": 1767607200, "elapsed": 3600, "limit": limit},
        "tres": {"allocated": [{"type": "cpu", "name": "", "count": 8}, {"type": "gres", "name": "gpu", "count": 4}]},
        "state": {"current": ["CANCELLED"]},
    } | changes


def test_a_table_and_json_tell_the_same() -> None:
    (row,) = read_sacct("t", TABLE)
    (found,) = read_sacct("j", json.dumps({"jobs": [record()]}))

    for field in (
        "raw_id",
        "submit_s",
        "elapsed_s",
        "state",
        "gpus",
        "limit_s",
        "account",
        "user",
        "cluster",
        "is_over",
    ):
        assert getattr(row, field) == getattr(found, field)
    assert (row.job_id, row.gpus, row.elapsed_s, row.limit_s, row.is_over) == ("7_1", 4, 3600.0, 5400.0, True)


@pytest.mark.parametrize(("state", "over"), [("RUNNING", False), ("COMPLETED", True), ("SOMETHING NEW", False)])
def test_old_json_has_one_word_for_the_state_and_a_number_for_the_limit(state: str, over: bool) -> None:
    old = record(state={"current": state}, time={"submission": 1, "elapsed": 2, "limit": 5})
    (found,) = read_sacct("j", json.dumps({"jobs": [old]}))

    assert (found.is_over, found.limit_s) == (over, 300.0)


@pytest.mark.parametrize(("minutes", "limit_s"), [(525599, 31535940.0), (525600, None)])
def test_a_limit_of_a_year_is_none_in_every_form(minutes: int, limit_s: float | None) -> None:
    """Slurm may put a year in place of none."""
    limits: list[object] = [minutes, {"set": True, "infinite": False, "number": minutes}]
    told = [record(time={"submission": 1, "elapsed": 2, "limit": limit}) for limit in limits]
    found = [*read_sacct("j", json.dumps({"jobs": told})), *read_sacct("t", TABLE.replace("|90|", f"|{minutes}|"))]

    assert [each.limit_s for each in found if not isinstance(each, str)] == [limit_s] * 3


def test_types_of_gpus_are_not_counted_beside_their_total() -> None:
    typed = [{"type": "gres", "name": name, "count": 2} for name in ("gpu", "gpu:a100", "shard")]
    (found,) = read_sacct("j", json.dumps({"jobs": [record(tres={"allocated": typed})]}))

    assert found.gpus == 2


def test_submit_times_may_be_seconds_since_the_epoch() -> None:
    (found,) = read_sacct("t", TABLE.replace("2026-01-05T10:00:00", "1767607200"))

    assert found.submit_s == 1767607200


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (("2026-01-05T10:00:00", "Unknown"), NO_SUBMISSION),
        (("01:00:00", ""), NO_LENGTH),
        (("01:00:00", "INVALID"), NO_LENGTH),
    ],
)
def test_a_record_that_accounting_lost_is_passed_over_and_the_others_are_read(told: tuple[str, str], why: str) -> None:
    lost = TABLE.splitlines()[1].replace(*told)
    first, second = read_sacct("t", f"{TABLE}{lost}\n")

    assert not isinstance(first, str)
    assert second == why


@pytest.mark.parametrize(
    ("time", "why"),
    [({"submission": 0, "elapsed": 5}, NO_SUBMISSION), ({"submission": 5, "elapsed": None}, NO_LENGTH)],
)
def test_a_record_of_json_that_accounting_lost_is_passed_over(time: dict[str, object], why: str) -> None:
    first, second = read_sacct("j", json.dumps({"jobs": [record(time=time), record()]}))

    assert first == why
    assert not isinstance(second, str)


def test_what_sacct_answers_the_daemon_is_read_without_the_records_it_lost() -> None:
    fields = ("JobID", "Submit", "Elapsed", "State")
    cells = "7~Unknown~00:01:00~FAILED\n8~1767607200~00:01:00~FAILED\n"

    assert [each.job_id for each in read_framed("sacct", cells, fields, "~")] == ["8"]


@pytest.mark.parametrize("text", [TABLE, json.dumps({"jobs": [record()]})])
def test_a_byte_order_mark_is_taken(text: str) -> None:
    assert list(read_sacct("t", f"\ufeff{text}")) == list(read_sacct("t", text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("JobID|State\n", "t:1: sacct's header has no field Submit"),
        ("", "t:1: sacct's header has no field JobID"),
        ("{" + '"a":[' * 100_000, "t:1: not the output"),
        ('{"jobs": 5}', "t:1: not the output of sacct --json"),
        ('{"jobs": {"a": 1}}', "t:1: not the output of sacct --json"),
        (json.dumps({"jobs": [5]}), r"t:jobs\[0\]: not a job record"),
        (json.dumps({"jobs": [record(tres=None)]}), r"t:jobs\[0\]: not a job record"),
        (json.dumps({"jobs": [record(time={"submission": "inf", "elapsed": 1})]}), "submission must be finite"),
    ],
)
def test_what_makes_no_sense_names_its_place(text: str, words: str) -> None:
    with pytest.raises(Misconfigured, match=words):
        list(read_sacct("t", text))
