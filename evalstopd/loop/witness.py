"""The owner's own training log: asked for where a stop on an open server hangs on it."""

import math
from dataclasses import dataclass

from evalstopd.core.corroborate import NoLog, OwnerLog
from evalstopd.core.plan import Case
from evalstopd.errors import CheckpointFailed, CheckpointIncomplete, CheckpointMissing, Rejected, Unavailable
from evalstopd.loop.pins import MOST_STEP, odd_step, output_folder, pin_name
from evalstopd.loop.report import Tally
from evalstopd.ports import PinPlace, Ports

# A trainer that writes a log has done so by its third eval.
_FEW = 3


@dataclass(frozen=True, slots=True)
class Witness:
    """Asks the keeper for owners' logs; not after `until_s`, so that one owner's slow files cost nobody the pass."""

    ports: Ports
    tally: Tally
    until_s: float

    def log_of(self, case: Case) -> OwnerLog | NoLog:
        """Return what the job's owner has logged in its present life, or why that is not known.

        No log can bear out a stop at a step that no log can have; it can speak against one all the same.
        """
        place = _place(case)
        if place is None:
            return NoLog("nothing that counts names an output folder, or Slurm no start")
        if case.standing.ceiling and (odd := odd_step(case.evals[-1].step)):
            return NoLog(f"no log of the owner's is asked for: {odd}")
        if self.ports.clock.now_s() > self.until_s:
            return NoLog("no time was left to read the owner's log", later=True, silent=True)
        return self._read(place, may_come=_evals_of_life(case) < _FEW)

    def _read(self, place: PinPlace, *, may_come: bool) -> OwnerLog | NoLog:
        try:
            return self.ports.keeper.log(place)
        except (CheckpointMissing, CheckpointIncomplete) as error:
            return NoLog(str(error), later=may_come or isinstance(error, CheckpointIncomplete))
        except (Rejected, CheckpointFailed) as error:
            return NoLog(f"the owner's log cannot be read: {error}")
        except Unavailable as error:
            self.tally.trouble(f"keeper: {error}")
            return NoLog(str(error), later=True, silent=True)


def _place(case: Case) -> PinPlace | None:
    """Return where the log of the job's present life lies; an earlier life's was written before it began."""
    watch, job = case.watch, case.sighting.job
    if not watch.output_dir or watch.started_s is None:
        return None
    folder, step = output_folder(job.work_dir, watch.output_dir), min(max(case.evals[-1].step, 0), MOST_STEP)
    since_s, metric = math.ceil(watch.started_s), case.standing.terms.metric
    return PinPlace(watch.key.uid, folder, pin_name(watch.key), step, since_s, metric)


def _evals_of_life(case: Case) -> int:
    return sum(each.life == case.watch.life.restarts for each in case.evals)
