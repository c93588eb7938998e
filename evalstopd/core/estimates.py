"""How long a job will run: its time limit, corrected by what its owner's earlier jobs used of theirs.

Source of the idea: user estimates adjusted by the ratio of real to asked time of the same user and project (Tang,
Desai, Buettner, Lan, IPDPS 2010); earlier Tsafrir, Etsion, Feitelson (TPDS 2007). docs/estimates.md has the formula,
and why it is bent this way.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import accumulate
from math import floor, log2
from typing import NamedTuple

from evalstopd.core.model import Job

BINS_PER_OCTAVE = 8
OCTAVES = 8
TOP = BINS_PER_OCTAVE * OCTAVES
"""The bin of a job that used its whole limit; bin 0 is that of 1/256 of it and less."""
SHARES: tuple[float, ...] = tuple(2.0 ** ((each - TOP) / BINS_PER_OCTAVE) for each in range(TOP + 1))
"""The upper edge of each bin: a share is told a little too long (9 % at most) rather than too short."""
COARSER_JOBS = 4.0
"""What a coarser group tells weighs as so many jobs in a closer one."""
WHOLE_S = 600.0
"""A job that ran for so long counts whole, a shorter one in proportion: what ends at once proves little."""
CRASH_S = 60.0
"""A job that failed before it ran for so long has not begun its work: it is left out."""
LEAST_S = 60.0
"""No estimate is shorter, unless the limit is."""
HALF_LIFE_S = 30 * 86400.0
"""What a job tells weighs half after so long."""
MOST_NAMES = 200
"""So many names of jobs are kept of a user in an account: what a flood of names costs is bounded."""
LEAST_WEIGHT = 0.001
"""Kin of which less is known, in whole jobs, are forgotten."""

_NONE = "-"
_AT_THE_LIMIT = (*(0.0 for _ in range(TOP)), 1.0)
_OWN_END = frozenset({"COMPLETED", "TIMEOUT"})
_FAILED = frozenset({"FAILED", "OUT_OF_MEMORY"})
_CUT = frozenset({"CANCELLED", "PREEMPTED", "REQUEUED", "NODE_FAIL", "BOOT_FAIL", "DEADLINE", "REVOKED"})


class Kin(NamedTuple):
    """Jobs that are alike: a user's, in an account, of one name (a digest of it). Empty words stand for any."""

    user: str = ""
    account: str = ""
    name: str = ""


EVERYBODY = Kin()
KINDS = ("of everybody", "of the user", "of the user in the account", "of the user in the account under this name")
"""What each kin is called, from the widest to the closest one."""


class Asked(NamedTuple):
    """A job whose length is wanted. Times in seconds; `attained_s` is how long a running one has run."""

    user: str
    account: str
    name: str
    limit_s: float | None
    attained_s: float = 0.0


class PastLife(NamedTuple):
    """One life of a job that is over, as accounting tells it; times in seconds on the scale of `History.read_s`."""

    user: str
    account: str
    name: str
    limit_s: float | None
    elapsed_s: float
    state: str
    ended_s: float
    submitted_s: float = 0.0


class Use(NamedTuple):
    """What a life tells: the bin of the share of its limit that it used, and how much it counts.

    `cut`: others ended it, so that all that is known is that it would have used more.
    """

    bin: int
    weight: float
    cut: bool


@dataclass(frozen=True, slots=True)
class Length:
    """How long a job is taken to run in all, in seconds, and by what: about `jobs` whole jobs `of` a kind."""

    length_s: float
    limit_s: float
    jobs: float
    of: str

    @property
    def text(self) -> str:
        """Return the same in words."""
        share = self.length_s / self.limit_s
        known = f"by {self.jobs:.3g} jobs {self.of}" if self.jobs else "nothing is known of jobs like it"
        return f"{self.length_s:.0f} s, {share:.0%} of its limit: {known}"


@dataclass(slots=True)
class Tally:
    """How much weight fell into each bin by a moment: of jobs that ended of themselves, and of those cut short."""

    at_s: float
    ended: list[float] = field(default_factory=lambda: [0.0] * (TOP + 1))
    cut: list[float] = field(default_factory=lambda: [0.0] * (TOP + 1))

    def add(self, use: Use, ended_s: float) -> None:
        """Count one life; what is older weighs less, whenever it is told."""
        if ended_s > self.at_s + HALF_LIFE_S:
            self.fade(ended_s)
        (self.cut if use.cut else self.ended)[use.bin] += use.weight * faded(self.at_s - ended_s)

    def copy(self) -> "Tally":
        """Return one of the same counts that can be changed by itself."""
        return Tally(self.at_s, list(self.ended), list(self.cut))

    def fade(self, at_s: float) -> None:
        """Bring the weights to a later moment."""
        left = faded(at_s - self.at_s)
        self.ended = [each * left for each in self.ended]
        self.cut = [each * left for each in self.cut]
        self.at_s = at_s


class History:
    """What the jobs of a cluster used of their limits, by kin: counts, no jobs. `read_s`: all before it is in it."""

    def __init__(self, read_s: float = 0.0, tallies: Mapping[Kin, Tally] | None = None) -> None:
        self.read_s = read_s
        self.tallies = dict(tallies or {})
        # What was reckoned of the counts since they last changed.
        self._chances: dict[Kin, tuple[float, ...]] = {}
        self._weights: dict[Kin, float] = {}

    def add(self, life: PastLife) -> tuple[Kin, ...]:
        """Count a life that is over; return the kin that it told something of."""
        use = use_of(life)
        if use is None:
            return ()
        kin = kin_of(life.user, life.account, life.name)
        for each in kin:
            self.tallies.setdefault(each, Tally(life.ended_s)).add(use, life.ended_s)
        self._changed()
        return kin

    def copy(self) -> "History":
        """Return one of the same counts that can be changed by itself."""
        return History(self.read_s, {kin: tally.copy() for kin, tally in self.tallies.items()})

    def read_until(self, read_s: float) -> None:
        """Note that everything before a moment has been counted."""
        self.read_s = read_s
        self._changed()

    def surplus(self) -> tuple[Kin, ...]:
        """Return the kin that are not worth keeping: faded ones, and a user's names in an account beyond the most."""
        faint: list[Kin] = []
        names: dict[tuple[str, str], list[tuple[float, Kin]]] = {}
        for kin, tally in self.tallies.items():
            weight = (sum(tally.ended) + sum(tally.cut)) * faded(self.read_s - tally.at_s)
            if weight < LEAST_WEIGHT:
                faint.append(kin)
            elif kin.name:
                names.setdefault(kin[:2], []).append((weight, kin))
        many = [each for of in names.values() for _, each in sorted(of, reverse=True)[MOST_NAMES:]]
        return (*faint, *many)

    def forget(self, kin: Iterable[Kin]) -> None:
        """Drop what is known of these."""
        for each in kin:
            self.tallies.pop(each, None)
        self._changed()

    def weight(self, kin: Kin) -> float:
        """Return about how many whole jobs that ended of themselves are known of a kin."""
        weight = self._weights.get(kin)
        if weight is None:
            tally = self.tallies.get(kin)
            weight = sum(tally.ended) * faded(self.read_s - tally.at_s) if tally is not None else 0.0
            self._weights[kin] = weight
        return weight

    def estimate(self, asked: Asked) -> Length | None:
        """Return how long a job will have run in all; None for one without a time limit.

        The median of what its kin used, of a running job only of those that ran at least as long. Never above the
        limit, never below what it has attained already, LEAST_S at least where the limit allows.
        """
        if asked.limit_s is None or asked.limit_s <= 0:
            return None
        kin = kin_of(asked.user, asked.account, asked.name)
        share = _median(self._summed(kin), asked.attained_s / asked.limit_s)
        length_s = min(asked.limit_s, max(LEAST_S, share * asked.limit_s))
        jobs, of = self._known(kin)
        return Length(length_s, asked.limit_s, jobs, of)

    def _known(self, kin: tuple[Kin, ...]) -> tuple[float, str]:
        """Return the weight of the closest kin that anything is known of, and what it is called."""
        for each, of in zip(reversed(kin), reversed(KINDS), strict=True):
            if (weight := self.weight(each)) > 0:
                return weight, of
        return 0.0, KINDS[0]

    def _summed(self, kin: tuple[Kin, ...]) -> tuple[float, ...]:
        """Return for each bin the chance of it and those below: a closer kin's own, mixed with the coarser one's.

        At first all chance is at the limit, so who is not known is taken at his word.
        """
        summed = _AT_THE_LIMIT
        for each in kin:
            summed = self._mixed(each, summed)
        return summed

    def _mixed(self, kin: Kin, coarser: tuple[float, ...]) -> tuple[float, ...]:
        weight = self.weight(kin)
        if weight <= 0:
            return coarser
        mixed = self._chances.get(kin)
        if mixed is None:
            own, of_all = accumulate(survived(self.tallies[kin])), weight + COARSER_JOBS
            mixed = tuple(
                (weight * mine + COARSER_JOBS * others) / of_all for mine, others in zip(own, coarser, strict=True)
            )
            self._chances[kin] = mixed
        return mixed

    def _changed(self) -> None:
        self._chances.clear()
        self._weights.clear()


def kin_of(user: str, account: str, name: str) -> tuple[Kin, ...]:
    """Return the kin of a job from the widest to the closest one. Names are users' text: a digest stands for them."""
    # An empty word would stand for any.
    user, account = user or _NONE, account or _NONE
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return EVERYBODY, Kin(user), Kin(user, account), Kin(user, account, digest)


def use_of(life: PastLife) -> Use | None:
    """Return what a life tells of its kin's use of their limits; None where it tells nothing.

    COMPLETED and TIMEOUT, and FAILED after CRASH_S: it ended of itself. CANCELLED (by its owner, an admin, or a stop
    of ours), preempted, requeued or lost with its node: cut short, so it counts as having needed more.
    """
    if life.limit_s is None or life.limit_s <= 0 or life.elapsed_s <= 0:
        return None
    crashed = life.state in _FAILED and life.elapsed_s < CRASH_S
    if crashed or life.state not in _OWN_END | _FAILED | _CUT:
        return None
    share = 1.0 if life.state == "TIMEOUT" else life.elapsed_s / life.limit_s
    return Use(bin_of(share), min(1.0, life.elapsed_s / WHOLE_S), life.state in _CUT)


def is_own_end(life: PastLife) -> bool:
    """Tell whether a life's length is what its work needed, so that an estimate of it can be judged."""
    use = use_of(life)
    return use is not None and not use.cut


def bin_of(share: float) -> int:
    """Return the bin of a share of a limit."""
    if share >= 1:
        return TOP
    return max(0, TOP - floor(-log2(share) * BINS_PER_OCTAVE)) if share > 0 else 0


def faded(age_s: float) -> float:
    """Return what is left of a weight after a time."""
    return float(2.0 ** (-age_s / HALF_LIFE_S))


def lengths(known: History, jobs: Iterable[Job], now_s: float) -> dict[str, Length]:
    """Return how long each of these jobs is taken to run in all, by job id; those without a time limit are left out."""
    found: dict[str, Length] = {}
    for job in jobs:
        attained_s = max(0.0, now_s - job.started_s) if job.started_s is not None else 0.0
        estimate = known.estimate(Asked(job.user, job.account, job.name, job.time_limit_s, attained_s))
        if estimate is not None:
            found[job.job_id] = estimate
    return found


def survived(tally: Tally) -> tuple[float, ...]:
    """Return the chance of each bin by Kaplan and Meier (1958), what is left at last being at the limit.

    So a job that was cut short never makes an estimate shorter: it only moves chance to the bins above its own.
    """
    at_risk = list(accumulate(reversed([a + b for a, b in zip(tally.ended, tally.cut, strict=True)])))[::-1]
    left = 1.0
    chances: list[float] = []
    for ended, risk in zip(tally.ended, at_risk, strict=True):
        part = min(1.0, ended / risk) if risk > 0 else 0.0
        chances.append(left * part)
        left *= 1 - part
    chances[TOP] += left
    return tuple(chances)


def _median(summed: tuple[float, ...], above: float) -> float:
    """Return the median of the shares above a share, of summed chances; the whole limit where none is left."""
    first = bisect_right(SHARES, above)
    below = summed[first - 1] if first else 0.0
    if first > TOP or summed[TOP] <= below:
        return 1.0
    return SHARES[min(TOP, bisect_left(summed, (below + summed[TOP]) / 2, first))]
