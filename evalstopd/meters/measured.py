"""The ports with a stopwatch round each call."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from evalstopd.errors import EvalstopError, PastCaps, Rejected
from evalstopd.meters.port import Meters
from evalstopd.ports import Ports, Promoted, Registered, Registry

MEASURED = ("cluster", "metrics", "finder", "gate", "runs", "keeper", "store", "notifier")
OPTIONAL = ("models",)
"""Ports that a site may do without."""


def measured(ports: Ports, meters: Meters, now_s: Callable[[], float]) -> Ports:
    """Return the same ports, each call of which is counted and timed; of the registry its answers are counted."""
    there = (*MEASURED, *(name for name in OPTIONAL if getattr(ports, name) is not None))
    wrapped: dict[str, Any] = {name: Measured(getattr(ports, name), name, meters, now_s) for name in there}
    counted = CountedRegistry(ports.registry, meters) if ports.registry is not None else None
    return replace(ports, registry=counted, **wrapped)


@dataclass(frozen=True, slots=True)
class CountedRegistry:
    """The registry, which asks in a thread of its own: its calls take no time and never fail, its answers tell."""

    port: Registry
    meters: Meters

    def register(self, checkpoints: Sequence[Promoted]) -> None:
        """Ask for versions of these checkpoints."""
        self.port.register(checkpoints)

    def registered(self) -> Sequence[Registered]:
        """Return what became of checkpoints, and count it."""
        answers = self.port.registered()
        for each in answers:
            self.meters.registered("made" if each.where else "refused" if each.refused else "later")
        return answers


@dataclass(frozen=True, slots=True)
class Measured:
    """Any port; what it answers and raises goes through untouched."""

    port: Any
    name: str
    meters: Meters
    now_s: Callable[[], float]

    def __getattr__(self, verb: str) -> Any:
        return partial(self._call, verb, getattr(self.port, verb))

    def _call(self, verb: str, method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        began_s = self.now_s()
        try:
            answer = method(*arguments, **named)
        except EvalstopError as error:
            self.meters.failed(self.name, verb, type(error).__name__)
            raise
        finally:
            self.meters.called(self.name, verb, self.now_s() - began_s)
        if isinstance(answer, Mapping):
            self._count_failed(verb, answer)
        return answer

    def _count_failed(self, verb: str, answer: Mapping[Any, Any]) -> None:
        """Count what one call was told about some of many; what one of them is refused for is no error of the port."""
        errors = [each for each in answer.values() if isinstance(each, EvalstopError)]
        for kind, number in Counter(type(each).__name__ for each in errors if not isinstance(each, Rejected)).items():
            self.meters.failed(self.name, verb, kind, number)
        for why, number in Counter(_why(each) for each in errors if isinstance(each, Rejected)).items():
            self.meters.left_alone(self.name, verb, why, number)


def _why(error: Rejected) -> str:
    return "quarantined" if isinstance(error, PastCaps) else "refused"
