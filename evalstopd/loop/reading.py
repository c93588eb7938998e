"""Which runs are read in a pass, and their reading: of a job without a metric the facts first, to choose by."""

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from evalstopd.core.binding import Claim
from evalstopd.core.due import is_waiting
from evalstopd.core.metric_choice import Unclear
from evalstopd.core.missing import is_sought
from evalstopd.core.model import JobKey, Rung
from evalstopd.core.rules import Rules
from evalstopd.core.watch import PinState
from evalstopd.errors import EvalstopError
from evalstopd.loop.choice import choices
from evalstopd.loop.watched import Seen
from evalstopd.ports import Book, Ports, RunQuery, RunReading

# Readings and their new points are held together until they are recorded: 2,500 runs of 50 points take 100 MB.
MOST_A_PASS = 2_500


@dataclass(frozen=True, slots=True)
class Read:
    """What was asked for each job and what came; `seen` has the metrics chosen, `unclear` why others were not."""

    seen: dict[JobKey, Seen]
    queries: Mapping[JobKey, RunQuery]
    answers: Mapping[RunQuery, RunReading | EvalstopError]
    unclear: Mapping[JobKey, Unclear]


def pressing_jobs(seen: Mapping[JobKey, Seen], book: Book, rules: Rules, now_s: float) -> AbstractSet[JobKey]:
    """Return the jobs that must be known as they are now: new to us, or with something open or in dispute.

    A checkpoint that has not come is open in the passes that look for it.
    """
    rivals = Counter(one.run_id for one in seen.values())
    busy = {intent.key for intent in book.intents if not intent.closed}
    missing = (pin for pin in book.pins if pin.state in (PinState.WANTED, PinState.OUTDATED))
    busy |= {pin.key for pin in missing if is_sought(pin, now_s, rules.tick_s)}

    def presses(one: Seen) -> bool:
        changed = (one.run_id, one.watch.life.restarts) != (one.watch.run_id, one.watch.read_life)
        return changed or one.key in busy or rivals[one.run_id] > 1

    return {key for key, one in seen.items() if presses(one)}


def due_jobs(
    seen: Mapping[JobKey, Seen], pressing: AbstractSet[JobKey], rules: Rules, now_s: float
) -> dict[JobKey, Seen]:
    """Return the jobs to read: those whose time has come, and those that press."""

    def isdue_jobs(one: Seen) -> bool:
        terms = one.standing.terms
        if one.run_id is None or terms.rung is Rung.OFF or not rules.names_metrics(terms.metric):
            return False
        return one.key in pressing or not is_waiting(one.watch.reads, now_s)

    found = [one for one in seen.values() if isdue_jobs(one)]
    return {one.key: one for one in _in_turn(found, pressing)[:MOST_A_PASS]}


def _in_turn(jobs: Iterable[Seen], pressing: AbstractSet[JobKey]) -> list[Seen]:
    """Return those with something open, then those that wait longest: whoever is not reached comes first next time."""

    def place(one: Seen) -> tuple[bool, float]:
        return one.key not in pressing or one.watch.run_id is None, one.watch.reads.due_s

    return sorted(jobs, key=place)


def read_runs(
    ports: Ports,
    seen: Mapping[JobKey, Seen],
    claims: Mapping[JobKey, Claim],
    fresh: AbstractSet[JobKey],
    rules: Rules,
    now_s: float,
) -> Read:
    """Read the runs that are claimed, those of `fresh` as they are now."""
    order = _in_turn((seen[key] for key in claims), fresh)
    queries = {one.key: _query(one, claims[one.key], rules, fresh) for one in order}
    answers = _answers(ports, queries)
    undecided = {
        key: (seen[key], answer.facts)
        for key, query in queries.items()
        if not query.metric and isinstance(answer := answers.get(query), RunReading)
    }
    chosen = choices(undecided, rules, now_s)
    more = {key: _query(one, claims[key], rules, frozenset()) for key, one in chosen.made.items()}
    return Read({**seen, **chosen.made}, queries | more, answers | _answers(ports, more), chosen.unclear)


def _answers(ports: Ports, queries: Mapping[JobKey, RunQuery]) -> dict[RunQuery, RunReading | EvalstopError]:
    return dict(ports.metrics.read(list(dict.fromkeys(queries.values())))) if queries else {}


def _query(one: Seen, claim: Claim, rules: Rules, fresh: AbstractSet[JobKey]) -> RunQuery:
    """Return what is read for a job: its own metric of the run it claims, whatever others say of that run."""
    terms, watch = one.standing.terms, one.watch
    same = (watch.run_id, watch.metric_now) == (claim.run_id, terms.metric)
    apart = same and bool(watch.dataset_now)
    return RunQuery(claim.run_id, terms.metric, rules.proxy, terms.items, one.key in fresh, terms.dataset, apart)
