"""The keeper's time in a pass, shared among owners: whose files are slow waits for the next pass, and nobody else."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from evalstopd.ports import Clock

_PART = 0.25  # of a tick, for what no open stop of the owner's waits for
_PART_OF_STOPS = 0.5  # of a tick, with what one waits for
_MOST_S = 20.0
# A site that polls more often than the keeper can work has no shorter pins for it.
_SHORTEST_TICK_S = 10.0


@dataclass(frozen=True, slots=True)
class Shares:
    """What each owner has had of the keeper since `began_s`, in seconds; a tick has `tick_s`, 10 at least.

    `silent` are owners of whom the keeper had no answer: they are asked for again by the next pass. A request that
    began in time is waited for, so that all bounds are passed by one request at most.
    """

    clock: Clock
    began_s: float
    tick_s: float
    spent: dict[int, float] = field(default_factory=dict)
    silent: set[int] = field(default_factory=set)

    def left(self, uid: int, *, held: bool) -> bool:
        """Tell whether the keeper may still be asked for an owner; `held`: an open stop waits for it."""
        tick_s = max(self.tick_s, _SHORTEST_TICK_S)
        part, most_s = (_PART_OF_STOPS, tick_s) if held else (_PART, min(_MOST_S, tick_s / 2))
        in_time = self.clock.now_s() <= self.began_s + most_s
        return in_time and self.spent.get(uid, 0.0) < part * tick_s

    @contextmanager
    def of(self, uid: int) -> Iterator[None]:
        """Count the time of a request."""
        asked_s = self.clock.now_s()
        try:
            yield
        finally:
            self.spent[uid] = self.spent.get(uid, 0.0) + max(0.0, self.clock.now_s() - asked_s)
