"""From the store's book to the scorecard: which jobs can tell something of a rule, and what they tell."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalstopd.core.curve import curve, series
from evalstopd.core.detectors import Stop
from evalstopd.core.guards import REFUSING
from evalstopd.core.intent import Intent, WouldBeStop
from evalstopd.core.model import Eval, JobKey, Point, Rung
from evalstopd.core.plan import verdicts as answers
from evalstopd.core.watch import Remark, Watch, in_effect
from evalstopd.ports import Archive, Store
from evalstopd.report.scorecard.card import Card, make_card
from evalstopd.report.scorecard.fate import Decision, Fate, StopRow, first_decision, stop_row
from evalstopd.report.scorecard.limits import Limits, Verdict, verdicts

SITE = "site"
OVERRIDE = "enforce-override"
"""The remark that the enforce rung was taken without a passed card."""


@dataclass(frozen=True, slots=True)
class RuleCard:
    """One rule's card and what it allows."""

    card: Card
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Scorecard:
    """Every rule's card, the site's own first, every would-be stop, and where the card was overridden.

    `apart` counts the jobs that say nothing: judged by a `misleading metric`, or by evals that its `owner's log
    contradicts`; or without a would-be stop and `running`, with `few evals`, first seen on `enforce` (those that fall
    are stopped, only the others are left) or `off`, or `unclear`: the rule taken alone would have stopped them, but a
    veto stood, the owner had chosen otherwise, or evals came two at once.
    """

    site_rule: str
    since_s: float
    cards: tuple[RuleCard, ...]
    stops: tuple[StopRow, ...]
    apart: Mapping[str, int]
    overrides: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class _Told:
    """What one job tells of a rule: a would-be stop, a quiet end, or (`apart`) why nothing."""

    rule: str
    span: tuple[float, float]
    stop: StopRow | None = None
    apart: str = ""

    @property
    def judged(self) -> bool:
        """Tell whether the job is one of those that the rule's shares are of."""
        return not self.apart if self.stop is None else self.stop.fate in (Fate.RIGHT, Fate.WRONGED)


def read_scorecard(archive: Archive, store: Store, rule: str, limits: Limits, since_s: float = 0.0) -> Scorecard:
    """Return the scorecard over the jobs first seen since a moment (seconds since the epoch); `rule` is the site's."""
    told = _told(archive, store, limits, since_s)
    rules = dict.fromkeys([rule, *sorted({each.rule for each in told if not each.apart})])
    stops = [each.stop for each in told if each.stop is not None]
    return Scorecard(
        site_rule=rule,
        since_s=since_s,
        cards=tuple(_card(each, told, limits) for each in rules),
        stops=tuple(sorted(stops, key=lambda row: row.at_s, reverse=True)),
        apart=Counter(each.apart for each in told if each.apart),
        overrides=tuple(each for each in archive.remarks_of([SITE]) if each.code == OVERRIDE),
    )


def _told(archive: Archive, store: Store, limits: Limits, since_s: float) -> list[_Told]:
    watches = archive.watched_since(since_s)
    keys = [watch.key for watch in watches]
    points = store.points(keys)
    would_be: dict[JobKey, list[WouldBeStop]] = defaultdict(list)
    for stop in archive.would_be_of(keys):
        would_be[stop.key].append(stop)
    intents: dict[JobKey, list[Intent]] = defaultdict(list)
    for intent in archive.intents_of(keys):
        intents[intent.key].append(intent)
    misled = {each.subject for each in archive.remarks_of([key.text for key in keys]) if each.code in REFUSING}
    apart = dict.fromkeys((key for key in keys if key.text in misled), "misleading metric")
    apart |= {key: "owner's log contradicts" for key in keys if any(e.evidence.contradicted for e in intents[key])}
    return [
        _tell(each, points[each.key], first_decision(would_be[each.key], intents[each.key]), limits)
        if each.key not in apart
        else _Told(each.terms.rule, (each.first_s, each.first_s), apart=apart[each.key])
        for each in watches
    ]


def _tell(watch: Watch, points: Sequence[Point], decision: Decision | None, limits: Limits) -> _Told:
    judged_by = in_effect(watch) if decision is None else decision.evidence
    # Another metric that its owner chose, or another dataset's evals, say nothing of what was decided on this one.
    evals = curve(series(points, judged_by.metric, judged_by.dataset))
    ended_s = watch.ending.ended_s if watch.ending is not None else None
    span = (watch.first_s, ended_s if ended_s is not None else watch.first_s)
    if decision is not None:
        return _Told(decision.evidence.rule, span, stop_row(watch, decision, evals))
    return _Told(watch.terms.rule, span, apart=_apart(watch, evals, limits))


def _apart(watch: Watch, evals: Sequence[Eval], limits: Limits) -> str:
    """Return why a job without a would-be stop says nothing; empty if it ended quietly."""
    if watch.ending is None:
        return "running"
    if watch.terms.rung not in (Rung.OBSERVE, Rung.WARN):
        return watch.terms.rung.word
    if len(evals) < limits.min_evals:
        return "few evals"
    stopping = any(isinstance(each, Stop) for each in answers(evals, watch.terms))
    return "unclear" if stopping else ""


def _card(rule: str, told: Sequence[_Told], limits: Limits) -> RuleCard:
    mine = [each for each in told if each.rule == rule]
    stops = [each.stop for each in mine if each.stop is not None]
    quiet = sum(each.stop is None and each.judged for each in mine)
    card = make_card(rule, stops, quiet, [each.span for each in mine if each.judged])
    return RuleCard(card, verdicts(card, limits))
