"""By which metric a job is judged where nobody named one: chosen once from what its run has, then kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from evalstopd.core.binding import RunFacts
from evalstopd.core.curve import curve
from evalstopd.core.guards import Caution, cautions
from evalstopd.core.metric_choice import Unclear, choose, direction_caution, is_sweeping, told_mode
from evalstopd.core.mixed import mixed_caution, untold_caution
from evalstopd.core.model import JobKey, Mode
from evalstopd.core.naming import guessed_mode
from evalstopd.core.rules import Rules, standing
from evalstopd.core.stepless import stepless_caution
from evalstopd.loop.watched import Seen
from evalstopd.ports import RunReading

_PATIENCE_S = 3600.0


@dataclass(frozen=True, slots=True)
class Choices:
    """Jobs whose metric was chosen in this pass, and why none could be for others."""

    made: Mapping[JobKey, Seen] = field(default_factory=dict)
    unclear: Mapping[JobKey, Unclear] = field(default_factory=dict)


def choices(undecided: Mapping[JobKey, tuple[Seen, RunFacts]], rules: Rules, now_s: float) -> Choices:
    """Choose for jobs without a metric, by what their runs have logged so far."""
    made: dict[JobKey, Seen] = {}
    unclear: dict[JobKey, Unclear] = {}
    for key, (one, facts) in undecided.items():
        found = choose(facts.metrics, rules.patterns)
        if isinstance(found, str):
            made[key] = _frozen(one, found, facts, rules)
        elif isinstance(found, Unclear):
            unclear[key] = found
        elif facts.metrics and now_s > one.watch.first_s + _PATIENCE_S:
            unclear[key] = Unclear("the run has metrics, and none that the site's rules.metrics mean")
    return Choices(made, unclear)


def all_cautions(one: Seen, reading: RunReading, rules: Rules) -> tuple[Caution, ...]:
    """Return all that speaks against judging a job by its metric, as it was read."""
    terms = one.standing.terms
    if not terms.metric:
        return ()
    found = cautions(terms.metric, reading.facts.metrics, curve(reading.points))
    mixed = mixed_caution(reading.points)
    if reading.untold:
        mixed = untold_caution(reading.untold, chosen=bool(terms.dataset))
    more = (_direction(one, reading.facts, rules), mixed, stepless_caution(reading.points))
    return (*found, *(each for each in more if each is not None))


def _direction(one: Seen, facts: RunFacts, rules: Rules) -> Caution | None:
    if one.wishes.mode is not None:
        return None
    terms = one.standing.terms
    named = terms.metric == rules.metric or one.wishes.metric is not None or not rules.metrics
    stated = named and rules.says_mode(terms.mode, terms.metric)
    told, sweeping = told_mode(terms.metric, rules.modes, facts.params), is_sweeping(terms.metric, rules.modes)
    return direction_caution(terms.metric, terms.mode, told, stated=stated, sweeping=sweeping)


def _frozen(one: Seen, metric: str, facts: RunFacts, rules: Rules) -> Seen:
    """Return the job with the choice in its own terms, so that nothing but its owner changes it any more."""
    told = told_mode(metric, rules.modes, facts.params)
    if told is None and metric == rules.metric:
        told = rules.mode
    terms = replace(one.watch.terms, metric=metric, mode=told or guessed_mode(metric) or Mode.MAX)
    stands = standing(terms, one.wishes, rules, partition=one.watch.partition)
    return replace(one, watch=replace(one.watch, terms=terms), standing=stands)
