"""What the audit report shows, as frozen rows: every decision with all that it rests on, every remark."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EvalRow:
    """One eval that a decision rests on; `score` and its standard error in the metric's unit."""

    step: int
    score: float
    stderr: float | None


@dataclass(frozen=True, slots=True)
class PinRow:
    """The checkpoint that is, or would be, kept: `size` in bytes, `manifest` the keeper's digest of its files.

    `path` is where the job's best was published, else where the pin lies. `kind` tells pinned files from a logged
    model: its path is its address in the tracker, its manifest the digest of the tracker's listing. Empty for none.
    """

    step: int
    state: str
    path: str
    files: int
    size: int
    manifest: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class EventRow:
    """One line of a decision's history; `at_s` in seconds since the epoch."""

    at_s: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Hours:
    """GPU-hours of the life that a decision was about: its GPUs times hours; None where a time is not known.

    `used`: from its start to its end, both by Slurm. `after`: from the decision to its end, of decisions that ended
    nothing: what a stop would have freed, for certain. `freed`: from its end to what would have been its end by its
    time limit (squeue's EndTime while it ran), of stops that were done and not undone: up to so many were freed, fewer
    if it had ended by itself before its limit, which nobody can know. `credited`: what was booked for an undone stop.
    """

    used: float | None
    after: float | None
    freed: float | None
    credited: float | None


@dataclass(frozen=True, slots=True)
class JobRow:
    """The job that was decided on, in the life that `restarts` counts."""

    cluster: str
    id: str
    uid: int
    restarts: int
    user: str
    account: str
    partition: str
    name: str
    gpus: int


@dataclass(frozen=True, slots=True)
class BasisRow:
    """What a decision rests on: its frozen evidence.

    `proof` tells by what the run was proven to be the job's, `two_way` whether the run named the job as well.
    `corroborated` tells by which log of the owner's an open server's points were believed for this stop, if they were,
    `contradicted` what in that log speaks against them, where the owner's word alone would have let the job be stopped.
    `dataset` is the one whose evals these are, where the metric had those of several.
    """

    rule: str
    metric: str
    mode: str
    settings_hash: str
    version: str
    run_id: str
    proof: str
    two_way: bool
    trigger_step: int
    declines: int
    reason: str
    best_step: int
    best_score: float
    kept_step: int
    corroborated: str
    contradicted: str
    dataset: str
    evals: tuple[EvalRow, ...]


@dataclass(frozen=True, slots=True)
class TimesRow:
    """When what happened, in seconds since the epoch; None where not known or not yet.

    Slurm tells of the life's own times, the daemon's clock of the others; `not_before_s` ends the owner's notice.
    """

    submitted_s: int
    started_s: float | None
    decided_s: float
    not_before_s: float | None
    limit_end_s: float | None
    ended_s: float | None
    closed_s: float | None


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """What became of a decision: the state of the intent, `booked` for a would-be stop; how the life ended, if it did.

    `handed_to` are the jobs that got the GPUs.
    """

    state: str
    note: str
    ending: str
    exit_code: str
    ending_source: str
    handed_to: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """One decision; `id` is its name in the book.

    `what` is `stop` (decided on the enforce rung), `warning` (on warn) or `would-be stop` (on observe). `pin` is None
    where there is none for the step to keep.
    """

    what: str
    id: str
    rung: str
    job: JobRow
    basis: BasisRow
    pin: PinRow | None
    times: TimesRow
    outcome: OutcomeRow
    gpu_hours: Hours
    events: tuple[EventRow, ...]


@dataclass(frozen=True, slots=True)
class RemarkRow:
    """One line about something that was not done: `refused`, `quarantined`, or only `noted`. `job` is empty for the
    site's own.
    """

    what: str
    at_s: float
    subject: str
    job: str
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts over the decisions, and GPU-hours over the stops that were done: `unlimited` had no known limit."""

    decisions: Mapping[str, int]
    outcomes: Mapping[str, int]
    remarks: Mapping[str, int]
    used: float
    freed: float
    credited: float
    unlimited: int


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The decisions and remarks of a span, oldest first, and where the chain over the book ended then."""

    format: str
    since_s: float
    until_s: float
    version: str
    head: str
    summary: Summary
    decisions: tuple[DecisionRow, ...]
    remarks: tuple[RemarkRow, ...]
