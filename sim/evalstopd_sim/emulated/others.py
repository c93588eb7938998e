"""The ports whose emulation is no more than a good answer: a keeper, people, a door, a switch nobody sets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evalstopd.core.binding import RunFacts
from evalstopd.core.corroborate import OwnerLog
from evalstopd.errors import CheckpointMissing, EvalstopError
from evalstopd.ports import Message, PinPlace, PinReport, Receipt


@dataclass(slots=True)
class EmulatedKeeper:
    """A keeper to which every eval has left a whole checkpoint."""

    pins: set[tuple[str, int]] = field(default_factory=set)
    best: dict[str, int] = field(default_factory=dict)

    def pin(self, place: PinPlace) -> PinReport:
        """Keep a checkpoint."""
        self.pins.add((place.pin, place.step))
        return _report(place, f"step-{place.step}")

    def repin(self, place: PinPlace) -> PinReport:
        """Keep a checkpoint in place of an earlier one."""
        return self.pin(place)

    def verify(self, place: PinPlace) -> PinReport:
        """Find a pin unchanged. Raises CheckpointMissing for one never made, or dropped."""
        if (place.pin, place.step) not in self.pins:
            raise CheckpointMissing("no such pin")
        return _report(place, f"step-{place.step}")

    def publish(self, place: PinPlace) -> PinReport:
        """Make a pin the job's best. Raises CheckpointMissing for one never made, or dropped."""
        self.verify(place)
        self.best[place.pin] = place.step
        return _report(place, "best")

    def drop(self, place: PinPlace) -> None:
        """Remove a pin."""
        self.pins.discard((place.pin, place.step))

    def log(self, place: PinPlace) -> OwnerLog:
        """Find none: emulated jobs write no files."""
        raise CheckpointMissing("no training log")


def _report(place: PinPlace, name: str) -> PinReport:
    return PinReport(f"{place.output_dir}/../.evalstop/{place.pin}/{name}", 1, 1, f"step {place.step}")


@dataclass(slots=True)
class EmulatedPeople:
    """Keeps what was told to whom."""

    told: list[Message] = field(default_factory=list)

    def tell(self, message: Message) -> Receipt:
        """Keep a message."""
        self.told.append(message)
        return Receipt(message, sent=True)

    def receipts(self) -> Sequence[Receipt]:
        """Return nothing: people hear at once."""
        return ()

    def close(self) -> None:
        """Do nothing: nothing waits."""


class NoStrangers:
    """A tracker's door that opens to nobody without a login, and no runs to be found behind it."""

    def admits_strangers(self) -> bool:
        """Say no."""
        return False

    def naming(self, cluster: str, raw_ids: Sequence[int]) -> Mapping[int, tuple[RunFacts, ...] | EvalstopError]:
        """Find nothing: emulated jobs name their runs themselves."""
        del cluster
        return dict.fromkeys(raw_ids, ())


class NoSwitch:
    """A kill switch that nobody sets."""

    def engaged(self) -> bool:
        """Say no."""
        return False
