"""The loop's memory: what it reads at the start of a pass, what one transaction writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from evalstopd.core.binding import Binding
from evalstopd.core.caps import BreakerTurn, Decision
from evalstopd.core.credit import Credit
from evalstopd.core.intent import Intent, IntentEvent, WouldBeStop
from evalstopd.core.model import JobKey, Point
from evalstopd.core.preempt import Preemption
from evalstopd.core.shift import Shift
from evalstopd.core.watch import Pin, Remark, Watch


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
