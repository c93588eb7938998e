"""A small keeper: checkpoint folders as a set, pins as another; rotation removes from the first only."""

from dataclasses import dataclass, field

from evalstopd.core.corroborate import OwnerLog
from evalstopd.errors import CheckpointFailed, CheckpointIncomplete, CheckpointMissing, Rejected, Unavailable
from evalstopd.ports import PinPlace, PinReport


@dataclass(slots=True)
class FakeKeeper:
    """The Keeper port over two sets of names; `fresh` lists each pin that was made rather than found.

    `logs` are the owners' training logs by output folder, `asked` where one was looked for. With `sharded` checkpoints
    are DeepSpeed's: only a later eval shows that they are whole.
    """

    checkpoints: set[tuple[str, str]] = field(default_factory=set)
    pins: set[tuple[str, int]] = field(default_factory=set)
    fresh: list[tuple[str, int]] = field(default_factory=list)
    best: dict[str, int] = field(default_factory=dict)
    failing: set[tuple[str, int]] = field(default_factory=set)
    saved_s: dict[tuple[str, str], float] = field(default_factory=dict)
    logged: dict[tuple[str, str], float] = field(default_factory=dict)
    damaged: set[tuple[str, int]] = field(default_factory=set)
    logs: dict[str, OwnerLog] = field(default_factory=dict)
    asked: list[PinPlace] = field(default_factory=list)
    sharded: bool = False
    down: bool = False

    def save(self, folder: str, step: int, keep_last: int = 2, at_s: float | None = None) -> None:
        """Write a checkpoint and rotate the oldest away, as a trainer does."""
        self.checkpoints.add((folder, f"checkpoint-{step}"))
        if at_s is not None:
            self.saved_s[(folder, f"checkpoint-{step}")] = at_s
        steps = sorted((int(name.partition("-")[2]), name) for place, name in self.checkpoints if place == folder)
        for _, name in steps[:-keep_last]:
            self.checkpoints.discard((folder, name))

    def pin(self, place: PinPlace) -> PinReport:
        """Keep a checkpoint that is there."""
        self._up()
        return self._report(place) if (place.pin, place.step) in self.pins else self.repin(place)

    def repin(self, place: PinPlace) -> PinReport:
        """Keep the checkpoint that is there, in place of one that was kept before."""
        self._up()
        if (place.pin, place.step) in self.failing:
            raise CheckpointFailed("timed out after 60 s")
        if (place.output_dir, f"checkpoint-{place.step}") not in self.checkpoints:
            raise CheckpointMissing("no such checkpoint folder")
        if self.sharded and not place.later:
            raise CheckpointIncomplete("processes may still write their shards")
        if self.saved_s.get((place.output_dir, f"checkpoint-{place.step}"), place.since_s) < place.since_s:
            raise CheckpointIncomplete("another checkpoint")
        if self.logged.get((place.output_dir, f"checkpoint-{place.step}"), place.score) != place.score:
            raise CheckpointIncomplete("another checkpoint")
        self.pins.add((place.pin, place.step))
        self.fresh.append((place.pin, place.step))
        return self._report(place)

    def verify(self, place: PinPlace) -> PinReport:
        """Check a pin."""
        self._up()
        if (place.pin, place.step) not in self.pins:
            raise CheckpointMissing("no such pin")
        if (place.pin, place.step) in self.damaged:
            raise Rejected("the pin has changed")
        return self._report(place)

    def publish(self, place: PinPlace) -> PinReport:
        """Make a pin the best."""
        report = self.verify(place)
        self.best[place.pin] = place.step
        return PinReport(f"/pins/{place.pin}/best", report.files, report.size, report.manifest)

    def drop(self, place: PinPlace) -> None:
        """Remove a pin."""
        self._up()
        self.pins.discard((place.pin, place.step))

    def log(self, place: PinPlace) -> OwnerLog:
        """Show what was logged below a folder."""
        self.asked.append(place)
        self._up()
        if place.output_dir not in self.logs:
            raise CheckpointMissing("no training log")
        return self.logs[place.output_dir]

    def _up(self) -> None:
        if self.down:
            raise Unavailable("the keeper does not answer")

    def _report(self, place: PinPlace) -> PinReport:
        return PinReport(f"/pins/{place.pin}/step-{place.step}", 3, 300, f"m{place.step}")
