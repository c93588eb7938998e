"""Pins of jobs that were not stopped, long after: the keeper drops them as their owner, and the book says so."""

import posixpath
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from evalstopd.core.watch import Pin, PinState, Remark
from evalstopd.errors import CheckpointFailed, CheckpointIncomplete, CheckpointMissing, Rejected
from evalstopd.ports import Changes, PinPlace, Ports, Upkeep

CODE = "pins-dropped"
BATCH = 20
TIME_S = 10.0
_MOST_TRIES = 3


def drop_old_pins(ports: Ports, book: Upkeep, cluster: str, over_before_s: float) -> tuple[int, bool]:
    """Drop pins for a short while; return how many were dropped, and whether more wait.

    Raises Unavailable where keeper or store does not answer.
    """
    until_s = ports.clock.now_s() + TIME_S
    pins = book.old_pins(cluster, over_before_s, BATCH)
    dropped = 0
    for _, group in groupby(pins, key=lambda pin: pin.key):
        if ports.should_stop() or ports.kill_switch.engaged() or ports.clock.now_s() > until_s:
            return dropped, False
        tried = list(_tried(ports, group))
        gone = [pin for pin in tried if pin.state is PinState.DROPPED]
        dropped += len(gone)
        ports.store.record(Changes(pins=tuple(tried), remarks=tuple(_remarks(gone, ports.clock.now_s()))))
    return dropped, len(pins) == BATCH


def _tried(ports: Ports, pins: Iterator[Pin]) -> Iterator[Pin]:
    for pin in pins:
        place = place_of(pin)
        if place is None:
            yield replace(pin, state=PinState.LOST, why="its path is not one of the keeper's")
            continue
        try:
            ports.keeper.drop(place)
        except (Rejected, CheckpointMissing, CheckpointIncomplete) as error:
            yield replace(pin, state=PinState.LOST, why=f"could not be dropped: {error}")
        except CheckpointFailed as error:
            lost = pin.tries + 1 >= _MOST_TRIES
            state = PinState.LOST if lost else pin.state
            yield replace(pin, tries=pin.tries + 1, state=state, why=f"could not be dropped: {error}")
        else:
            yield replace(pin, state=PinState.DROPPED, why="the job ended long ago and was not stopped")


def place_of(pin: Pin) -> PinPlace | None:
    """Return where a pin lies by its path alone: the run and the job that could tell may be gone.

    `FOLDER/.evalstop/NAME/step-N`: the keeper looks in FOLDER for any output folder in it, where FOLDER is the owner's.
    """
    home, step = posixpath.split(pin.path)
    above, name = posixpath.split(home)
    folder, hidden = posixpath.split(above)
    if hidden != ".evalstop" or step != f"step-{pin.step}" or not folder.startswith("/"):
        return None
    return PinPlace(pin.key.uid, posixpath.join(folder, hidden), name, pin.step)


def _remarks(gone: list[Pin], now_s: float) -> Iterator[Remark]:
    if gone:
        steps = ", ".join(str(pin.step) for pin in gone)
        text = f"pins of a job that ended long ago and was not stopped were dropped: steps {steps}"
        yield Remark(gone[0].key.text, CODE, text, now_s)
