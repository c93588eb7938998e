"""What a site asks of a rule before it may warn, and before it may stop jobs."""

from dataclasses import dataclass

from evalstopd.core.model import Rung
from evalstopd.report.scorecard.card import Card


@dataclass(frozen=True, slots=True)
class Limit:
    """What a card must show: jobs that can tell, days they span, and the most that may have been wronged.

    `max_wronged` is held against the upper end of the share's 95 % interval: too few jobs never pass.
    """

    min_jobs: int
    min_days: float
    max_wronged: float


@dataclass(frozen=True, slots=True)
class Limits:
    """The site's limits. A job that ended with fewer evals than `min_evals`, and no stop, says nothing."""

    warn: Limit = Limit(min_jobs=30, min_days=7.0, max_wronged=0.20)
    enforce: Limit = Limit(min_jobs=100, min_days=28.0, max_wronged=0.05)
    min_evals: int = 6


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a card allows a rung, and what it lacks if not."""

    rung: str
    met: bool
    missing: tuple[str, ...]


def verdicts(card: Card, limits: Limits) -> tuple[Verdict, ...]:
    """Return what a card allows: warn, enforce."""
    return (_verdict(card, Rung.WARN, limits.warn), _verdict(card, Rung.ENFORCE, limits.enforce))


def _verdict(card: Card, rung: Rung, limit: Limit) -> Verdict:
    high = card.wronged_share.high
    shown = "unknown" if high is None else f"up to {high:.1%}"
    wants = (
        (card.judged >= limit.min_jobs, f"{card.judged} of {limit.min_jobs} jobs"),
        (card.days >= limit.min_days, f"{card.days:.1f} of {limit.min_days:g} days"),
        (
            high is not None and high <= limit.max_wronged,
            f"the share of wronged jobs is {shown}, {limit.max_wronged:.1%} allowed",
        ),
    )
    missing = tuple(text for holds, text in wants if not holds)
    return Verdict(rung.word, not missing, missing)
