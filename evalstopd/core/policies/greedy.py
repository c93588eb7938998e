"""Hand out GPUs one by one to whoever gains most from the next one."""

from collections.abc import Callable, Sequence
from heapq import heapify, heapreplace

Gain = Callable[[int], float]


def greedy(gains: Sequence[Gain], gpus: int) -> list[int]:
    """Return the GPUs of each job; `gains[i](n)` is what job i gets from n GPUs, with falling increments.

    Equal increments go to the job that is named first; nobody gets a GPU that adds nothing.
    """
    given = [0] * len(gains)
    reached = [gain(1) for gain in gains]
    heap = [(-first, place) for place, first in enumerate(reached)]
    heapify(heap)
    while gpus > 0 and heap and heap[0][0] < 0:
        _, place = heap[0]
        given[place] += 1
        gpus -= 1
        further = gains[place](given[place] + 1)
        heapreplace(heap, (reached[place] - further, place))
        reached[place] = further
    return given


def check_round_s(name: str, round_s: float) -> None:
    """Raise ValueError unless the seconds between two divisions let the run come to its end."""
    if not 1 <= round_s <= 86400:
        raise ValueError(f"{name}: round_s must be between 1 s and a day, not {round_s:g}")
