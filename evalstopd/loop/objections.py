"""The last hearing before a stop that only its owner's word allows: does the owner's own log speak against it?"""

from collections.abc import Mapping
from dataclasses import dataclass

from evalstopd.core.corroborate import NoLog, OwnerLog, as_decided, contradicted
from evalstopd.core.intent import Intent
from evalstopd.core.model import JobKey
from evalstopd.core.plan import Case, claimed
from evalstopd.loop.shares import Shares
from evalstopd.loop.witness import Witness

# For so long a stop that is due waits for a keeper that does not answer; a log that cannot be read holds no stop.
_PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class Heard:
    """What an owner's log says against a stop; `wait` tells that the keeper is to be asked once more."""

    against: str = ""
    wait: bool = False


@dataclass(frozen=True, slots=True)
class Objections:
    """Asks for the logs behind stops that are about to be done; `cases` are the jobs as this pass judged them."""

    witness: Witness
    shares: Shares
    cases: Mapping[JobKey, Case]

    def to(self, intent: Intent) -> Heard:
        """Return what the owner's log says against a stop that nothing was done of yet.

        One that this pass itself decided on, by the same log, is not asked about twice.
        """
        case = self.cases.get(intent.key)
        if case is None or not case.standing.by_word or intent.acted_s is not None:
            return Heard()
        log = self._log(case) if case.log is None or _is_silent(case.log) else case.log
        if _is_silent(log) and self.witness.ports.clock.now_s() - intent.not_before_s <= _PATIENCE_S:
            return Heard(wait=True)
        return Heard(contradicted(log, as_decided(intent.evidence, claimed(case, case.evals))))

    def _log(self, case: Case) -> OwnerLog | NoLog:
        uid = case.watch.key.uid
        if uid in self.shares.silent or not self.shares.left(uid, held=True):
            return NoLog("no time was left to read the owner's log", later=True, silent=True)
        with self.shares.of(uid):
            log = self.witness.log_of(case)
        if _is_silent(log):
            self.shares.silent.add(uid)
        return log


def _is_silent(log: OwnerLog | NoLog) -> bool:
    return isinstance(log, NoLog) and log.silent
