"""What the rules know of the world: jobs, evals, and the view that a rule may see."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple

# MLflow stores an infinity as the largest double; nothing real is that large.
_LARGEST_SCORE = 1e308


def is_score(value: float | None) -> bool:
    """Tell whether a value can count as a score; missing, NaN and infinite ones neither count nor reset."""
    return value is not None and -_LARGEST_SCORE < value < _LARGEST_SCORE


class Phase(StrEnum):
    """Where a job stands; every Slurm state maps to one of these, an unfamiliar one to UNKNOWN."""

    PENDING = "pending"
    RUNNING = "running"
    SUSPENDED = "suspended"
    ENDING = "ending"
    ENDED = "ended"
    UNKNOWN = "unknown"


class Rung(IntEnum):
    """How far the daemon may go with a job."""

    OFF = 0
    OBSERVE = 1
    WARN = 2
    ENFORCE = 3

    @property
    def word(self) -> str:
        """Return the rung as owners and settings spell it."""
        return self.name.lower()


class Mode(StrEnum):
    """Which direction of a score is better."""

    MAX = "max"
    MIN = "min"

    def better(self, a: float, b: float) -> bool:
        """Tell whether score `a` is strictly better than score `b`."""
        return a > b if self is Mode.MAX else a < b


class StopAction(StrEnum):
    """How a job is stopped, from the gentlest to the harshest.

    REQUEUE_HOLD: requeued and held, so that the stop can be undone; a job that Slurm may not requeue goes on.
    HOLD_OR_CANCEL: the same, but such a job is cancelled. CANCEL: cancelled.
    """

    REQUEUE_HOLD = "requeue-hold"
    HOLD_OR_CANCEL = "requeue-hold-or-cancel"
    CANCEL = "cancel"

    def at_most(self, other: "StopAction") -> "StopAction":
        """Return the gentler one of two."""
        return min(self, other, key=list(StopAction).index)


@dataclass(frozen=True, slots=True, order=True)
class JobKey:
    """A job for good: Slurm reuses ids, so the submit time first seen and the owner belong to it.

    `job_id` is `A_T` for an array task, the raw id else; `submitted_s` is in seconds since the epoch.
    """

    cluster: str
    job_id: str
    uid: int
    submitted_s: int

    @property
    def text(self) -> str:
        """Return the key as one word, for ids and logs."""
        return f"{self.cluster}:{self.job_id}:{self.uid}:{self.submitted_s}"


@dataclass(frozen=True, slots=True, order=True)
class Life:
    """One life of a job: a requeue raises `restarts` and renews `submitted_s`."""

    restarts: int
    submitted_s: int


@dataclass(frozen=True, slots=True)
class Job:
    """A job or array task as one observation of Slurm shows it. Names, comment and paths are the user's text.

    `raw_id` is Slurm's own number; the last task of an array shares it with the array, so it never addresses a job.
    `limit_end_s` is when its time limit would end a running job, None where it has none.
    `held` jobs wait until somebody releases them. `eligible_s` is from when on a job may start, None where that is open
    (it is held, or waits for another). `time_limit_s` is None without a limit; `reason` is Slurm's, for waiting.
    `may_requeue` tells whether it may start anew.
    """

    cluster: str
    job_id: str
    raw_id: int
    uid: int
    user: str
    phase: Phase
    state: str
    submitted_s: int
    started_s: int | None
    restarts: int
    gpus: int
    account: str = ""
    qos: str = ""
    partition: str = ""
    priority: int = 0
    nice: int = 0
    comment: str = ""
    name: str = ""
    work_dir: str = ""
    nodes: tuple[str, ...] = ()
    het_id: int | None = None
    limit_end_s: int | None = None
    held: bool = False
    eligible_s: int | None = 0
    time_limit_s: int | None = None
    reason: str = ""
    may_requeue: bool = True

    @property
    def life(self) -> Life:
        """Return the life this observation belongs to."""
        return Life(self.restarts, self.submitted_s)

    @property
    def address(self) -> str:
        """Return by which id Slurm changes this job and no other.

        The number of a heterogeneous job's first component stands for all of them; with `+0` it is that one's alone.
        """
        return f"{self.job_id}+0" if self.het_id == self.raw_id else self.job_id

    @property
    def is_single(self) -> bool:
        """Tell whether this is one job or task, not the tasks of an array that wait together."""
        return not self.job_id.endswith("]")

    @property
    def holds_gpus(self) -> bool:
        """Tell whether the job occupies GPUs now (Slurm fills the allocation of pending jobs too)."""
        return self.phase is Phase.RUNNING and self.gpus > 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One whole observation of a cluster's queue. Absence from it proves nothing."""

    cluster: str
    now_s: float
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class Ending:
    """How one life of a job ended, as accounting (or the controller, soon after) tells it."""

    state: str
    ended_s: float | None
    exit_code: str = ""
    source: str = "sacct"


@dataclass(frozen=True, slots=True)
class Point:
    """One metric value as a tracker holds it. `value` may be NaN or infinite; `timestamp_ms` is the client's clock.

    `life` is the life it was evaluated in, one below the present where it is history: there before the job's
    present life first read the run. `dataset` (core/datasets) is empty but where the points of several datasets were
    told apart.
    """

    run_id: str
    step: int
    value: float
    timestamp_ms: int
    life: int = 0
    arrived_s: float = 0.0
    stderr: float | None = None
    metric: str = ""
    dataset: str = ""


class Eval(NamedTuple):
    """One point of world feedback on a job's curve; a named tuple, because curves are long and made often.

    `score` is finite. `stderr` is the score's own standard error where known. `elapsed_s` (running time of the
    job) and `loss` (training loss) are what any scheduler could see at that moment; None where nobody looked.
    """

    step: int
    score: float
    stderr: float | None = None
    life: int = 0
    run_id: str = ""
    arrived_s: float = 0.0
    elapsed_s: float | None = None
    loss: float | None = None


class JobView(NamedTuple):
    """All that a rule or policy may see of a job: the information frontier (paper, section on the frontier).

    There is no true duration and no hidden label here, and core cannot import the module that has them.
    Times in seconds; `estimate_s` is the user's own estimate, on a live cluster his time limit as corrected by
    core/estimates.py; `loss_drop_per_s` the most recent
    training-loss reduction per second; `progress` an observed share of the work in [0, 1].
    """

    job_id: str
    submitted_s: float
    gpus: int
    kind: str = ""
    estimate_s: float | None = None
    attained_s: float = 0.0
    running: bool = False
    loss_drop_per_s: float | None = None
    progress: float | None = None
    declines: int = 0
    evals: tuple[Eval, ...] = ()
