"""Before an act in a pass that took long: does each run still show what this pass read, or has it new evals?

A pass reads first and acts last. Where more than half a tick lies in between, a new best may have been logged
meanwhile: the runs of the jobs that are about to be stopped are read once more, and what has changed waits for the
next pass.
"""

from collections.abc import Sequence
from dataclasses import replace

from evalstopd.core.intent import Intent
from evalstopd.loop.doubt import proof_of
from evalstopd.loop.observe import Observation
from evalstopd.loop.scene import Scene
from evalstopd.ports import RunQuery, RunReading

_LEAST_S = 10.0


def still_as_read(scene: Scene, intents: Sequence[Intent]) -> list[Intent]:
    """Return the intents that may be acted on by what this pass read of their runs."""
    began_s = scene.ledger.now_s
    if not _is_long(scene, scene.seen.snapshot.now_s):
        return list(intents)
    queries = {each.key: replace(query, fresh=True) for each in intents if (query := scene.seen.queries.get(each.key))}
    answers = scene.ports.metrics.read(list(dict.fromkeys(queries.values()))) if queries else {}
    in_time = not _is_long(scene, began_s)
    same = [each for each in intents if in_time and _same(scene.seen, each, answers.get(queries.get(each.key, _NONE)))]
    for each in intents:
        if each not in same:
            scene.tally.trouble(f"job {each.key.job_id}: since this pass read its run that has changed, or may have")
    return same


def _is_long(scene: Scene, since_s: float) -> bool:
    return scene.ledger.now_s - since_s > max(scene.rules.tick_s / 2.0, _LEAST_S)


def _same(seen: Observation, intent: Intent, now: object) -> bool:
    """Tell whether a job's run has the very points that this pass read, and is still as it was."""
    then = seen.readings.get(intent.key)
    if then is None or not isinstance(now, RunReading):
        return False
    return now.points == then.points and now.dataset == then.dataset and proof_of(now.facts) == proof_of(then.facts)


_NONE = RunQuery("", "")
