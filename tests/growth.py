"""How what is done with a job's evals grows with their number, whatever the machine: the ratio of two costs."""

from collections.abc import Callable
from time import process_time

FEW = 2_000
MOST = 8.0
"""Four times as many cost four times as much, a little more for logarithms and caches; sixteen times by the square."""
_TRIES = 10
"""Others' load can make a try look worse than it is; what is quadratic fails in each."""

Work = Callable[[int], Callable[[], object]]
"""Prepares what is measured, for so many evals."""


def grows_by(work: Work) -> float:
    """Return how many times as much processor time is spent on four times as many: the least of some tries."""
    few, many = work(FEW), work(4 * FEW)
    least = float("inf")
    for _ in range(_TRIES):
        least = min(least, spent_s(many) / spent_s(few))
        if least < MOST:
            break
    return least


def spent_s(work: Callable[[], object]) -> float:
    """Return the seconds of processor time that work takes."""
    began = process_time()
    work()
    return process_time() - began
