"""The engine: a heap of (time, priority, sequence, event) and the virtual clock that it moves."""

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from math import inf
from typing import Any

from evalstopd.errors import Fatal


class UnknownEvent(Fatal):
    """An event that nobody handles: the simulation would silently be wrong."""


class Timeline:
    """Events in order of time, then priority, then of being asked for; `now_s` is the time of the last one handled."""

    __slots__ = ("_sequence", "heap", "now_s")

    def __init__(self) -> None:
        self.heap: list[tuple[float, int, int, Any]] = []
        self._sequence = 0
        self.now_s = 0.0

    def at(self, time_s: float, priority: int, event: object) -> None:
        """Ask for an event. Raises Fatal for a time that is not a number or over already."""
        if not self.now_s <= time_s < inf:
            raise Fatal(f"an event was asked for at {time_s} s when it was {self.now_s} s")
        self._sequence += 1
        heappush(self.heap, (time_s, priority, self._sequence, event))

    def peek(self) -> float:
        """Return the time of the next event; infinity when there is none."""
        return self.heap[0][0] if self.heap else inf


def run(
    timeline: Timeline,
    handlers: Mapping[type, Callable[[Any], None]],
    settle: Callable[[], None],
    until_s: float = inf,
) -> None:
    """Handle every event up to `until_s`; `settle` runs once after all events of an instant are handled.

    Raises UnknownEvent for an event without a handler.
    """
    find, heap = handlers.get, timeline.heap
    while heap and heap[0][0] <= until_s:
        timeline.now_s, _, _, event = heappop(heap)
        handler = find(type(event))
        if handler is None:
            raise UnknownEvent(f"no handler for the event {type(event).__name__}")
        handler(event)
        if not heap or heap[0][0] > timeline.now_s:
            settle()
