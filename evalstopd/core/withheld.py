"""Why a rule's stop is not decided on: in plain words, for who asks why the daemon does nothing."""

from collections.abc import Sequence

from evalstopd.core.detectors import Stop, Verdict
from evalstopd.core.model import Eval
from evalstopd.core.watch import Watch


def may_withhold(watch: Watch) -> bool:
    """Tell whether a stop can be withheld, by the watch alone: its newest eval is history, and a decline."""
    return watch.ending is None and watch.declines > 0 and watch.last_life < watch.life.restarts


def withheld(watch: Watch, evals: Sequence[Eval], answers: Sequence[Verdict]) -> str:
    """Return why no stop is decided although the rule says stop at the newest eval; empty where it is not so."""
    if watch.ending is not None or not evals or not isinstance(answers[-1], Stop):
        return ""
    newest, present = evals[-1], watch.life.restarts
    if newest.life >= present:
        return ""
    return (
        f"no stop is decided: the rule says stop at step {newest.step}, but that eval is history, in the run before "
        f"this life of the job (restarts: {present}) first read it; only a later one can stop the job"
    )
