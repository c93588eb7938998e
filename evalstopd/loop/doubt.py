"""Before a new stop is acted on: are the run's facts, which may have been remembered for hours, still so?

Jobs with something open are read as they are now. A stop that was decided a moment ago was not open when its run was
read; where the site gives no notice it would be acted on in the same pass.
"""

from collections.abc import Iterable
from dataclasses import replace

from evalstopd.core.binding import RunFacts
from evalstopd.core.intent import Intent
from evalstopd.loop.observe import Observation
from evalstopd.loop.report import Tally
from evalstopd.ports import Ports, RunQuery, RunReading


def with_doubts(ports: Ports, seen: Observation, decided: Iterable[Intent], tally: Tally) -> Observation:
    """Return the observation with the jobs of new stops whose run is not, or is not known to be, as it was read."""
    remembered = [each.key for each in decided if each.key in seen.readings and each.key not in seen.fresh]
    if not remembered:
        return seen
    queries = {key: RunQuery(seen.readings[key].facts.run_id, "", fresh=True) for key in remembered}
    answers = ports.metrics.read(list(dict.fromkeys(queries.values())))
    doubtful = set()
    for key, query in queries.items():
        answer = answers.get(query)
        if not isinstance(answer, RunReading) or proof_of(answer.facts) != proof_of(seen.readings[key].facts):
            tally.trouble(f"job {key.job_id}: its run has changed, or could not be read again: the next pass decides")
            doubtful.add(key)
    return replace(seen, doubtful=frozenset(doubtful))


def proof_of(facts: RunFacts) -> tuple[object, ...]:
    """Return what a binding and the place of its checkpoints hang on; status and metrics change all the time."""
    tags = {key: value for key, value in facts.tags.items() if not key.startswith("evalstop.") or key in _OURS}
    return facts.run_id, facts.deleted, facts.user, tags, facts.params, facts.started_ms


_OURS = frozenset({"evalstop.output_dir", "evalstop.mac"})
