"""The audit report: everything a decision rests on, what can be known of its GPU-hours, and nobody's text acts."""

import csv
import io
import json
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from evalstopd.core.intent import State
from evalstopd.core.model import Rung
from evalstopd.core.watch import Remark
from evalstopd.ports import Changes, Span
from evalstopd.report.audit.gather import audit_report
from evalstopd.report.audit.page import as_text
from evalstopd.report.audit.rows import (
    AuditReport,
    BasisRow,
    DecisionRow,
    EvalRow,
    EventRow,
    Hours,
    JobRow,
    OutcomeRow,
    PinRow,
    RemarkRow,
    Summary,
    TimesRow,
)
from evalstopd.report.audit.sheet import COLUMNS, as_csv, as_json
from evalstopd.store.memory import MemoryStore
from tests.contracts import store_builders as make
from tests.fakes.world import RISE_AND_FALL, RULES, World

ALL = Span(0.0, 1e10)
HOSTILE = "a\nb\x1b[31m[red]x[/red]\r\n=cmd|' /C calc'!A0 <script>alert(1)</script>\u202e\t\udcff\x00"


def told(world: World, span: Span = ALL) -> AuditReport:
    assert isinstance(world.store, MemoryStore)
    return audit_report(world.store, span, "test")


def stopped(**fields: object) -> World:
    """Play a job of 8 GPUs that started at 1000 s, is stopped at 1005 s, and whose GPUs the next one gets."""
    world = World(gpus=8)
    job = world.train(name="train-7", **fields)
    world.cluster.submit(1002, 8, "")
    world.play(job, "r1", RISE_AND_FALL)
    return world


def only(report: AuditReport) -> DecisionRow:
    (row,) = report.decisions
    return row


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def stop_of(text: str) -> dict[str, str]:
    """Return the one row of a stop; owners may have been warned early, which is a remark."""
    (row,) = [row for row in rows_of(text) if row["what"] == "stop"]
    return row


def test_a_stop_is_told_with_all_that_it_rests_on() -> None:
    row = only(told(stopped()))

    assert (row.what, row.rung, row.outcome.state, row.outcome.ending) == ("stop", "enforce", "confirmed", "CANCELLED")
    assert (row.job.id, row.job.user, row.job.account, row.job.partition, row.job.name) == (
        "1",
        "alice",
        "ml",
        "gpu",
        "train-7",
    )
    assert (row.basis.rule, row.basis.metric, row.basis.mode) == ("k-declines:k=2", "score", "max")
    assert (row.basis.settings_hash, row.basis.version, row.basis.run_id) == ("hash", "test", "r1")
    assert (row.basis.proof, row.basis.two_way) == ("comment", True)
    assert [(each.step, each.score, each.stderr) for each in row.basis.evals] == [
        (10 * n, score, None) for n, score in enumerate(RISE_AND_FALL[:5], 1)
    ]
    assert (row.basis.trigger_step, row.basis.best_step, row.basis.kept_step, row.basis.declines) == (50, 30, 30, 2)
    assert row.pin is not None
    assert (row.pin.step, row.pin.state) == (30, "published")
    assert row.pin.manifest
    assert row.pin.path
    assert (row.times.started_s, row.times.decided_s, row.times.ended_s) == (1000, 1005.0, 1005.0)
    states = ["planned", "warned", "promoted", "cancelled", "confirmed"]
    assert [event.kind for event in row.events if event.kind in states] == states
    assert row.outcome.handed_to == ("2",)


def test_gpu_hours_are_told_as_far_as_they_are_known() -> None:
    """8 GPUs for 5 seconds; the limit would have let them go on for an hour."""
    limited, unlimited = only(told(stopped(limit_end_s=4605))), only(told(stopped()))

    assert limited.gpu_hours.used == pytest.approx(8 * 5 / 3600)
    assert limited.gpu_hours.freed == pytest.approx(8.0)
    assert limited.gpu_hours.after is None
    assert unlimited.gpu_hours.freed is None
    assert "up to 8.00 freed" in as_text(told(stopped(limit_end_s=4605)))
    assert "no time limit is known" in as_text(told(stopped()))


def test_a_would_be_stop_tells_what_the_job_used_after_it() -> None:
    world = World(replace(RULES, rung=Rung.OBSERVE))
    job = world.train(limit_end_s=99999)
    world.play(job, "r1", RISE_AND_FALL)
    world.cluster.finish(job)
    world.tick(seconds=3600.0)
    row = only(told(world))

    assert (row.what, row.rung, row.outcome.state, row.outcome.ending) == (
        "would-be stop",
        "observe",
        "booked",
        "COMPLETED",
    )
    assert row.gpu_hours.used == pytest.approx(8 * 7 / 3600)
    assert row.gpu_hours.after == pytest.approx(8 * 2 / 3600)
    assert row.gpu_hours.freed is None
    assert row.pin is None


def test_a_requeued_jobs_decision_is_told_of_its_own_life() -> None:
    """The ending and the hours are those of the life that the decision was about, not of the one that came after."""
    world = World(replace(RULES, rung=Rung.OBSERVE))
    job = world.train()
    world.play(job, "r1", RISE_AND_FALL)
    world.cluster.requeue(job)
    world.tick()
    world.cluster.start()
    world.tick(seconds=100.0)
    row = only(told(world))

    assert row.job.restarts == 0
    assert row.times.started_s == 1000


@pytest.mark.parametrize(("state", "freed"), [(State.CONFIRMED, 1.0), (State.HELD, 1.0), (State.UNDONE, None)])
def test_what_an_undone_stop_freed_is_not_counted_but_what_was_credited_is(state: State, freed: float | None) -> None:
    """A job that waits, held, has freed its GPUs; one that was let go on has not, and its owner is owed hours."""
    intent = make.intent(state=state, gpus=1)
    ended = make.watch(started_s=0.0, limit_end_s=3699.0, gpus=1, ending=make.ENDED)
    owed = (make.credit(intent),) if state is State.UNDONE else ()
    store = MemoryStore()
    store.record(Changes(watches=(ended,), intents=(intent,), events=(make.event(intent),), credits=owed))
    report = audit_report(store, ALL, "test")
    hours = only(report).gpu_hours

    assert (hours.freed, hours.after) == (freed, None)
    assert hours.credited == (1.5 if state is State.UNDONE else None)
    assert (report.summary.freed, report.summary.credited) == (freed or 0.0, hours.credited or 0.0)
    assert ("1.50 credited, for the stop was undone" in as_text(report)) == (state is State.UNDONE)


@pytest.mark.parametrize(("comment", "outcome"), [("evalstop=keep", "vetoed"), ("evalstop=warn", "abandoned")])
def test_what_was_given_up_is_told_with_its_reason(comment: str, outcome: str) -> None:
    world = World(replace(RULES, notice_s=100.0))
    job = world.train()
    world.play(job, "r1", RISE_AND_FALL)
    world.cluster.set_comment(job, f"mlflow_run=r1 {comment}")
    world.tick()
    row = only(told(world))

    assert (row.outcome.state, bool(row.outcome.note)) == (outcome, True)
    # The notice counts from the early warning, one eval before the decision.
    assert row.times.not_before_s == 1004.0 + 100.0
    assert row.times.closed_s is not None


def test_refusals_and_quarantines_are_told_apart() -> None:
    store = MemoryStore()
    remarks = (
        make.remark(make.key("7").text, "disputed-run", text="no action: 2 jobs name the same run", at_s=2.0),
        make.remark(make.key("8").text, "quarantine-points", text="more than 100000 points", at_s=1.0),
        make.remark("site", "enforce-override", text="settings x: reason", at_s=3.0),
    )
    store.record(Changes(remarks=remarks))
    found = audit_report(store, ALL, "test")

    assert [(each.what, each.job) for each in found.remarks] == [("quarantined", "8"), ("refused", "7"), ("noted", "")]
    assert dict(found.summary.remarks) == {"quarantined": 1, "refused": 1, "noted": 1}
    assert "refused, job 7, disputed-run: no action: 2 jobs name the same run" in as_text(found)
    assert [row["what"] for row in rows_of(as_csv(found))] == ["quarantined", "refused", "noted"]


def test_only_what_was_decided_within_the_span_is_told() -> None:
    world = stopped()

    assert len(told(world, Span(1005.0, 1006.0)).decisions) == 1
    assert told(world, Span(1006.0, 9999.0)).decisions == ()


def test_an_empty_book_is_told_as_such_in_every_form() -> None:
    empty = audit_report(MemoryStore(), ALL, "test")

    assert "decisions 0" in as_text(empty)
    assert rows_of(as_csv(empty)) == []
    assert as_csv(empty).startswith('"what","id","job","cluster",')
    assert json.loads(as_json(empty))["decisions"] == []


# --- the forms


def test_every_field_of_both_forms_for_programs_is_in_the_documentation() -> None:
    """Whoever reads the JSON or the spreadsheet by program finds each name explained."""
    parts = (AuditReport, Summary, DecisionRow, JobRow, BasisRow, EvalRow, PinRow, TimesRow, OutcomeRow, Hours)
    named = {each.name for part in (*parts, EventRow, RemarkRow) for each in fields(part)}
    documented = set(re.findall(r"[a-z_]+", (Path(__file__).parents[3] / "docs" / "audit.md").read_text()))

    assert named - documented == set()
    assert len(set(COLUMNS)) == len(COLUMNS)


def hostile_report() -> AuditReport:
    """Return a report in which every text that comes from users is hostile."""
    world = stopped(account=HOSTILE, partition=HOSTILE)
    row = only(told(world))
    assert row.pin is not None
    job = replace(row.job, **dict.fromkeys(("cluster", "id", "user", "account", "partition", "name"), HOSTILE))
    hostile = replace(
        row,
        job=job,
        basis=replace(row.basis, **dict.fromkeys(("metric", "run_id", "reason"), HOSTILE)),
        outcome=replace(row.outcome, note=HOSTILE, ending=HOSTILE, handed_to=(HOSTILE,)),
        pin=replace(row.pin, path=HOSTILE),
        events=tuple(replace(each, text=HOSTILE) for each in row.events),
    )
    remark = Remark(HOSTILE, HOSTILE, HOSTILE, 1.0)
    store = MemoryStore()
    store.record(Changes(remarks=(remark,)))
    remarks = audit_report(store, ALL, "test").remarks
    return replace(told(world), decisions=(hostile,), remarks=remarks)


def test_hostile_text_does_nothing_in_the_report_for_people() -> None:
    text = as_text(hostile_report())

    assert "[red]" in text
    assert all(line.isprintable() for line in text.split("\n"))


def test_hostile_text_does_nothing_in_the_spreadsheet() -> None:
    text = as_csv(hostile_report())

    assert all(line.isprintable() for line in text.split("\n"))
    rows = rows_of(text)
    assert len(rows) == 2
    assert not [value for row in rows for value in row.values() if value.lstrip().startswith(("=", "+", "-", "@"))]


def test_hostile_text_does_nothing_in_json_and_comes_back_whole() -> None:
    text = as_json(hostile_report())

    assert text.isascii()
    assert not [sign for sign in "<>&\x1b\r" if sign in text]
    assert json.loads(text)["decisions"][0]["job"]["name"] == HOSTILE


def test_times_are_utc_for_people_and_seconds_for_programs() -> None:
    report = told(stopped(limit_end_s=4605))
    row = stop_of(as_csv(report))
    data = json.loads(as_json(report))["decisions"][0]["times"]

    assert (row["decided"], row["confirmed"][:10], row["limit_end"]) == (
        "1970-01-01T00:16:45Z", "1970-01-01", "1970-01-01T01:16:45Z",
    )  # fmt: skip
    assert (data["decided_s"], data["limit_end_s"], data["not_before_s"]) == (1005.0, 4605, 1005.0)
    assert "decided     1970-01-01 00:16:45Z at step 50" in as_text(report)


def test_the_spreadsheet_has_one_row_a_decision_with_its_evals() -> None:
    row = stop_of(as_csv(told(stopped())))

    assert json.loads(row["steps"]) == [10, 20, 30, 40, 50]
    assert json.loads(row["scores"]) == list(RISE_AND_FALL[:5])
    assert json.loads(row["handed_to"]) == ["2"]
    assert json.loads(row["history"])[0][1] == "planned"
    assert (row["two_way"], row["gpus"], row["pin_state"]) == ("yes", "8", "published")


def test_the_summary_counts_and_names_the_head() -> None:
    world = stopped(limit_end_s=4605)
    assert isinstance(world.store, MemoryStore)
    head = world.store.head()
    report = told(world)

    assert head is not None
    assert report.head == head.text
    assert json.loads(as_json(report))["summary"] == {
        "decisions": {"stop": 1},
        "outcomes": {"confirmed": 1},
        "remarks": {"noted": len(report.remarks)},
        "used": 8 * 5 / 3600,
        "freed": 8.0,
        "credited": 0.0,
        "unlimited": 0,
    }
    assert as_text(report).splitlines()[2] == "decisions 1: 1 stop; outcomes: 1 confirmed"
