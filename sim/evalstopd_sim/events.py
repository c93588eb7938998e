"""Everything that can happen in the emulated world, each a type of its own."""

from typing import NamedTuple

from evalstopd_sim.simjob import SimJob
from evalstopd_sim.truth import TrueJob


class Arrival(NamedTuple):
    """A job is submitted."""

    job: TrueJob


class Goal(NamedTuple):
    """A running job reaches its end: the whole work, the rule's stop or its owner's cancel."""

    job: SimJob
    life: int


class EvalSeen(NamedTuple):
    """A running job's next eval arrives."""

    job: SimJob
    life: int


class Turn(NamedTuple):
    """A running job's rank stops following its trend."""

    job: SimJob
    life: int


class PutLast(NamedTuple):
    """The rule fires on a job that is put last instead of being stopped."""

    job: SimJob
    life: int


class Eligible(NamedTuple):
    """A requeued job may be started again."""

    job: SimJob


class Round(NamedTuple):
    """An elastic policy divides the GPUs anew."""


Event = Arrival | Goal | EvalSeen | Turn | PutLast | Eligible | Round


class Order:
    """Who comes first among events of one instant: an eval is seen before the job that it ends is over."""

    EVAL = 0
    TURN = 1
    GOAL = 2
    ELIGIBLE = 3
    ARRIVAL = 4
    ROUND = 5
