"""The tables of the store, typed. Columns bear the names of the fields they hold; `job` is the job key's text."""

from typing import Annotated, ClassVar

from sqlalchemy import BigInteger, Boolean, Double, ForeignKey, ForeignKeyConstraint, Index, Integer, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from evalstopd.core.caps import Turn
from evalstopd.core.intent import Evidence, State
from evalstopd.core.model import Ending, Life, Mode, Rung, StopAction
from evalstopd.core.preempt import PreemptState
from evalstopd.core.shift import Lever, ShiftState
from evalstopd.core.watch import EarlyWarning, PinState, Reads
from evalstopd.core.wishes import Signal
from evalstopd.store.columns import AnyText, ExactFloat, Record, Words, words

REVISION = "0001"
VERSION_TABLE = "evalstopd_version"

Score = Annotated[float, ExactFloat]
# SQLite numbers rows by itself only in a column that is spelled INTEGER.
Serial = Annotated[int, mapped_column(BigInteger().with_variant(Integer(), "sqlite"), primary_key=True)]
JobText = Annotated[str, mapped_column(ForeignKey("jobs.job"))]
JobTextKey = Annotated[str, mapped_column(ForeignKey("jobs.job"), primary_key=True)]
Key = Annotated[str, mapped_column(AnyText(), primary_key=True)]
# Without autoincrement=False the first whole number of a key would be taken for a serial.
KeyInt = Annotated[int, mapped_column(BigInteger(), primary_key=True, autoincrement=False)]


class Base(DeclarativeBase):
    """What every table shares: which column type holds which Python type."""

    type_annotation_map: ClassVar = {
        str: AnyText(),
        int: BigInteger(),
        float: Double(),
        bool: Boolean(),
        Score: ExactFloat(),
        tuple[str, ...]: Words(),
        tuple[float, ...]: Words(),
        Evidence: Record(Evidence),
        Ending: Record(Ending),
        Life: Record(Life),
        Signal: Record(Signal),
        Reads: Record(Reads),
        EarlyWarning: Record(EarlyWarning),
        Mode: words(Mode),
        Rung: words(Rung),
        StopAction: words(StopAction),
        State: words(State),
        PinState: words(PinState),
        Turn: words(Turn),
        PreemptState: words(PreemptState),
        Lever: words(Lever),
        ShiftState: words(ShiftState),
    }


class JobRow(Base):
    """A job for good: what its key consists of."""

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("cluster", "job_id", "uid", "submitted_s", name="uq_jobs_key"),
        Index("ix_jobs_job_id", "job_id"),
    )

    job: Mapped[Key]
    cluster: Mapped[str]
    job_id: Mapped[str]
    uid: Mapped[int]
    submitted_s: Mapped[int]


class LifeRow(Base):
    """One life of a watched job: whose it is, what it holds, and how it ended."""

    __tablename__ = "lives"

    job: Mapped[JobTextKey]
    restarts: Mapped[KeyInt]
    submitted_s: Mapped[KeyInt]
    started_s: Mapped[float | None]
    gpus: Mapped[int]
    nodes: Mapped[tuple[str, ...]]
    ending: Mapped[Ending | None]
    limit_end_s: Mapped[float | None]
    user: Mapped[str]
    account: Mapped[str]
    partition: Mapped[str]
    name: Mapped[str]


class WatchRow(Base):
    """How a watched job stands in its present life; `over` once that life's ending is known."""

    __tablename__ = "watches"
    __table_args__ = (
        ForeignKeyConstraint(["job", "restarts", "submitted_s"], ["lives.job", "lives.restarts", "lives.submitted_s"]),
        Index("ix_watches_over", "over"),
        Index("ix_watches_first_s", "first_s"),
    )

    job: Mapped[Key]
    restarts: Mapped[int]
    submitted_s: Mapped[int]
    over: Mapped[bool]
    first_s: Mapped[float]
    rung: Mapped[Rung]
    rule: Mapped[str]
    metric: Mapped[str]
    mode: Mapped[Mode]
    trusted: Mapped[bool]
    logged_models: Mapped[bool]
    notice_s: Mapped[float]
    action: Mapped[StopAction]
    items: Mapped[int]
    dataset: Mapped[str]
    run_id: Mapped[str | None]
    two_way: Mapped[bool]
    proof: Mapped[str]
    output_dir: Mapped[str | None]
    evals: Mapped[int]
    declines: Mapped[int]
    last_step: Mapped[int | None]
    last_score: Mapped[Score | None]
    last_life: Mapped[int]
    best_step: Mapped[int | None]
    best_score: Mapped[Score | None]
    best_life: Mapped[int]
    read_life: Mapped[int | None]
    rung_now: Mapped[Rung]
    rule_now: Mapped[str]
    metric_now: Mapped[str]
    mode_now: Mapped[Mode]
    dataset_now: Mapped[str]
    reads: Mapped[Reads]
    vanished_s: Mapped[float | None]
    early: Mapped[EarlyWarning | None]


class PointRow(Base):
    """One metric value as the tracker gave it; the key is all that makes a value another one.

    `batch` is the batch of its job's points that a link of the chain seals it with.
    Its migration makes SQLite order the table by its key, so that a job's points are read in one sweep.
    """

    __tablename__ = "points"

    job: Mapped[JobTextKey]
    life: Mapped[KeyInt]
    run_id: Mapped[Key]
    step: Mapped[KeyInt]
    timestamp_ms: Mapped[KeyInt]
    value: Mapped[Score] = mapped_column(primary_key=True)
    metric: Mapped[Key]
    dataset: Mapped[Key]
    arrived_s: Mapped[float]
    stderr: Mapped[Score | None]
    batch: Mapped[int]


class BindingRow(Base):
    """Which run was proven to be which job's, from when on; numbered by its link. Append-only, by triggers."""

    __tablename__ = "bindings"
    __table_args__ = (Index("ix_bindings_run_id", "run_id", "id"),)

    id: Mapped[Serial]
    job: Mapped[JobText]
    run_id: Mapped[str]
    proof: Mapped[str]
    two_way: Mapped[bool]
    since_s: Mapped[float]


class PinRow(Base):
    """A protected checkpoint, or the wish for one."""

    __tablename__ = "pins"

    job: Mapped[JobTextKey]
    step: Mapped[KeyInt]
    score: Mapped[Score]
    state: Mapped[PinState]
    wanted_s: Mapped[float]
    restarts: Mapped[int]
    since_s: Mapped[float]
    tries: Mapped[int]
    path: Mapped[str]
    files: Mapped[int]
    size: Mapped[int]
    manifest: Mapped[str]
    why: Mapped[str]


class IntentRow(Base):
    """A decided stop and where it stands."""

    __tablename__ = "intents"
    __table_args__ = (
        Index("ix_intents_job", "job"),
        Index("ix_intents_state", "state"),
        Index("ix_intents_changed_s", "changed_s"),
        Index("ix_intents_created_s", "created_s"),
        Index("ix_intents_acted_s", "acted_s"),
    )

    id: Mapped[Key]
    job: Mapped[JobText]
    restarts: Mapped[int]
    submitted_s: Mapped[int]
    trigger_step: Mapped[int]
    rung: Mapped[Rung]
    evidence: Mapped[Evidence]
    created_s: Mapped[float]
    not_before_s: Mapped[float]
    state: Mapped[State]
    changed_s: Mapped[float]
    cancel_tries: Mapped[int]
    events: Mapped[int]
    telling: Mapped[str]
    signal: Mapped[Signal | None]
    note: Mapped[str]
    kept_path: Mapped[str]
    user: Mapped[str]
    nodes: Mapped[tuple[str, ...]]
    gpus: Mapped[int]
    ending: Mapped[Ending | None]
    handed_to: Mapped[tuple[str, ...]]
    told_s: Mapped[float | None]
    acted_s: Mapped[float | None]
    account: Mapped[str]
    action: Mapped[StopAction]
    kept_s: Mapped[float | None]
    held_life: Mapped[Life | None]
    model: Mapped[str]
    asked_s: Mapped[float | None]
    unsure: Mapped[int]
    refused: Mapped[int]


class EventRow(Base):
    """One line of an intent's history; triggers of the database refuse to change or remove it."""

    __tablename__ = "intent_events"

    intent_id: Mapped[str] = mapped_column(ForeignKey("intents.id"), primary_key=True)
    seq: Mapped[KeyInt]
    at_s: Mapped[float]
    kind: Mapped[str]
    text: Mapped[str]


class CreditRow(Base):
    """GPU-hours given back for an undone stop: one row an intent, which triggers keep as it is."""

    __tablename__ = "credits"
    __table_args__ = (Index("ix_credits_job", "job"),)

    intent_id: Mapped[str] = mapped_column(ForeignKey("intents.id"), primary_key=True)
    job: Mapped[JobText]
    user: Mapped[str]
    account: Mapped[str]
    gpu_hours: Mapped[float]
    at_s: Mapped[float]
    how: Mapped[str]


class WouldBeRow(Base):
    """A stop that the observe rung only booked: one a life. Append-only, by triggers."""

    __tablename__ = "would_be_stops"
    __table_args__ = (Index("ix_would_be_stops_at_s", "at_s"),)

    job: Mapped[JobTextKey]
    restarts: Mapped[KeyInt]
    submitted_s: Mapped[KeyInt]
    at_s: Mapped[float]
    evidence: Mapped[Evidence]
    wished: Mapped[bool]


class RemarkRow(Base):
    """One line about something that was not done; its number is that of its link. Append-only, by triggers."""

    __tablename__ = "remarks"
    __table_args__ = (Index("ix_remarks_subject", "subject", "code"),)

    id: Mapped[Serial]
    subject: Mapped[str]
    code: Mapped[str]
    text: Mapped[str]
    at_s: Mapped[float]


class LeaseRow(Base):
    """Who leads: `epoch` counts the leaders, `until_s` is by the database's clock.

    `cluster` is the one that was claimed under this lease, empty before the first pass.
    """

    __tablename__ = "leases"

    name: Mapped[Key]
    holder: Mapped[str]
    epoch: Mapped[int]
    until_s: Mapped[float]
    cluster: Mapped[str]


class PulseRow(Base):
    """The last sign of life of a daemon."""

    __tablename__ = "pulses"

    name: Mapped[Key]
    pid: Mapped[int]
    at_s: Mapped[float]
    good_s: Mapped[float | None]
    leads: Mapped[bool]
    version: Mapped[str]
    digest: Mapped[str]
    summary: Mapped[str]
    holder: Mapped[str]
    ended: Mapped[bool]


class LinkRow(Base):
    """One link of the chain over the book: see core/chain.py. Append-only, by triggers."""

    __tablename__ = "links"
    __table_args__ = (Index("ix_links_ref", "ref", "kind"),)

    seq: Mapped[Serial]
    kind: Mapped[str]
    ref: Mapped[str]
    digest: Mapped[str]
    hash: Mapped[str]


class HeadRow(Base):
    """Where the chain ends: one row, written with the links."""

    __tablename__ = "chain_head"

    id: Mapped[KeyInt]
    length: Mapped[int]
    hash: Mapped[str]


class HabitRow(Base):
    """What jobs of a kin used of their time limits: see core/estimates.py. `name` is a digest."""

    __tablename__ = "habits"

    cluster: Mapped[Key]
    user: Mapped[Key]
    account: Mapped[Key]
    name: Mapped[Key]
    at_s: Mapped[float]
    ended: Mapped[tuple[float, ...]]
    cut: Mapped[tuple[float, ...]]


class HistoryRow(Base):
    """Up to when a cluster's accounting has been read into its habits."""

    __tablename__ = "histories"

    cluster: Mapped[Key]
    read_s: Mapped[float]


class PreemptionRow(Base):
    """That a life of a job was asked to yield to a waiting one, and what became of it."""

    __tablename__ = "preemptions"
    __table_args__ = (Index("ix_preemptions_at_s", "at_s"),)

    job: Mapped[JobTextKey]
    restarts: Mapped[KeyInt]
    submitted_s: Mapped[KeyInt]
    heir: Mapped[str]
    gpus: Mapped[int]
    at_s: Mapped[float]
    saved_s: Mapped[float]
    reason: Mapped[str]
    user: Mapped[str]
    tries: Mapped[int]
    state: Mapped[PreemptState]
    note: Mapped[str]


class ShiftRow(Base):
    """A waiting job whose Nice or Priority we changed; removed once it is taken back, or the job is gone."""

    __tablename__ = "shifts"

    cluster: Mapped[Key]
    job_id: Mapped[Key]
    uid: Mapped[KeyInt]
    submitted_s: Mapped[KeyInt]
    lever: Mapped[Lever]
    nice: Mapped[int]
    natural: Mapped[int]
    asked: Mapped[int]
    before: Mapped[int]
    asked_s: Mapped[float]
    tries: Mapped[int]
    state: Mapped[ShiftState]
    why: Mapped[str]


class BreakerRow(Base):
    """One turn of a breaker: tripped, or reset by an admin; numbered by its link. Append-only, by triggers."""

    __tablename__ = "breakers"
    __table_args__ = (Index("ix_breakers_scope", "cluster", "scope", "id"),)

    id: Mapped[Serial]
    cluster: Mapped[str]
    scope: Mapped[str]
    turn: Mapped[Turn]
    at_s: Mapped[float]
    until_s: Mapped[float]
    text: Mapped[str]
    by: Mapped[str]
