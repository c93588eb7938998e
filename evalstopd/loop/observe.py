"""Observe: one queue, what the comments say, the runs that are due, and what has ended."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from evalstopd.core.binding import Bound, Claim, Refused, bind
from evalstopd.core.caps import BreakerTurn, held_by, holding
from evalstopd.core.guards import Caution
from evalstopd.core.identity import Sighting, recognise
from evalstopd.core.intent import UNKNOWN_END, Intent, State
from evalstopd.core.metric_choice import Unclear
from evalstopd.core.model import Ending, JobKey, Phase, Rung, Snapshot
from evalstopd.core.rules import Rules, ServerClass, Standing
from evalstopd.core.watch import Terms, Watch, in_effect
from evalstopd.errors import EvalstopError, Rejected, Unavailable
from evalstopd.loop.choice import all_cautions
from evalstopd.loop.claims import look_up, sought, standing_claims
from evalstopd.loop.reading import Read, due_jobs, pressing_jobs, read_runs
from evalstopd.loop.report import Tally
from evalstopd.loop.watched import Seen, look_at
from evalstopd.ports import Book, EndingQuery, Ports, RunQuery, RunReading

_PATIENCE_S = 3600.0


@dataclass(frozen=True, slots=True)
class Observation:
    """One whole picture: the queue, the watched jobs, what was read, what is refused, what has ended.

    `last` are the last readings of jobs that were seen to have ended. `cautions` are what speaks against judging a
    job by what was read of it. `rules` are the site's, for the tracker as it was found. `killed` tells whether the kill
    switch was set. `breakers` are those that hold. `unclear` says of jobs without a metric why none was chosen.
    `fresh` are the jobs whose run's facts are of this pass, `doubtful` those whose run is no longer as it was read.
    `contradicted` says of jobs that their owner asked to have stopped what in the owner's log speaks against it.
    `queries` is what was asked of each job's run.
    """

    snapshot: Snapshot
    sightings: Mapping[str, Sighting]
    seen: Mapping[JobKey, Seen]
    decisions: Mapping[JobKey, Bound | Refused]
    readings: Mapping[JobKey, RunReading]
    endings: Mapping[EndingQuery, Ending]
    unread: Mapping[JobKey, EvalstopError]
    last: Mapping[JobKey, RunReading]
    cautions: Mapping[JobKey, tuple[Caution, ...]]
    rules: Rules
    killed: bool = False
    breakers: Mapping[str, BreakerTurn] = field(default_factory=dict)
    unclear: Mapping[JobKey, Unclear] = field(default_factory=dict)
    fresh: AbstractSet[JobKey] = frozenset()
    doubtful: AbstractSet[JobKey] = frozenset()
    contradicted: Mapping[JobKey, str] = field(default_factory=dict)
    queries: Mapping[JobKey, RunQuery] = field(default_factory=dict)

    def at_most(self, watch: Watch, standing: Standing) -> Standing:
        """Return a job's standing, no higher than observe where its metric misleads or a breaker holds.

        And no higher than warn while the owner's log speaks against the stop.
        """
        refused = next((each for each in self.cautions.get(watch.key, ()) if each.refuse), None)
        breaker = held_by(watch.account, watch.key.uid, self.breakers)
        why = refused.text if refused is not None else f"breaker: {breaker.text}" if breaker is not None else ""
        if why:
            return standing.at_most(Rung.OBSERVE, why)
        against = self.contradicted.get(watch.key, "")
        return standing.at_most(Rung.WARN, against) if against else standing


def observe(ports: Ports, snapshot: Snapshot, book: Book, rules: Rules, tally: Tally) -> Observation:
    """Read everything this pass decides on. Runs that cannot be read cost their own job only."""
    sightings = recognise(snapshot.jobs, book.watches)
    rules, known = _as_found(ports, rules, tally)
    runs = _runs(ports, snapshot, book, sightings, rules) if known else _no_runs(sightings, snapshot, rules)
    if runs.found:
        tally.asked(answered=True)
    readings, unread = _sort_answers(runs.read.queries, runs.read.answers, runs.decisions, tally)
    seen = runs.read.seen
    unread |= _unlooked(runs.unknown, seen, tally)
    for what, number in (("jobs", snapshot.jobs), ("watched", seen), ("due", runs.read.queries)):
        tally.add(what, len(number))
    tally.add("read", len(runs.read.queries) - len(unread))
    endings = _endings(ports, snapshot, sightings, book, tally)
    whole = Observation(
        snapshot,
        {each.job.job_id: each for each in sightings},
        seen,
        runs.decisions,
        readings,
        endings,
        unread,
        _last_readings(ports, book, endings, tally),
        {key: all_cautions(seen[key], reading, rules) for key, reading in readings.items()},
        rules,
        ports.kill_switch.engaged(),
        holding(book.breakers, snapshot.now_s),
        runs.read.unclear,
        runs.fresh,
        contradicted={each.key: each.evidence.contradicted for each in book.intents if not each.closed},
        queries=runs.read.queries,
    )
    return replace(whole, seen={key: _lowered(one, whole) for key, one in seen.items()})


def _in_question(made: Mapping[JobKey, Claim], standing: Mapping[JobKey, Claim]) -> dict[JobKey, Claim]:
    """Return the claims to runs that are read in this pass; of thousands of others nothing is decided in it."""
    read = {claim.run_id for claim in made.values()}
    return {key: claim for key, claim in standing.items() if claim.run_id in read} | dict(made)


def _lowered(one: Seen, seen: Observation) -> Seen:
    standing = seen.at_most(one.watch, one.standing)
    return one if standing is one.standing else replace(one, standing=standing)


@dataclass(frozen=True, slots=True)
class _Runs:
    """What was read of the jobs' runs, whose they are, and for which jobs no run could be looked for.

    `fresh` are the jobs whose run's facts are of this pass, not remembered. `found` tells whether the tracker answered
    where runs were looked for.
    """

    read: Read
    decisions: Mapping[JobKey, Bound | Refused]
    unknown: Mapping[JobKey, EvalstopError]
    fresh: AbstractSet[JobKey] = frozenset()
    found: bool = False


def _runs(ports: Ports, snapshot: Snapshot, book: Book, sightings: Sequence[Sighting], rules: Rules) -> _Runs:
    """Look for the runs of the jobs that are due or seek one, read them, and decide whose they are."""
    now_s = snapshot.now_s
    here = list(look_at(sightings, rules, now_s))
    seen = {one.key: one for one in here if one.speaks}
    pressing = pressing_jobs(seen, book, rules, now_s)
    due, hopes = due_jobs(seen, pressing, rules, now_s), sought(here, rules, now_s)
    looked = look_up(ports.finder, snapshot.cluster, [*due.values(), *hopes], rules)
    seen |= {one.key: one for one in hopes if one.key in looked.made or one.key in looked.refused}
    claims = _in_question(looked.made, standing_claims(one for key, one in seen.items() if key not in due))
    fresh = pressing | (looked.made.keys() - due.keys())
    read = read_runs(ports, seen, looked.made, fresh, rules, now_s)
    facts = {query.run_id: each.facts for query, each in read.answers.items() if isinstance(each, RunReading)}
    holders = ports.store.holders([claim.run_id for claim in claims.values()]) if claims else {}
    living = {each.key for each in sightings if each.job.phase is not Phase.ENDED}
    decisions = bind(claims.values(), facts, holders, rules.trust, living) | dict(looked.refused)
    found = not rules.trust.comment_only and len(looked.unknown) < len(due) + len(hopes)
    return _Runs(read, decisions, looked.unknown, fresh, found)


def _no_runs(sightings: Sequence[Sighting], snapshot: Snapshot, rules: Rules) -> _Runs:
    """Return the jobs alone: no run is read while it is not known who can write to them."""
    seen = {one.key: one for one in look_at(sightings, rules, snapshot.now_s) if one.speaks}
    return _Runs(Read(seen, {}, {}, {}), {}, {})


def _as_found(ports: Ports, rules: Rules, tally: Tally) -> tuple[Rules, bool]:
    """Return the rules for the server as it is, and whether that is known: if not, no run is read in this pass."""
    if rules.server is ServerClass.OPEN:
        return rules, True
    try:
        if not ports.gate.admits_strangers():
            return rules, True
    except Unavailable as error:
        tally.trouble(f"MLflow: {error}")
        tally.asked(answered=False)
        return rules, False
    tally.trouble("MLflow is declared authenticated and answers without a login: it is taken for open")
    return rules.as_open(), True


def _unlooked(
    unknown: Mapping[JobKey, EvalstopError], seen: Mapping[JobKey, Seen], tally: Tally
) -> dict[JobKey, EvalstopError]:
    for error in unknown.values():
        tally.trouble(f"MLflow, runs of a job: {error}")
        tally.asked(answered=False)
    return {key: error for key, error in unknown.items() if key in seen}


def _sort_answers(
    queries: Mapping[JobKey, RunQuery],
    answers: Mapping[RunQuery, RunReading | EvalstopError],
    decisions: Mapping[JobKey, Bound | Refused],
    tally: Tally,
) -> tuple[dict[JobKey, RunReading], dict[JobKey, EvalstopError]]:
    readings: dict[JobKey, RunReading] = {}
    unread: dict[JobKey, EvalstopError] = {}
    for key, query in queries.items():
        answer = answers.get(query, Unavailable("the tracker left a run out of its answer"))
        tally.asked(answered=isinstance(answer, RunReading | Rejected))
        if isinstance(answer, EvalstopError):
            unread[key] = answer
            if not isinstance(answer, Rejected):
                tally.trouble(f"MLflow: {answer}")
        elif isinstance(decisions.get(key), Bound):
            readings[key] = answer
    return readings, unread


def _last_readings(
    ports: Ports, book: Book, endings: Mapping[EndingQuery, Ending], tally: Tally
) -> dict[JobKey, RunReading]:
    """Read the runs of jobs that have just ended once more: what they logged last is theirs, too."""
    over = [watch for watch in book.watches if EndingQuery(watch.key.job_id, watch.life) in endings]
    queries = {watch.key: _last_query(watch.run_id, in_effect(watch)) for watch in over if watch.run_id}
    if not queries:
        return {}
    answers = ports.metrics.read(list(dict.fromkeys(queries.values())))
    for answer in answers.values():
        tally.asked(answered=isinstance(answer, RunReading | Rejected))
    for error in {str(answer) for answer in answers.values() if isinstance(answer, Unavailable)}:
        tally.trouble(f"MLflow, last reading: {error}")
    found = {key: answers.get(query) for key, query in queries.items()}
    return {key: answer for key, answer in found.items() if isinstance(answer, RunReading)}


def _ending_queries(intent: Intent) -> Iterator[EndingQuery]:
    """Yield the lives whose ends an open intent waits for: that which was to be stopped, and one that was hit instead.

    Of a job that is held only that in which it is.
    """
    if intent.state is not State.HELD:
        yield EndingQuery(intent.key.job_id, intent.life)
    if intent.held_life is not None:
        yield EndingQuery(intent.key.job_id, intent.held_life)


def _last_query(run_id: str, terms: Terms) -> RunQuery:
    return RunQuery(run_id, terms.metric, items=terms.items, dataset=terms.dataset, apart=bool(terms.dataset))


def _endings(
    ports: Ports, snapshot: Snapshot, sightings: Sequence[Sighting], book: Book, tally: Tally
) -> Mapping[EndingQuery, Ending]:
    """Ask accounting, in one call, about the jobs and the intents' lives that the queue no longer shows alive."""
    here = [each for each in sightings if each.job.phase is not Phase.ENDED]
    keys = {each.key for each in here}
    lives = {EndingQuery(each.key.job_id, each.job.life) for each in here}
    gone = [EndingQuery(watch.key.job_id, watch.life) for watch in book.watches if watch.key not in keys]
    stopped = [query for each in book.intents if not each.closed for query in _ending_queries(each)]
    asked = list(dict.fromkeys([*gone, *(query for query in stopped if query not in lives)]))
    if not asked:
        return {}
    try:
        found = dict(ports.cluster.endings(asked))
    except (Unavailable, Rejected) as error:
        tally.trouble(f"accounting: {error}")
        found = {}
    since = {EndingQuery(watch.key.job_id, watch.life): watch.vanished_s for watch in book.watches}
    for query in asked:
        missing_s = since.get(query)
        if query not in found and missing_s is not None and snapshot.now_s - missing_s > _PATIENCE_S:
            found[query] = Ending(UNKNOWN_END, None, source="none")
    return found
