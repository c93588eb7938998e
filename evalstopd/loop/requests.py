"""Requests to Slurm to end jobs: each is recorded before it is made, and so is what is known of its fate.

Three fates: Slurm took it, whatever that proves; nobody knows whether Slurm heard it; Slurm refused it, as this account
has no right to. A refused one was none: what it changed of the intent is taken back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalstopd.core.caps import SITE
from evalstopd.core.intent import Intent, State
from evalstopd.core.model import Job, Phase, Rung, StopAction
from evalstopd.core.watch import Remark
from evalstopd.core.words import no_right
from evalstopd.errors import NotRequeueable, Rejected, Unavailable
from evalstopd.loop.giving_up import give_up
from evalstopd.loop.ledger import Entry
from evalstopd.loop.scene import Scene
from evalstopd.loop.telling import tell_admin
from evalstopd.loop.undo import at_most
from evalstopd.ports import Changes

_REFUSED = "refused by Slurm"
_DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Request:
    """A request that was made; `refusal` is what Slurm said against it, which another of the same call may not share.

    The look that follows tells: a job that still runs was refused.
    """

    intent: Intent
    refusal: str = ""

    def refused(self, job: Job | None) -> bool:
        """Tell whether Slurm refused this one, with the job as it was looked at afterwards."""
        same = job is not None and (job.uid, job.life) == (self.intent.key.uid, self.intent.life)
        return bool(self.refusal) and same and job is not None and job.phase is Phase.RUNNING


@dataclass(frozen=True, slots=True)
class Requests:
    """Asks for the end of jobs, each in its own way."""

    scene: Scene

    def announced(self, intent: Intent) -> Entry:
        """Return the event that is committed before a request."""
        tries, now_s = intent.cancel_tries + 1, self.scene.ledger.now_s
        began_s = now_s if intent.acted_s is None else intent.acted_s
        what = "end the job" if intent.action is StopAction.CANCEL else "requeue the job and hold it"
        asked = replace(intent, cancel_tries=tries, acted_s=began_s, asked_s=now_s)
        return Entry(asked, "cancelling", f"request {tries} to {what}")

    def ask(self, intents: Sequence[Intent]) -> list[Request]:
        """Ask for the end of each job, all cancels together; return those of which a look will tell."""
        cancels = [each for each in intents if each.action is StopAction.CANCEL]
        holds = [each for each in intents if each.action is not StopAction.CANCEL]
        asked = [*(self._cancel(cancels) if cancels else ()), *(self._requeue_hold(each) for each in holds)]
        return [each for each in asked if not each.intent.closed]

    def _cancel(self, intents: Sequence[Intent]) -> list[Request]:
        try:
            self.scene.ports.cluster.cancel([intent.key.job_id for intent in intents])
        except Unavailable as error:
            return [self._unsure(intent, "cancel", error) for intent in intents]
        except Rejected as error:
            self.scene.tally.trouble(f"cancel: {error}")
            return [Request(intent, str(error)) for intent in intents]
        return [Request(intent) for intent in intents]

    def _requeue_hold(self, intent: Intent) -> Request:
        try:
            self.scene.ports.cluster.requeue_hold(intent.key.job_id)
        except NotRequeueable as error:
            return Request(self._not_requeued(intent, str(error)))
        except Unavailable as error:
            return self._unsure(intent, "requeuehold", error)
        except Rejected as error:
            self.scene.tally.trouble(f"requeuehold: {error}")
            return Request(intent, str(error))
        return Request(intent)

    def _unsure(self, intent: Intent, what: str, error: Unavailable) -> Request:
        self.scene.tally.trouble(f"{what}: {error}")
        return Request(self._note_unsure(intent, str(error)))

    def _note_unsure(self, intent: Intent, why: str) -> Intent:
        return self.scene.ledger.note(intent, "cancel-unsure", why, unsure=intent.unsure + 1)

    def book_refusals(self, requests: Sequence[Request], looked: Mapping[str, Job]) -> None:
        """Note which requests were refused, and say once what this account lacks: nothing else ends these jobs."""
        refused = [each for each in requests if each.refused(looked.get(each.intent.key.job_id))]
        for each in refused:
            fields = {"refused": each.intent.refused + 1, **_as_if_not_asked(each.intent)}
            self.scene.ledger.note(each.intent, "cancel-refused", each.refusal, **fields)
        for each in requests:
            if each.refusal and each.intent.key.job_id not in looked:
                self._note_unsure(each.intent, each.refusal)
        if refused and not self.scene.tally.counts[_REFUSED]:
            self._tell_admin(refused[0])
        self.scene.tally.add(_REFUSED, len(refused))

    def _tell_admin(self, request: Request) -> None:
        """Tell the admin, once a day at most however many stops wait for it."""
        now_s = self.scene.ledger.now_s
        remark = Remark(SITE, f"no-right {now_s // _DAY_S:.0f}", no_right(request.intent, request.refusal), now_s)
        if (remark.subject, remark.code) in self.scene.said:
            return
        self.scene.ports.store.record(Changes(remarks=(remark,)))
        ports = self.scene.ports
        tell_admin(ports.store, ports.notifier, [remark], now_s, "Slurm lets evalstopd stop no job")

    def _not_requeued(self, intent: Intent, why: str) -> Intent:
        """Slurm refused, so nothing was done: a cancel follows if the site says so, else the job is only warned of."""
        before = _as_if_not_asked(intent)
        if intent.action is StopAction.HOLD_OR_CANCEL:
            return self.scene.ledger.note(intent, "to-cancel", why, action=StopAction.CANCEL, asked_s=None, **before)
        watch = self.scene.watches.get(intent.key)
        also = Changes(watches=(at_most(watch, Rung.WARN),) if watch is not None else ())
        return give_up(self.scene, intent, State.ABANDONED, why, also=also, **before)


def _as_if_not_asked(intent: Intent) -> dict[str, Any]:
    """Return what an intent has where its last request was none; the moment of an act stays if there was any other."""
    tries = intent.cancel_tries - 1
    acted_s = intent.acted_s if tries > 0 or intent.signalled else None
    return {"cancel_tries": tries, "acted_s": acted_s}
