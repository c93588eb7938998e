"""What we changed of a waiting job's Nice or Priority, and what became of it."""

from dataclasses import dataclass, replace
from enum import StrEnum

from evalstopd.core.model import JobKey
from evalstopd.core.priorities import Change

# So many jobs are moved by one command of Slurm's: few enough to be through within its time limit on a busy controller.
AT_ONCE = 100


class Lever(StrEnum):
    """What moves a job: Nice, on which multifactor goes on reckoning, or Priority, which it then leaves alone."""

    NICE = "nice"
    PRIORITY = "priority"


class ShiftState(StrEnum):
    """ASKED: not seen in effect yet. SET: seen so. LEFT: the job is left alone from now on."""

    ASKED = "asked"
    SET = "set"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class Steer:
    """What is asked of Slurm for one waiting job or array: a Nice, a Priority, or that it reckon the Priority anew.

    With `anew` the Nice is set after it, as setting a Priority loses it.
    """

    job_id: str
    nice: int | None = None
    priority: int | None = None
    anew: bool = False


@dataclass(frozen=True, slots=True)
class Shift:
    """One job that was moved. `key.job_id` is the array's id where it is one.

    `nice` and `natural` are its Nice and its priority as they were found. `asked` is the value of the lever asked for
    last, `before` the one that was ours before that. `tries` counts how often what was asked for did not stay.
    """

    key: JobKey
    lever: Lever
    nice: int
    natural: int
    asked: int
    before: int
    asked_s: float
    tries: int = 0
    state: ShiftState = ShiftState.ASKED
    why: str = ""

    @property
    def home(self) -> int:
        """Return the value of the lever as it was found."""
        return self.nice if self.lever is Lever.NICE else self.natural

    @property
    def away(self) -> bool:
        """Tell whether something of ours may be in effect, which is to be taken back."""
        return self.state is not ShiftState.LEFT and (self.asked != self.home or self.before != self.home)


BY_HAND = "its {lever} was set by hand to {seen}"
WILL_NOT_STAY = "its {lever} did not stay as it was set {tries} times: its owner resets it, or its Priority is fixed"


def observed(shift: Shift, priority: int, nice: int, reassert: int) -> Shift:
    """Return the shift after a look at its job, which waits: what was asked for is in effect, or not, or not ours.

    What does not stay is asked for again `reassert` times, then the job is left alone; at once where the value is
    neither ours nor the one that was found; never while a value of ours is in effect. What is given back and not seen
    so is no try of its owner's.
    """
    seen = nice if shift.lever is Lever.NICE else priority
    if shift.state is ShiftState.LEFT:
        return shift
    if seen == shift.asked:
        return replace(shift, before=seen, state=ShiftState.SET)
    # The request never arrived: what we set before it is in effect, and still to be taken back.
    earlier = shift.state is ShiftState.ASKED and seen == shift.before and seen != shift.home
    if not earlier and seen != shift.home and shift.lever is Lever.NICE:
        return _left(shift, BY_HAND.format(lever="Nice", seen=seen))
    back = shift.asked == shift.home
    tries = shift.tries + int(not back)
    if tries > reassert and not back and not earlier:
        what = shift.lever.value.capitalize()
        return replace(_left(shift, WILL_NOT_STAY.format(lever=what, tries=tries)), tries=tries)
    # Without what was ours Slurm reckons a Priority anew: it need not be what was found.
    found = seen if shift.lever is Lever.PRIORITY and not earlier else shift.natural
    return replace(shift, asked=seen, before=seen, natural=found, tries=tries, state=ShiftState.SET)


def asked_for(change: Change, key: JobKey, nice: int, lever: Lever, now_s: float, known: Shift | None) -> Shift:
    """Return what is written down before a change is asked for; `nice` is the job's Nice now.

    While something of ours is in effect a job stays on the lever that moved it: only that one can be taken back.
    """
    if known is not None and known.lever is not lever and not known.away:
        return replace(asked_for(change, key, nice, lever, now_s, None), tries=known.tries)
    lever = lever if known is None else known.lever
    value = change.priority
    if lever is Lever.NICE:
        value = nice + change.job.priority - change.priority
    if known is None:
        home = nice if lever is Lever.NICE else change.job.natural
        return Shift(key, lever, nice, change.job.natural, value, home, now_s)
    return replace(known, asked=value, before=known.asked, asked_s=now_s, state=ShiftState.ASKED)


def taken_back(shift: Shift, now_s: float) -> Shift:
    """Return what is written down before a job gets back what it had."""
    return replace(shift, asked=shift.home, before=shift.asked, asked_s=now_s, state=ShiftState.ASKED)


def steer(shift: Shift) -> Steer:
    """Return what is asked of Slurm for a shift."""
    if shift.lever is Lever.NICE:
        return Steer(shift.key.job_id, nice=shift.asked)
    if shift.asked == shift.home:
        return Steer(shift.key.job_id, nice=shift.nice, anew=True)
    return Steer(shift.key.job_id, priority=shift.asked)


def natural(shift: Shift | None, priority: int, nice: int) -> int:
    """Return what a job's priority would be without us."""
    if shift is None or shift.state is ShiftState.LEFT:
        return priority
    if shift.lever is Lever.NICE:
        return priority + nice - shift.nice
    return shift.natural if priority in (shift.asked, shift.before) else priority


def _left(shift: Shift, why: str) -> Shift:
    return replace(shift, state=ShiftState.LEFT, why=why)
