"""What the demo shows while it runs, and the table at its end."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from evalstopd.core.curve import curve
from evalstopd.core.intent import Intent, IntentEvent, State
from evalstopd.core.watch import Watch
from evalstopd.report.text import plain

from .scene import Part
from .service import Book

_BARS = "▁▂▃▄▅▆▇█"
_TOLD = ("planned", "promoted", "cancelled", "confirmed", "handed", "abandoned", "vetoed")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the demo's table."""

    job: str
    user: str
    kind: str
    evals: int
    best_step: int | None
    stopped_at: int | None
    ended_as: str
    checkpoint_kept: str
    gpus_handed_to: tuple[str, ...]
    idle_s: float | None


@dataclass(slots=True)
class Screen:
    """Tells what the store shows since the last look, on stderr where the table goes to stdout as JSON."""

    store: Book
    parts: Sequence[Part]
    started_s: float
    told: set[tuple[str, int]]

    def say(self, text: str, now_s: float) -> None:
        """Print one line with the time since the start."""
        passed = int(now_s - self.started_s)
        sys.stderr.write(f"{passed // 60:02d}:{passed % 60:02d}  {text}\n")
        sys.stderr.flush()

    def news(self, now_s: float) -> None:
        """Print the intents' new events, in the words of the daemon's own book."""
        for watch in self.store.recent(100):
            intents = self.store.intents_of([watch.key])
            for event in self.store.events_of([intent.id for intent in intents]):
                if event.kind in _TOLD and (event.intent_id, event.seq) not in self.told:
                    self.told.add((event.intent_id, event.seq))
                    self.say(f"job {watch.key.job_id} {event.kind}: {plain(_short(event), 150)}", now_s)

    def curves(self, now_s: float) -> None:
        """Print each running curve as a line of bars."""
        kinds = {part.job: part.kind for part in self.parts}
        for watch in sorted(self.store.recent(100), key=lambda each: int(each.key.job_id)):
            if watch.ending is None and watch.evals:
                scores = [e.score for e in curve(self.store.points([watch.key])[watch.key])]
                state = f"declining {watch.declines}" if watch.declines else ""
                line = f"job {watch.key.job_id:>3} {kinds.get(watch.key.job_id, ''):32} {bars(scores):32} {state}"
                self.say(line.rstrip(), now_s)


def bars(scores: Sequence[float]) -> str:
    """Return a curve as one line of bars."""
    low, high = min(scores), max(scores)
    span = (high - low) or 1.0
    return "".join(_BARS[int((score - low) / span * (len(_BARS) - 1))] for score in scores)


def rows(store: Book, parts: Sequence[Part], starts: dict[str, float]) -> list[Row]:
    """Return the table's rows, from the daemon's own book."""
    watches = {watch.key.job_id: watch for watch in store.recent(100)}
    return [_row(store, part, watches.get(part.job), starts) for part in parts if part.trains]


def table(found: Sequence[Row]) -> str:
    """Return the table as text."""
    head = ("job", "user", "kind", "evals", "best step", "stopped at", "ended as", "checkpoint kept", "GPUs to", "idle")
    lines = [head, *(_cells(row) for row in found)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def as_data(found: Sequence[Row]) -> list[dict[str, object]]:
    """Return the table for JSON."""
    return [asdict(row) for row in found]


def _row(store: Book, part: Part, watch: Watch | None, starts: dict[str, float]) -> Row:
    if watch is None:
        return Row(part.job, part.user, part.kind, 0, None, None, "not watched", "", (), None)
    stop = next((i for i in store.intents_of([watch.key]) if i.state is State.CONFIRMED), None)
    return Row(
        job=part.job,
        user=part.user,
        kind=part.kind,
        evals=watch.evals,
        best_step=watch.best_step,
        stopped_at=stop.evidence.trigger_step if stop else None,
        ended_as=watch.ending.state if watch.ending else "running",
        checkpoint_kept=stop.kept_path if stop else "",
        gpus_handed_to=stop.handed_to if stop else (),
        idle_s=_idle(store, stop, starts) if stop else None,
    )


def _idle(store: Book, stop: Intent, starts: dict[str, float]) -> float | None:
    """Return the seconds between the request to cancel and the next job's first line on the freed GPUs."""
    asked = next((e.at_s for e in store.events_of([stop.id]) if e.kind == "cancelling"), None)
    begun = [starts[job] for job in stop.handed_to if job in starts]
    return round(min(begun) - asked, 2) if asked is not None and begun else None


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.job, row.user, row.kind, str(row.evals), _or_dash(row.best_step), _or_dash(row.stopped_at), row.ended_as,
        row.checkpoint_kept.rpartition("/.evalstop/")[2] or "-", ",".join(row.gpus_handed_to) or "-",
        "-" if row.idle_s is None else f"{row.idle_s:.1f} s",
    )  # fmt: skip


def _or_dash(value: object) -> str:
    return "-" if value is None else str(value)


def _short(event: IntentEvent) -> str:
    return event.text.partition(", manifest")[0]


def finished(screen: Screen, store: Book) -> bool:
    """Tell whether every training job has ended and every stop has found its heirs."""
    watches = {watch.key.job_id: watch for watch in store.recent(100) if watch.ending is not None}
    if not all(part.job in watches for part in screen.parts if part.trains):
        return False
    intents = store.intents_of([watch.key for watch in watches.values()])
    return all(intent.handed_to or intent.state is not State.CONFIRMED for intent in intents)


def as_promised(found: Sequence[Row]) -> bool:
    """Tell whether exactly the over-optimising jobs were stopped, each with its best checkpoint kept."""
    return all(
        bool(row.stopped_at and row.checkpoint_kept and row.gpus_handed_to) == row.kind.startswith("over")
        for row in found
    )


def report(found: Sequence[Row], places: Mapping[str, Path], *, as_json: bool, seconds: float) -> None:
    """Print the table and where everything lies; `places` has the settings too."""
    if as_json:
        data = {"seconds": round(seconds, 1), "as_promised": as_promised(found), "jobs": as_data(found)}
        where = {what: str(place) for what, place in places.items()}
        sys.stdout.write(json.dumps({**data, "places": where}, indent=2) + "\n")
        return
    sys.stdout.write(f"\n{table(found)}\n\n")
    for what, place in places.items():
        sys.stdout.write(f"{what:12} {place}\n")
    program = Path(sys.executable).parent / "evalstopd"
    sys.stdout.write(f"\nlook closer: {program} explain {found[0].job} --config {places['settings']}\n")
    if any(row.idle_s is not None for row in found):
        told = "from the request to cancel to the next job's first line, the end of the old job included"
        sys.stdout.write(f"idle: {told}\n")
    sys.stdout.write(f"{seconds:.0f} s in all; every process of the demo has ended\n")
