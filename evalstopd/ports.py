"""Every port of the loop: small protocols, batch first. Errors come from `evalstopd.errors` only."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from evalstopd.core.binding import Binding, RunFacts
from evalstopd.core.caps import BreakerTurn, Decision
from evalstopd.core.chain import Head, Held
from evalstopd.core.corroborate import OwnerLog
from evalstopd.core.credit import Credit
from evalstopd.core.estimates import History, Kin, PastLife, Tally
from evalstopd.core.intent import Intent, IntentEvent, State, WouldBeStop
from evalstopd.core.model import Ending, Job, JobKey, Life, Point
from evalstopd.core.preempt import Preemption
from evalstopd.core.shift import Shift, Steer
from evalstopd.core.watch import Lived, Pin, Remark, Watch
from evalstopd.errors import EvalstopError


class Clock(Protocol):
    """Tells the time; nothing else in the project does."""

    def now_s(self) -> float:
        """Return seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Queue:
    """One whole listing of a cluster's queue: pending, running, suspended and ending jobs."""

    cluster: str
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class EndingQuery:
    """Which life of a job accounting is asked about; `submitted_s` tells lives and reused ids apart."""

    job_id: str
    life: Life


class Cluster(Protocol):
    """The scheduler. Each call is one scheduler call, whatever the number of jobs.

    Raises Unavailable where the scheduler does not answer wholly and in time.
    """

    def queue(self) -> Queue:
        """List the queue. An answer that is partial, contradictory or without a cluster name is Unavailable."""

    def look(self, job_ids: Sequence[str]) -> Mapping[str, Job]:
        """Show these jobs as they are now, recently ended ones too; unknown ids are left out."""

    def cancel(self, job_ids: Sequence[str]) -> None:
        """Ask to end these running jobs. Success proves nothing: look again.

        Raises Rejected where there is no right to; Unavailable where the outcome is unknown.
        """

    def requeue_hold(self, job_id: str) -> None:
        """Ask to end this running job's life and to hold it in the queue for a next one; success proves nothing.

        What does not run is left alone, ended jobs above all. Raises NotRequeueable where Slurm may not requeue it,
        Rejected where there is no right to, Unavailable where the outcome is unknown.
        """

    def put_back(self, job_id: str) -> None:
        """Ask to end this running job's life and to queue it for a next one; success proves nothing.

        What does not run is left alone. Raises as `requeue_hold` does.
        """

    def release(self, job_id: str) -> None:
        """Let a held job go on; one that is not held stays as it is.

        Raises Rejected without the right to (an admin's hold is not the owner's to lift), or for an ended job.
        """

    def signal(self, job_id: str, name: str) -> None:
        """Send a signal to the job's batch script alone. Raises Rejected without the right to."""

    def endings(self, queries: Sequence[EndingQuery]) -> Mapping[EndingQuery, Ending]:
        """Tell how these lives ended; those not known to have ended are left out."""

    def served(self, queries: Sequence[EndingQuery]) -> Mapping[EndingQuery, float]:
        """Tell how many seconds these jobs ran before these lives; those that accounting does not know are left out."""

    def set_comment(self, job_id: str, comment: str) -> None:
        """Replace the comment of a job, by its `address`. Raises NotAllowed (no right) or Rejected (an ended job).

        The plain id of an array, or of a heterogeneous job, means all its tasks or components.
        """

    def steer(self, asks: Sequence[Steer]) -> None:
        """Set Nice or Priority of waiting jobs, in the order given; success proves nothing. Those gone are left out.

        Raises Rejected without the right to, where some may have been set; Unavailable where the outcome is unknown.
        """


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which metric of which run to read, and which other one beside it for the alarm alone (empty: none).

    Without a metric the run's facts alone are read. `items` is the number of items behind each of its evals, where the
    site knows it and the run may not say (0: no). With `fresh` the facts must be read now; else what stood still for
    long may be remembered, but for whether the run was deleted. `dataset` is the one whose points are wanted where the
    metric has those of several (core/datasets); `apart` tells that they were told apart from others when last read.
    """

    run_id: str
    metric: str
    proxy: str = ""
    items: int = 0
    fresh: bool = False
    dataset: str = ""
    apart: bool = False


@dataclass(frozen=True, slots=True)
class RunReading:
    """One run as read: its facts and every point of the metric asked for (life and arrival not set).

    Points have their standard error, as far as what is logged beside the metric tells it (core/logged). `proxy`
    has the points of the query's proxy; none where they could not be read. Of several datasets under the metric's name
    the points are those of `dataset` alone; `untold` says why they could not be told apart, and then all are here.
    """

    facts: RunFacts
    points: tuple[Point, ...]
    proxy: tuple[Point, ...] = ()
    dataset: str = ""
    untold: str = ""


class MetricsSource(Protocol):
    """The tracker, for reading: one run's trouble never costs another run its reading."""

    def read(self, queries: Sequence[RunQuery]) -> Mapping[RunQuery, RunReading | EvalstopError]:
        """Return for each query its reading, or why there is none.

        Rejected: unknown run; PastCaps: more than one run may cost, which costs no other; else Unavailable.
        """


class RunFinder(Protocol):
    """The tracker, asked which runs call themselves a job's."""

    def naming(self, cluster: str, raw_ids: Sequence[int]) -> Mapping[int, tuple[RunFacts, ...] | EvalstopError]:
        """Return for each job the running runs whose tags `slurm.job_id` and `slurm.cluster` name it.

        Those tags may be anybody's: they prove nothing. One small call a job; PastCaps where a job has more runs
        than can be looked at, else Rejected or Unavailable: that job's trouble alone.
        """


class Gate(Protocol):
    """The tracker's door."""

    def admits_strangers(self) -> bool:
        """Tell whether it answers who does not log in. Asked seldom. Raises Unavailable until it can be learned."""


class RunList(Protocol):
    """The tracker's runs of the past, for replay."""

    def runs_of(self, experiment: str, most: int) -> tuple[RunFacts, ...]:
        """Return the facts of an experiment's runs (its name or id), the newest first, `most` at most.

        Deleted runs are left out. Raises Rejected for an unknown experiment or without the right, else Unavailable.
        """


class RunWriter(Protocol):
    """The tracker, for writing; each write is read back. Raises Unavailable or Rejected."""

    def tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags on a run."""

    def mark_killed(self, run_id: str) -> str:
        """Set the run KILLED if it is still RUNNING; return the status it has afterwards."""


@dataclass(frozen=True, slots=True)
class PinPlace:
    """Where a pin comes from and goes: the owner's uid, the output folder, the pin's name, the checkpoint's step.

    A checkpoint that was complete before `since_s` (seconds since the epoch) is not the one meant; nor is one whose
    trainer logged another `score` of the metric at the step. `later` tells whether a later eval was logged: then all
    processes of the training have finished what they saved at the step.
    """

    uid: int
    output_dir: str
    pin: str
    step: int
    since_s: int = 0
    metric: str = ""
    score: float = 0.0
    later: bool = False


@dataclass(frozen=True, slots=True)
class PinReport:
    """A pin as the keeper left it: absolute path, number of files, bytes, manifest digest."""

    path: str
    files: int
    size: int
    manifest: str


@dataclass(frozen=True, slots=True)
class ModelQuery:
    """Which step's checkpoint is looked for among the logged models of a run.

    One that was made before `since_s` (seconds since the epoch) is another, and so is one that has another `score` of
    the metric at the step.
    """

    run_id: str
    step: int
    since_s: int = 0
    metric: str = ""
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class ModelReport:
    """A logged model as the tracker lists it: its address there, number of files, bytes, digest of the listing."""

    uri: str
    files: int
    size: int
    listing: str


class Models(Protocol):
    """The logged models of runs: what is seen of them is the tracker's word, and nothing of them is kept.

    Raises CheckpointMissing, CheckpointIncomplete (not ready, no files, another one), Rejected or Unavailable.
    """

    def find(self, query: ModelQuery) -> ModelReport:
        """Find the step's newest one that is ready and has files."""

    def verify(self, run_id: str, uri: str) -> ModelReport:
        """Look at one of the run's again."""


class Keeper(Protocol):
    """The privileged helper: file work as the job's owner. Each verb is idempotent.

    Raises CheckpointMissing, CheckpointIncomplete, CheckpointFailed, Rejected (refused or changed) or Unavailable
    (no answer).
    """

    def pin(self, place: PinPlace) -> PinReport:
        """Link and verify a checkpoint into its pin."""

    def verify(self, place: PinPlace) -> PinReport:
        """Check a pin against its manifest and its structure."""

    def publish(self, place: PinPlace) -> PinReport:
        """Verify a pin and make it the job's `best`; the path in the report is that of `best`."""

    def drop(self, place: PinPlace) -> None:
        """Remove a pin; removing what is not there is no error."""

    def log(self, place: PinPlace) -> OwnerLog:
        """Read the newest training log below the output folder that was written since `since_s`.

        It has the place's metric and what is logged beside it; checkpoint, score and step count for nothing.
        """


_NO_JOB = JobKey("", "", 0, 0)


@dataclass(frozen=True, slots=True)
class Message:
    """One message to a job's owner, in the words that every other place uses; or to the site's admin (`to_admin`).

    `ref` names what it is about (an intent's id, or a life's early warning), `kind` which of its messages it is.
    """

    key: JobKey
    user: str
    subject: str
    text: str
    kind: str = "notice"
    ref: str = ""

    @property
    def for_admin(self) -> bool:
        """Tell whether this is about no job, and for the site's admin."""
        return self.key == _NO_JOB

    @property
    def whom(self) -> str:
        """Return who is told."""
        return "the admin" if self.for_admin else self.user

    @property
    def about(self) -> str:
        """Return what it is about, in words."""
        return "the site" if self.for_admin else f"job {self.key.job_id}"


def to_admin(subject: str, text: str, kind: str, ref: str) -> Message:
    """Return a message to the site's admin: its key and user are empty."""
    return Message(_NO_JOB, "", subject, text, kind, ref)


_FATES = {
    "told": "{} was told",
    "logged": "{} was not told",
    "not-told": "{} could not be told",
    "perhaps-told": "whether {} was told is unknown",
}


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a message: sent, or why not; `logged`: it is in the daemon's log alone, which owners cannot read.

    The admin reads that log, so the admin is told by it. `doubtful`: not known to be sent, but it may have been.
    """

    message: Message
    sent: bool
    how: str = ""
    logged: bool = False
    doubtful: bool = False

    @property
    def event(self) -> str:
        """Return the kind of event that this is."""
        if self.logged:
            return "told" if self.message.for_admin else "logged"
        if self.doubtful:
            return "perhaps-told"
        return "told" if self.sent else "not-told"

    @property
    def text(self) -> str:
        """Return the same in words."""
        whom = "the admin" if self.message.for_admin else "the owner"
        what = f"{_FATES[self.event].format(whom)} ({self.message.kind})"
        return f"{what}: {self.how}" if self.how else what


class Notifier(Protocol):
    """Tells people. Never raises for a broken channel and never waits for one: what could not be sent is logged."""

    def tell(self, message: Message) -> Receipt | None:
        """Send one message; return what became of it, or None where only `receipts` will tell."""

    def receipts(self) -> Sequence[Receipt]:
        """Return what became of messages since the last call. None for those of a process that has ended."""

    def close(self) -> None:
        """Send what still waits, for a short while; what was not sent by then never is."""


@dataclass(frozen=True, slots=True)
class Promoted:
    """A published checkpoint that is to be a version of a registered model; `intent_id` names it for good.

    `path` is where the keeper published it, the files of `key.uid`; or the address of a logged model of the run.
    """

    intent_id: str
    key: JobKey
    account: str
    run_id: str
    step: int
    path: str
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Registered:
    """What became of a checkpoint that was to be registered: where it is, or why it is not, for good or for now."""

    intent_id: str
    where: str = ""
    refused: str = ""
    later: str = ""


class Registry(Protocol):
    """The tracker's model registry. Never raises, and never waits for it.

    Asked again for the same checkpoint, also by a later process, it makes no second version of it.
    """

    def register(self, checkpoints: Sequence[Promoted]) -> None:
        """Ask for versions of these checkpoints; `registered` tells later what came of it."""

    def registered(self) -> Sequence[Registered]:
        """Return what became of checkpoints since the last call. None for those asked for by a process that ended."""


class KillSwitch(Protocol):
    """The switch that stops all action at once and works when the store is down."""

    def engaged(self) -> bool:
        """Tell whether nothing may be acted on; an unreadable switch counts as engaged."""


@dataclass(frozen=True, slots=True)
class Book:
    """All that the store holds of jobs that are not over: the memory of the loop between two passes.

    `intents` are the open ones, those closed lately that still want a note of who got their GPUs, and confirmed ones
    whose checkpoint is still to be registered.
    `triggered` has, for each job's present life, the newest step that an intent was triggered at, closed
    ones too; `booked` are the jobs with a would-be stop in their present life; `said` are the (subject, code)
    pairs already remarked on; `breakers` has the last turn of each breaker of the cluster; `shifts` are the jobs that
    were moved in their line.
    """

    watches: tuple[Watch, ...] = ()
    pins: tuple[Pin, ...] = ()
    intents: tuple[Intent, ...] = ()
    triggered: Mapping[JobKey, int] = field(default_factory=dict)
    booked: frozenset[JobKey] = frozenset()
    said: frozenset[tuple[str, str]] = frozenset()
    breakers: tuple[BreakerTurn, ...] = ()
    shifts: tuple[Shift, ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """What one transaction writes.

    Watches, pins and intents replace the row of the same name (an intent only if the store has it in a
    state that may lead to the new one, or in the same state); would-be stops and points that are there
    already stay as they are, but a point without a standard error takes one; bindings, remarks, events and breakers'
    turns are appended. Preemptions replace the one of the same life, shifts the one of the same job; those of the jobs
    `unshifted` are removed. There is one credit for an intent: the first one stays as it is.
    """

    watches: tuple[Watch, ...] = ()
    points: tuple[tuple[JobKey, Point], ...] = ()
    pins: tuple[Pin, ...] = ()
    intents: tuple[Intent, ...] = ()
    events: tuple[IntentEvent, ...] = ()
    would_be: tuple[WouldBeStop, ...] = ()
    bindings: tuple[Binding, ...] = ()
    remarks: tuple[Remark, ...] = ()
    breakers: tuple[BreakerTurn, ...] = ()
    credits: tuple[Credit, ...] = ()
    preemptions: tuple[Preemption, ...] = ()
    shifts: tuple[Shift, ...] = ()
    unshifted: tuple[JobKey, ...] = ()

    def __bool__(self) -> bool:
        return any(
            (
                self.watches,
                self.points,
                self.pins,
                self.intents,
                self.events,
                self.would_be,
                self.bindings,
                self.remarks,
                self.breakers,
                self.credits,
                self.preemptions,
                self.shifts,
                self.unshifted,
            )
        )


class Store(Protocol):
    """What is kept. Raises Unavailable where it cannot be reached, Fatal where it is of another version."""

    def book(self, cluster: str) -> Book:
        """Return what is open on a cluster."""

    def holders(self, run_ids: Sequence[str]) -> Mapping[str, Binding]:
        """Return each of these runs' last binding, to ended jobs too; runs never bound are left out."""

    def points(self, keys: Sequence[JobKey]) -> Mapping[JobKey, tuple[Point, ...]]:
        """Return the stored points of these jobs, over all their lives and runs."""

    def decisions(self, cluster: str, since_s: float) -> tuple[Decision, ...]:
        """Return the stops that were decided, would have been, or were acted on since then; the oldest first."""

    def preemptions(self, cluster: str, since_s: float) -> tuple[Preemption, ...]:
        """Return the preemptions asked for since then; the oldest first."""

    def stops_of(self, cluster: str, job_ids: Sequence[str]) -> tuple[Intent, ...]:
        """Return the stops done to jobs of these ids: held, confirmed or undone; the one decided last comes first."""

    def record(self, changes: Changes) -> None:
        """Write all changes in one transaction, or none."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Who leads: `epoch` counts the leaders there were, `left_s` is how long it lasts (negative: over)."""

    holder: str
    epoch: int
    left_s: float


class Leases(Protocol):
    """Which of several daemons on one store leads, and writing as the leader only. A lease has a name.

    Raises Unavailable where the store cannot be reached: who cannot renew must take the lease for over in time.
    """

    def take(self, name: str, holder: str, for_s: float) -> Lease:
        """Take the lease if it is free or over, renew it if it is the holder's; return it, whoever has it then.

        A holder's name must be that of one process alone. Each new holder has a higher epoch.
        """

    def resign(self, name: str, holder: str) -> None:
        """End the holder's lease at once; another's stays."""

    def leader(self, name: str) -> Lease | None:
        """Return the lease as it is, over or not; None if nobody ever had it."""

    def claim(self, name: str, epoch: int, cluster: str) -> None:
        """Note which cluster is led under this lease. Raises Deposed where that is of another epoch.

        And where another lease that lasts leads it: of two names for one cluster each leader would think itself alone.
        One that is over loses the cluster, and its holder, should it come back, its epoch: it must claim anew.
        """

    def leading(self, cluster: str) -> tuple[str, ...]:
        """Return the names of the leases that lead a cluster now: one, or none."""

    def record_as(self, name: str, epoch: int, changes: Changes) -> None:
        """Write as `Store.record` does. Raises Deposed, and writes nothing, where the lease is of another epoch.

        Both happen in one transaction: nothing of an old leader can be written after the new one has begun.
        """


class Archive(Protocol):
    """What is kept, for listings and reports; ended jobs too. Newest first."""

    def find(self, job_id: str) -> tuple[Watch, ...]:
        """Return the watched jobs that have had this id."""

    def recent(self, limit: int) -> tuple[Watch, ...]:
        """Return the watched jobs seen last."""

    def watched_since(self, first_s: float) -> tuple[Watch, ...]:
        """Return the watched jobs first seen at a moment (seconds since the epoch) or later."""

    def intents_of(self, keys: Sequence[JobKey]) -> tuple[Intent, ...]:
        """Return the intents of these jobs."""

    def events_of(self, intent_ids: Sequence[str]) -> tuple[IntentEvent, ...]:
        """Return the events of these intents, in order."""

    def pins_of(self, keys: Sequence[JobKey]) -> tuple[Pin, ...]:
        """Return the pins of these jobs."""

    def would_be_of(self, keys: Sequence[JobKey]) -> tuple[WouldBeStop, ...]:
        """Return the would-be stops of these jobs."""

    def credits_of(self, keys: Sequence[JobKey]) -> tuple[Credit, ...]:
        """Return what was credited for undone stops of these jobs."""

    def remarks_of(self, subjects: Sequence[str]) -> tuple[Remark, ...]:
        """Return what was remarked on these subjects (a job key's text, or `site`)."""

    def breakers(self) -> tuple[BreakerTurn, ...]:
        """Return the last turn of each breaker, by cluster and scope."""

    def intents_by_state(self) -> Mapping[State, int]:
        """Return how many intents are in each state; states without any are left out."""


@dataclass(frozen=True, slots=True)
class Span:
    """From a moment (seconds since the epoch) on, up to but without another."""

    since_s: float
    until_s: float

    def __contains__(self, moment_s: float) -> bool:
        return self.since_s <= moment_s < self.until_s


@dataclass(frozen=True, slots=True)
class Pulse:
    """A daemon's last sign of life: its last pass, and its last good one, in seconds since the epoch.

    `holder` is what it calls itself where there is a lease, else empty; `ended` where it was told to end, and did.
    """

    name: str
    pid: int
    at_s: float
    good_s: float | None
    leads: bool
    version: str
    digest: str
    summary: str
    holder: str = ""
    ended: bool = False


class Pulses(Protocol):
    """The signs of life of the daemons on one store."""

    def note_pulse(self, pulse: Pulse) -> None:
        """Keep a daemon's sign of life in the place of its last one; forget those unheard of for a week."""

    def pulses(self) -> tuple[Pulse, ...]:
        """Return the last sign of life of each daemon, by name."""


class Upkeep(Protocol):
    """What is kept of jobs long over. Each call is one short transaction."""

    def old_pins(self, cluster: str, over_before_s: float, most: int) -> tuple[Pin, ...]:
        """Return pins that are on a disk, of jobs over since before a moment, that no stop was done or begun to."""

    def prune(self, cluster: str, over_before_s: float, most: int) -> int:
        """Forget points and watches of so many jobs over since before a moment; return how many jobs.

        Nothing is forgotten of a job that a stop was decided or booked of, or that has a pin on a disk. Remarks,
        bindings and breakers' turns stay in any case.
        """


class PastJobs(Protocol):
    """Accounting, asked for the lives of jobs that are over: one call, whatever their number."""

    def ended(self, span: "Span") -> Sequence[PastLife]:
        """Return the lives that ended within a span.

        Raises Unavailable, also where there are more than can be read at once: ask for a shorter span.
        """


class Histories(Protocol):
    """What jobs of the past used of their limits, as counts: no jobs, and no names of theirs."""

    def history(self, cluster: str) -> History | None:
        """Return what is known of a cluster's jobs; None where nothing was ever read."""

    def history_read_s(self, cluster: str) -> float | None:
        """Return up to when accounting has been read."""

    def note_history(
        self, cluster: str, since_s: float | None, read_s: float, changed: Mapping[Kin, Tally], gone: Collection[Kin]
    ) -> None:
        """Replace these tallies, drop those, and note that all up to a moment is in them, in one transaction.

        Raises Rejected, and writes nothing, where accounting has been read to another moment than `since_s`: another
        daemon went on. So nothing is counted twice.
        """


class Accounts(Protocol):
    """What was decided within a span of time, for the audit; oldest first."""

    def intents_within(self, span: Span) -> tuple[Intent, ...]:
        """Return the intents decided within a span."""

    def would_be_within(self, span: Span) -> tuple[WouldBeStop, ...]:
        """Return the would-be stops booked within a span."""

    def remarks_within(self, span: Span) -> tuple[Remark, ...]:
        """Return the remarks made within a span."""

    def watches_of(self, keys: Sequence[JobKey]) -> Mapping[JobKey, Watch]:
        """Return the watches of these jobs; jobs never watched are left out."""

    def lives_of(self, keys: Sequence[JobKey]) -> tuple[Lived, ...]:
        """Return all lives of these jobs, each as it was seen last."""


class Chain(Protocol):
    """The chain over the book, for those who verify it: see core/chain.py."""

    def head(self) -> Head | None:
        """Return where the chain ends by the store's own note; None where that is gone."""

    def held(self, after: int, most: int) -> tuple[Held, ...]:
        """Return the links after a number, in order, `most` at most, each with what its row is now."""

    def unsealed(self, most: int) -> tuple[tuple[str, str], ...]:
        """Return kind and name of rows that no link seals, `most` at most of each kind."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything the loop touches, handed over by wiring or by a test."""

    clock: Clock
    cluster: Cluster
    metrics: MetricsSource
    runs: RunWriter
    keeper: Keeper
    store: Store
    notifier: Notifier
    kill_switch: KillSwitch
    finder: RunFinder
    gate: Gate
    should_stop: Callable[[], bool] = lambda: False
    registry: Registry | None = None
    models: Models | None = None
