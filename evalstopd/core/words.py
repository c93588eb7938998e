"""The words for an intent: the same in events, run tags, messages and listings."""

from collections.abc import Mapping

from evalstopd.core.again import Return
from evalstopd.core.caps import Held
from evalstopd.core.intent import CANCELLING, Intent
from evalstopd.core.model import Ending, Rung, StopAction
from evalstopd.core.registry import is_logged
from evalstopd.core.watch import EarlyWarning, Pin, PinState, Watch
from evalstopd.core.wishes import KEEP, UNDO

TAG_PREFIX = "evalstop."
PINNED, LOGGED = "pinned files", "a logged model, not pinned: the tracking server keeps its files"
"""What kind of checkpoint it is that was kept."""
QUARANTINED, REFUSED = UNREAD = ("quarantine-run", "run-refused")
"""Under which codes is said why a run is not read: it is past the caps, or the tracker refuses it."""


def sentence(intent: Intent, *, done: bool = False) -> str:
    """Return what was decided, or done, and why, in one sentence."""
    verb = "was stopped" if done else "is to be stopped" if intent.rung >= Rung.ENFORCE else "would be stopped"
    return f"job {intent.key.job_id} {verb} at step {intent.evidence.trigger_step}: {intent.evidence.reason}"


def cap_code(intent: Intent, held: Held) -> str:
    """Return the code under which is said that caps hold a stop, and which: once a stop and cap."""
    return f"cap {intent.created_s:.0f} {held.by}"


def back_code(intent: Intent, back: Return) -> str:
    """Return the code under which is said that a stop waits for what comes after an eval of an earlier step."""
    return f"back {intent.created_s:.0f} {back.step}"


def is_wait_code(code: str, intent: Intent) -> bool:
    """Tell whether under this code is said why this stop waits: for caps, or for an eval that tells more."""
    return code.startswith((f"cap {intent.created_s:.0f} ", f"back {intent.created_s:.0f} "))


def when(intent: Intent, since: str = "the decision") -> str:
    """Return when it will be done; `since` says what the notice runs from."""
    if intent.rung < Rung.ENFORCE:
        against = intent.evidence.contradicted
        return f"nothing will be done, for {against}" if against else "nothing will be done"
    notice_s = max(0.0, intent.not_before_s - intent.created_s)
    return f"not before {notice_s:.0f} seconds from {since}" if notice_s else "at once"


def how(action: StopAction) -> str:
    """Return how a job is stopped."""
    match action:
        case StopAction.CANCEL:
            return "the job will be cancelled"
        case StopAction.REQUEUE_HOLD:
            return "the job will be requeued and held, which can be undone"
        case StopAction.HOLD_OR_CANCEL:
            return "the job will be requeued and held, or cancelled where Slurm may not requeue it"


def ended(intent: Intent, ending: Ending) -> str:
    """Return how a stopped job ended, and on what where that was the owner's own signal."""
    signal = intent.signal if intent.signalled and not intent.cancel_tries else None
    return f"the job ended as {ending.state}" + (f" after {signal.name}, as its owner asked" if signal else "")


NEXT_LIFE = "the job had been requeued meanwhile: its next life was ended"


def kept(intent: Intent) -> str:
    """Return which checkpoint was kept, and by whom."""
    if not intent.kept_path:
        return "no checkpoint was published"
    if is_logged(intent.kept_path):
        return f"best checkpoint, step {intent.evidence.kept_step}: {intent.kept_path}, {LOGGED}"
    return f"best checkpoint, step {intent.evidence.kept_step}, kept at {intent.kept_path}"


def not_after_all(intent: Intent, why: str) -> str:
    """Return that a stop which was announced is given up."""
    return (
        f"job {intent.key.job_id} is not stopped after all, and goes on: {why}; "
        f"what was said of its stop at step {intent.evidence.trigger_step} no longer holds, "
        "another one would be decided on later evals, and told"
    )


OPERATOR = "sacctmgr modify user where name=ACCOUNT set adminlevel=Operator"
"""How an admin gives the daemon's account the one right that it needs."""


def no_right(intent: Intent, refusal: str) -> str:
    """Return what an admin reads where Slurm refuses to end a job."""
    return (
        f"Slurm refuses to end job {intent.key.job_id}, and so any job of others: {refusal}; the account that "
        f"evalstopd runs as needs Slurm's Operator level ({OPERATOR}); "
        "until then stops wait, and are asked for again now and then"
    )


def asked_in_vain(intent: Intent) -> str:
    """Return why a job still runs whose end was asked for; empty where nothing is known to be wrong."""
    if intent.state not in CANCELLING:
        return ""
    if intent.refused:
        return "Slurm refuses to end it: the daemon's account lacks the right (evalstopd check)"
    times = "once" if intent.unsure == 1 else f"{intent.unsure} times"
    return f"Slurm was asked {times} to end it, and gave no clear answer: it is asked again" if intent.unsure else ""


def found_as(pin: Pin) -> str:
    """Return what became of a wanted checkpoint: where it is and of which kind, or why it is not."""
    if pin.state is PinState.LOGGED:
        return f"{pin.path}, {LOGGED}; by its listing {pin.files} files, {pin.size} bytes"
    return f"{pin.state.value} {pin.path or pin.why}"


def run_tags(intent: Intent) -> Mapping[str, str]:
    """Return the tags that tell a run's readers about the intent."""
    tags = {
        "state": intent.state.value,
        "reason": intent.evidence.reason,
        "rule": intent.evidence.rule,
        "metric": intent.evidence.metric,
        "dataset": intent.evidence.dataset,
        "trigger_step": str(intent.evidence.trigger_step),
        "best_step": str(intent.evidence.best_step),
        "best_score": f"{intent.evidence.best_score:.6g}",
        "kept_step": str(intent.evidence.kept_step) if intent.kept_path else "",
        "checkpoint": intent.kept_path,
        "checkpoint_kind": kind(intent.kept_path),
        "intent": intent.id,
        "model": intent.model if intent.model.startswith("models:/") else "",
    }
    return {f"{TAG_PREFIX}{name}": value for name, value in tags.items() if value}


def kind(kept_path: str) -> str:
    """Return what kind of checkpoint is kept there; empty where none is."""
    return (LOGGED if is_logged(kept_path) else PINNED) if kept_path else ""


def undo_line(intent: Intent) -> str:
    """Return how the owner takes a stop back."""
    return f"to go on: evalstopd undo {intent.key.job_id}"


def resume_comment(job_id: str) -> str:
    """Return the comment of a job that takes up the work of a stopped one."""
    return f"evalstop={KEEP} {UNDO}={job_id}"


def veto_line(of: Intent | Watch) -> str:
    """Return how the owner says no."""
    return f"to keep it running: evalstopd keep {of.key.job_id}, or put evalstop=keep into the job's comment"


def nearing(watch: Watch) -> str:
    """Return what an owner reads in an early warning; empty for a watch without one."""
    early = watch.early
    if early is None:
        return ""
    return (
        f"job {watch.key.job_id} is one step from a stop at step {early.step}: declining {early.count} of {early.of} "
        f"by {early.rule}, from the best {watch.best_score or 0.0:.6g} at step {early.best_step} "
        f"to {watch.last_score or 0.0:.6g}; if its evals go on like this, {_then(early)}; {veto_line(watch)}"
    )


def early_state(early: EarlyWarning) -> str:
    """Return whether the owner has got an early warning."""
    at = f"at step {early.step}, declining {early.count} of {early.of}"
    if early.told_s is not None:
        return f"the owner was told {at}"
    if early.failed:
        return f"the owner was not told {at}: {early.failed}"
    return f"whether the owner was told {at} is not known"


def unsure(intent: Intent) -> str:
    """Return that it is not known whether a message was sent: it is under way, or the daemon ended meanwhile."""
    return f"whether the owner has got the message ({intent.telling}) is not known"


def told_before(intent: Intent) -> str:
    """Return that an early warning was the owner's notice, and when the stop is done."""
    ago_s = max(0.0, intent.created_s - (intent.told_s or intent.created_s))
    return f"the owner was told {ago_s:.0f} s before the decision, by the early warning; {when(intent)}"


def _then(early: EarlyWarning) -> str:
    if early.rung < Rung.ENFORCE:
        return "it would be stopped on the enforce rung; nothing will be done"
    soon = f"not before {early.notice_s:.0f} seconds from now" if early.notice_s else "at once"
    return f"it is to be stopped, {soon}; {how(StopAction(early.action))}"
