"""Pin each wanted checkpoint as its owner, before the trainer rotates it away; drop what is no candidate any more."""

import posixpath
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evalstopd.core.missing import is_sought, lot
from evalstopd.core.model import JobKey, Rung
from evalstopd.core.watch import Pin, PinState, Watch
from evalstopd.errors import CheckpointFailed, CheckpointIncomplete, CheckpointMissing, Rejected, Unavailable
from evalstopd.loop.observe import Observation
from evalstopd.loop.report import Tally
from evalstopd.loop.shares import Shares
from evalstopd.ports import Changes, ModelQuery, PinPlace, Ports

_UNTOLD = "neither the run nor the comment (evalstop_output=) names an output folder"
_MOST_TRIES = 3
MOST_STEP = 10**15 - 1  # fifteen digits are all that the name of a checkpoint may have
_NOT_COMING = 2  # evals after which a checkpoint that is not there is not coming any more


@dataclass(frozen=True, slots=True)
class PinDesk:
    """The keeper's calls for one pass; `watches` are as this pass recorded them, `held` what open intents keep.

    `shares` bounds the keeper's time, each owner's and all together: one owner's slow files must not cost the others
    their pass. `mute` says why the tracker is not asked for logged models any more in this pass.
    """

    ports: Ports
    seen: Observation
    watches: Mapping[JobKey, Watch]
    candidates: int
    tally: Tally
    shares: Shares
    held: frozenset[tuple[JobKey, int]] = frozenset()
    mute: list[str] = field(default_factory=list)

    def serve(self, pins: Sequence[Pin]) -> tuple[Pin, ...]:
        """Pin what is wanted, then drop what is surplus, as far as the pass's time goes; return all as they stand."""
        after = {(pin.key, pin.step): pin for pin in pins}
        for pin in self._in_turn(pins):
            if self._may_touch(pin):
                self._tend(after, pin)
        for pin in _surplus(after.values(), self.watches, self.candidates):
            if self._may_touch(pin) and (pin.key, pin.step) not in self.held:
                self._keep(after, self._drop(pin))
        return tuple(after.values())

    def _in_turn(self, pins: Sequence[Pin]) -> Iterator[Pin]:
        """Yield what is to be asked for now, one of each owner in turn, each owner's own in the order of urgency."""
        own: dict[int, deque[Pin]] = defaultdict(deque)
        for pin in sorted(pins, key=self._urgency):
            if pin.state in (PinState.WANTED, PinState.OUTDATED) and self._is_time(pin):
                own[pin.key.uid].append(pin)
        while own:
            # Whose stop waits is not before the others: he has more of the pass, they may lose what is new.
            for uid in sorted(own, key=lambda uid: self._urgency(own[uid][0])[1:]):
                yield own[uid].popleft()
            own = {uid: rest for uid, rest in own.items() if rest}

    def _urgency(self, pin: Pin) -> tuple[bool, int, float, float]:
        """What an open stop waits for comes first, what failed before comes last.

        Of the others the newest: what is missing for long may never come, what is new may soon be rotated away.
        """
        drawn = lot(pin, self.seen.snapshot.now_s)
        return ((pin.key, pin.step) not in self.held, pin.tries, -pin.wanted_s, drawn)

    def _is_time(self, pin: Pin) -> bool:
        """Tell whether the keeper is to be asked now: a stop waits for it, a later eval tells more, or it is due."""
        due = is_sought(pin, self.seen.snapshot.now_s, self.seen.rules.tick_s)
        return due or (pin.key, pin.step) in self.held or self._later(pin) > 0

    def _tend(self, after: dict[tuple[JobKey, int], Pin], pin: Pin) -> None:
        self._keep(after, self._odd(pin) or self._pin(pin))

    def _odd(self, pin: Pin) -> Pin | None:
        """Return the pin as lost where no checkpoint can be of its step."""
        odd = odd_step(pin.step)
        return _lost(pin, f"no checkpoint is looked for: {odd}") if odd else None

    def _may_touch(self, pin: Pin) -> bool:
        one = self.seen.seen.get(pin.key)
        stopped = self.ports.should_stop() or self.ports.kill_switch.engaged()
        uid, held = pin.key.uid, (pin.key, pin.step) in self.held
        late = uid in self.shares.silent or not self.shares.left(uid, held=held)
        return one is not None and one.standing.terms.rung >= Rung.WARN and not (stopped or late)

    def _keep(self, after: dict[tuple[JobKey, int], Pin], pin: Pin) -> Pin:
        if after[(pin.key, pin.step)] != pin:
            self.ports.store.record(Changes(pins=(pin,)))
            after[(pin.key, pin.step)] = pin
        return pin

    def _pin(self, pin: Pin) -> Pin:
        place = self.place(pin)
        if place is None:
            return self._not_yet(pin, _UNTOLD)
        make = self.ports.keeper.repin if pin.state is PinState.OUTDATED else self.ports.keeper.pin
        try:
            with self.shares.of(place.uid):
                report = make(place)
        except (CheckpointMissing, CheckpointIncomplete) as error:
            guessed = place.output_dir.endswith(f"/{self.watches[pin.key].run_id}/checkpoints")
            return self._not_yet(pin, f"{_UNTOLD}; where Lightning saves: {error}" if guessed else str(error))
        except CheckpointFailed as error:
            failed = replace(pin, tries=pin.tries + 1, why=str(error))
            return _lost(failed, failed.why) if failed.tries >= _MOST_TRIES else failed
        except Rejected as error:
            return _lost(pin, str(error))
        except Unavailable as error:
            self.tally.trouble(f"keeper: {error}")
            self.shares.silent.add(place.uid)
            return pin
        self.tally.add("pinned")
        return replace(
            pin,
            state=PinState.PINNED,
            path=report.path,
            files=report.files,
            size=report.size,
            manifest=report.manifest,
            why="",
        )

    def _not_yet(self, pin: Pin, why: str) -> Pin:
        """A checkpoint may be written after its eval is logged; two evals later it is not coming any more."""
        later = self._later(pin)
        return self._logged(pin, why, later) if later else replace(pin, why=why)

    def _later(self, pin: Pin) -> int:
        """Return how many later evals this pass has read; those of an earlier life came before the step's, by time."""
        points = self.seen.readings[pin.key].points if pin.key in self.seen.readings else ()
        own = [each.timestamp_ms for each in points if (each.step, each.value) == (pin.step, pin.score)]
        since_ms = max(own, default=0) if pin.restarts else 0
        return len({each.step for each in points if each.step > pin.step and each.timestamp_ms >= since_ms})

    def _logged(self, pin: Pin, why: str, later: int) -> Pin:
        """Look for a checkpoint among the run's logged models, once a later eval shows that no file is coming."""
        facts, models = self.seen.readings[pin.key].facts, self.ports.models
        waiting = _lost(pin, why) if later >= _NOT_COMING else replace(pin, why=why)
        if models is None or not facts.models:
            return waiting
        if self.mute:
            return replace(pin, why=f"{why}; its logged models: {self.mute[0]}")
        query = ModelQuery(facts.run_id, pin.step, int(pin.since_s), self.watches[pin.key].metric_now, pin.score)
        try:
            found = models.find(query)
        except Unavailable as error:
            self.mute.append(str(error))
            self.tally.trouble(f"MLflow: {error}")
            return replace(pin, why=f"{why}; its logged models: {error}")
        except (CheckpointMissing, CheckpointIncomplete, Rejected) as error:
            return replace(waiting, why=f"{why}; {error}")
        if pin.state is PinState.OUTDATED and not self._dropped(pin):
            return replace(pin, why=f"{why}; the earlier pin could not be dropped for a logged model")
        self.tally.add("logged models found")
        return replace(
            pin,
            state=PinState.LOGGED,
            path=found.uri,
            files=found.files,
            size=found.size,
            manifest=found.listing,
            why="",
        )

    def _drop(self, pin: Pin) -> Pin:
        return replace(pin, state=PinState.DROPPED, why="no candidate any more") if self._dropped(pin) else pin

    def _dropped(self, pin: Pin) -> bool:
        place = self.place(pin)
        if place is None:
            return False
        try:
            with self.shares.of(place.uid):
                self.ports.keeper.drop(place)
        except (Unavailable, Rejected, CheckpointFailed, CheckpointMissing, CheckpointIncomplete) as error:
            self.tally.trouble(f"keeper: {error}")
            if isinstance(error, Unavailable):
                self.shares.silent.add(place.uid)
            return False
        return True

    def place(self, pin: Pin) -> PinPlace | None:
        """Return where a pin's checkpoint and the pin lie, if the run says where its output goes."""
        watch, one = self.watches.get(pin.key), self.seen.seen.get(pin.key)
        if watch is None or one is None or not watch.output_dir:
            return None
        folder = output_folder(one.sighting.job.work_dir, watch.output_dir)
        since_s, later = int(pin.since_s), self._later(pin) > 0
        return PinPlace(pin.key.uid, folder, pin_name(pin.key), pin.step, since_s, watch.metric_now, pin.score, later)


def _lost(pin: Pin, why: str) -> Pin:
    """Return a pin whose checkpoint is not coming; what is pinned of the step already stays its owner's."""
    return replace(pin, state=PinState.STALE if pin.state is PinState.OUTDATED else PinState.LOST, why=why)


def odd_step(step: int) -> str:
    """Return why the keeper is asked nothing of this step; empty where it may be."""
    if 0 <= step <= MOST_STEP:
        return ""
    said = "is below 0" if step < 0 else "has more than 15 digits"
    return f"step {step} {said}; log evals at the training's own steps, which count from 0"


def output_folder(work_dir: str, output_dir: str) -> str:
    """Return where a job's output goes, as an absolute path."""
    folder = posixpath.normpath(posixpath.join(work_dir, output_dir))
    return f"/{folder.lstrip('/')}"  # normpath keeps two leading slashes


def pin_name(key: JobKey) -> str:
    """Return the folder name of a job's pins: cluster, job, first submit."""
    return f"{key.cluster}-{key.job_id}-{key.submitted_s}"


def _surplus(pins: Iterable[Pin], watches: Mapping[JobKey, Watch], candidates: int) -> list[Pin]:
    """Return the oldest safe pins past the newest `candidates` of each job; never the best, never one published."""
    by_job: dict[JobKey, list[Pin]] = {}
    for pin in pins:
        if pin.state in (PinState.PINNED, PinState.OUTDATED, PinState.STALE):
            by_job.setdefault(pin.key, []).append(pin)
    surplus: list[Pin] = []
    for key, held in by_job.items():
        watch = watches.get(key)
        newest_last = sorted(held, key=lambda pin: (pin.wanted_s, pin.step))
        surplus += [pin for pin in newest_last[:-candidates] if watch is not None and pin.step != watch.best_step]
    return surplus
