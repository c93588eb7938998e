"""What one rule is worth by the book: stops that were right, jobs it would have wronged, with exact bounds."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evalstopd.report.replay.intervals import Estimate, exact, mean
from evalstopd.report.scorecard.fate import Fate, StopRow

_DAY_S = 86400.0
_MUCH = 0.10


@dataclass(frozen=True, slots=True)
class Card:
    """One rule's figures. Intervals are 95 %, exact (Clopper and Pearson 1934) for shares of jobs.

    `judged` are the jobs that can tell: ended quietly, would have been stopped rightly, or wronged. `wronged_share` is
    of them; `right_share` of the stops that can tell. `days` is from the first of these jobs to the last one's end.
    Hours are GPU-hours from the would-be stop to the job's end: `saved_hours` by right stops, `taken_hours` from
    wronged jobs; `saved_a_job` is their mean over judged jobs. Besides, counted for nothing: stops of jobs that
    ended without another eval (`untested`), still run (`unfinished`) or were stopped in earnest (`stopped`).
    """

    rule: str
    judged: int
    days: float
    quiet: int
    right: int
    wronged: int
    wronged_share: Estimate
    right_share: Estimate
    lost_over_10pct: Estimate
    saved_hours: float
    taken_hours: float
    saved_a_job: Estimate
    untested: int
    unfinished: int
    stopped: int


def make_card(rule: str, stops: Sequence[StopRow], quiet: int, spans: Sequence[tuple[float, float]]) -> Card:
    """Return a rule's card. `quiet` jobs ended without a would-be stop; `spans` has first sight and end of each
    judged job, in seconds since the epoch."""
    fates = Counter(each.fate for each in stops)
    right, wronged = fates[Fate.RIGHT], fates[Fate.WRONGED]
    judged = quiet + right + wronged
    saved = [each.gpu_hours or 0.0 for each in stops if each.fate is Fate.RIGHT]
    told = [each for each in stops if each.fate in (Fate.RIGHT, Fate.WRONGED)]
    return Card(
        rule=rule,
        judged=judged,
        days=_days(spans),
        quiet=quiet,
        right=right,
        wronged=wronged,
        wronged_share=exact(wronged, judged),
        right_share=exact(right, right + wronged),
        lost_over_10pct=exact(sum(each.lost > _MUCH for each in told), judged),
        saved_hours=sum(saved),
        taken_hours=sum(each.gpu_hours or 0.0 for each in stops if each.fate is Fate.WRONGED),
        saved_a_job=mean([*saved, *[0.0] * (judged - len(saved))]),
        untested=fates[Fate.UNTESTED],
        unfinished=fates[Fate.UNFINISHED],
        stopped=fates[Fate.STOPPED],
    )


def _days(spans: Sequence[tuple[float, float]]) -> float:
    if not spans:
        return 0.0
    return (max(end for _, end in spans) - min(begin for begin, _ in spans)) / _DAY_S
