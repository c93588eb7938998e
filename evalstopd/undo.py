"""Taking a stop back: a held job is released, one that was ended gets the command by which its work goes on."""

import posixpath
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from evalstopd.core.credit import credit_of
from evalstopd.core.intent import REQUEUED_ENDS, Intent, State
from evalstopd.core.model import Job, Phase, StopAction
from evalstopd.core.registry import is_logged
from evalstopd.core.wishes import KEEP, RUNG, merge_token, parse_comment
from evalstopd.core.words import resume_comment
from evalstopd.errors import EvalstopError, NotAllowed, Rejected, Unavailable
from evalstopd.job_argument import job_argument
from evalstopd.loop.ledger import Ledger
from evalstopd.loop.telling import UNDONE
from evalstopd.ports import Cluster, Message, Notifier
from evalstopd.report.text import plain, shell_word

_SCRIPT = "SCRIPT is the batch script, with its arguments, that job {job} was submitted with"
_MOST_NAMED = 20
_OPTION = "--resume_from_checkpoint is what trainers of Hugging Face call it: use your script's own option"


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be undone: a job, by its id or the id of an intent, and what the store has of its stop.

    `intent` is None where no store can be read, and `unread` why. `named` are the cluster, owner and first submit that
    an intent's id names.
    """

    job_id: str
    intent: Intent | None = None
    named: tuple[str, int, int] | None = None
    unread: str = ""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who undoes: `operator` asks Slurm whether the user may act on the jobs of others."""

    uid: int
    operator: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Undone:
    """What an undo did. `done` is released, resume or already; `gpu_hours` None where only the daemon knows them.

    `booked` tells whether the credit is in the store by now.
    """

    job: str
    done: str
    lines: tuple[str, ...]
    command: str = ""
    checkpoint: str = ""
    gpu_hours: float | None = None
    booked: bool = False


def parse_target(name: str) -> Target:
    """Read a job id or an intent's id (cluster:job:uid:submit:restarts:step). Raises WrongUsage for any other text."""
    parts = name.split(":")
    if len(parts) == 6 and all(part.isascii() and part.isdigit() for part in parts[2:]):
        return Target(job_argument(parts[1]), named=(parts[0], int(parts[2]), int(parts[3])))
    return Target(job_argument(name))


def undo(
    cluster: Cluster, target: Target, caller: Caller, ledger: Ledger | None, people: Notifier | None = None
) -> Undone:
    """Undo one stop. Slurm itself lets nobody but owner, operator and admin release a job or write its comment.

    `ledger` writes the store, if the caller may; `people` tells the owner what another one booked there. Raises
    Rejected where there is nothing to undo or no right to, Unavailable where the job does not come free.
    """
    job = cluster.look([target.job_id]).get(target.job_id)
    if job is not None and not _is_meant(target, job):
        job = None
    if target.intent is not None and target.intent.state is State.UNDONE:
        return _already(target.intent, job, caller)
    if target.intent is None and job is not None and job.uid != caller.uid:
        raise Rejected(_anothers(job, target.unread))
    if job is not None and job.held and _may_be_ours(target.intent, job):
        return _release(cluster, job, target.intent, caller)
    if target.intent is not None and target.intent.state is State.CONFIRMED:
        return _resume(target.intent, job, caller, ledger, people)
    if target.intent is None and job is not None and job.phase is Phase.ENDED:
        return _resume_by_slurm(job, caller)
    raise Rejected(_nothing(target, job) + tasks_line(cluster, target.job_id))


def tasks_line(cluster: Cluster, array: str) -> str:
    """Return how the held tasks of an array are undone, each by its own id; empty where none can be seen."""
    if "_" in array:
        return ""
    try:
        jobs = cluster.queue().jobs
    except EvalstopError:
        return ""
    mine = [job for job in jobs if job.job_id.startswith(f"{array}_")]
    held = [plain(job.job_id, 40) for job in mine if job.held and _may_be_ours(None, job)]
    more = f", and {len(held) - _MOST_NAMED} more" if len(held) > _MOST_NAMED else ""
    ways = ", ".join(f"evalstopd undo {each}" for each in held[:_MOST_NAMED])
    return f"; tasks of array {array} are held, undo each by its own id: {ways}{more}" if held else ""


def _is_meant(target: Target, job: Job) -> bool:
    """Tell whether the job that has the id now is the one that was stopped."""
    if target.intent is not None:
        key, life = target.intent.key, target.intent.life
        return (job.cluster, job.uid) == (key.cluster, key.uid) and (job.life == life or job.restarts > life.restarts)
    return target.named is None or target.named[:2] == (job.cluster, job.uid)


def _may_be_ours(intent: Intent | None, job: Job) -> bool:
    """Tell whether a held job can be one that evalstopd holds: never in its first life, nor by a stop it gave up.

    Nor by one that asked for no hold. Without a store only its owner is asked, whom Slurm lets lift no admin's hold.
    """
    if intent is None:
        return job.restarts > 0
    asked = intent.cancel_tries > 0 and intent.action is not StopAction.CANCEL
    given_up = intent.state in (State.VETOED, State.ABANDONED)
    return asked and job.restarts > intent.life.restarts and not given_up and intent.held_life in (None, job.life)


def _anothers(job: Job, unread: str) -> str:
    """Return why nobody but its owner undoes a job's stop without the store: an operator would lift any hold."""
    why = f" ({plain(unread, 200)})" if unread else ""
    return (
        f"job {job.job_id} is another user's, and without the store{why} nobody can tell whether evalstopd stopped it: "
        "nothing was changed; name a settings file that you can read (--config), or ask its owner to undo it"
    )


def _release(cluster: Cluster, job: Job, intent: Intent | None, caller: Caller) -> Undone:
    """Write the veto first: the next life must not start without it."""
    stands, said = _veto(cluster, job)
    left = "its comment says evalstop=keep by now, which stands" if stands else "its comment is as it was"
    try:
        cluster.release(job.job_id)
        after = cluster.look([job.job_id]).get(job.job_id)
    except NotAllowed as error:
        if caller.uid != job.uid:
            raise NotAllowed(_others_stop(job.job_id)) from None
        raise NotAllowed(f"{error}; {_who_may(job)}; {left}") from None
    except Rejected as error:
        raise Rejected(f"{error}; {left}") from None
    except Unavailable as error:
        raise Unavailable(f"{error}; {left}: try again") from None
    if after is None or after.held:
        raise Unavailable(f"job {job.job_id} is still held: try again; {left}")
    hours = credit_of(intent, 0.0, "").gpu_hours if intent is not None and intent.state is State.HELD else None
    path = intent.kept_path if intent is not None else ""
    credit = "the credit, if it was evalstopd that held the job," if hours is None else f"{hours:.3f} GPU-hours"
    lines = [
        f"job {job.job_id} is released: it starts anew once there is room, no sooner than two minutes after its stop",
        said,
        f"the daemon books {credit} at its next pass",
    ]
    lines.append(_from_the_top(path))
    return Undone(job.job_id, "released", tuple(lines), checkpoint=path, gpu_hours=hours)


def _from_the_top(path: str) -> str:
    """Return what the next life may do to the kept checkpoint, whose files are the trainer's own by another name."""
    kept = f"; the kept checkpoint is {shell_word(path)}" if path else ""
    if is_logged(path):
        return f"its script starts from the top{kept}"
    it = "it" if path else "the kept checkpoint"
    return f"its script starts from the top{kept}: copy {it} before it is written over, if the script saves in place"


def _who_may(job: Job) -> str:
    """Return what to do where Slurm refuses a release: squeue shows an admin's hold and ours alike."""
    return (
        f"where an admin holds the job as well, only an admin can lift it: ask for 'scontrol release {job.job_id}', "
        "which is an undo, too"
    )


def _veto(cluster: Cluster, job: Job) -> tuple[bool, str]:
    """Merge the veto into the comment and tell whether it stands there.

    Where it does not, the daemon's own memory of the undo keeps the job safe.
    """
    if parse_comment(job.comment).keep:
        return True, "its comment says evalstop=keep already: it will not be stopped again"
    try:
        cluster.set_comment(job.address, merge_token(job.comment, RUNG, KEEP))
    except Rejected as error:
        return False, f"{plain(str(error))}; the daemon does not stop an undone job again in any case"
    return True, "its comment now says evalstop=keep: it will not be stopped again"


def _already(intent: Intent, job: Job | None, caller: Caller) -> Undone:
    """Tell of an undo of before, and, of a job that had ended for good, again how its work goes on."""
    job_id, said = intent.key.job_id, f"the stop of job {intent.key.job_id} is undone already"
    if intent.ending is None or intent.ending.state in REQUEUED_ENDS:
        return Undone(job_id, "already", (said,), booked=True)
    _check_right(caller, intent.key.uid, job_id)
    command = _command(job_id, job.work_dir if job is not None else "", intent.kept_path)
    lines = (f"{said}: {plain(intent.note, 200)}", *_told(job_id, command))
    return Undone(job_id, "already", lines, command, intent.kept_path, booked=True)


def _resume(intent: Intent, job: Job | None, caller: Caller, ledger: Ledger | None, people: Notifier | None) -> Undone:
    """Tell how the work of a cancelled job goes on, and book the credit where the caller may write the store."""
    _check_right(caller, intent.key.uid, intent.key.job_id)
    hours = credit_of(intent, 0.0, "").gpu_hours
    who = "its owner" if caller.uid == intent.key.uid else "an operator"
    undone = _booked(ledger, intent, f"undone by {who}") if ledger is not None else None
    command = _command(intent.key.job_id, job.work_dir if job is not None else "", intent.kept_path)
    if ledger is not None and undone is not None and people is not None and caller.uid != intent.key.uid:
        _tell(ledger, undone, people, command)
    credit = f"{hours:.3f} GPU-hours are credited"
    when = "" if undone is not None else " once the daemon sees that job in the queue"
    lines = (*_told(intent.key.job_id, command), f"{credit}{when}")
    return Undone(intent.key.job_id, "resume", lines, command, intent.kept_path, hours, undone is not None)


def _booked(ledger: Ledger, intent: Intent, how: str) -> Intent | None:
    try:
        return ledger.undo(intent, how)
    except EvalstopError:
        return None


def _tell(ledger: Ledger, intent: Intent, people: Notifier, command: str) -> None:
    """Tell the owner of a stop that another one undid; recorded first, so that it is never told twice.

    The undo holds whatever becomes of the message.
    """
    hours, job = credit_of(intent, 0.0, "").gpu_hours, intent.key.job_id
    text = f"the stop of job {job} was {intent.note}; {hours:.3f} GPU-hours are credited; to go on: {command}"
    with suppress(EvalstopError):
        intent = ledger.note(intent, "telling", text, telling=UNDONE)
        message = Message(intent.key, intent.user, "the stop of your job was undone", text, UNDONE, intent.id)
        at_once = people.tell(message)
        people.close()
        for receipt in [at_once] if at_once is not None else people.receipts():
            intent = ledger.note(intent, receipt.event, receipt.text, telling="")


def _resume_by_slurm(job: Job, caller: Caller) -> Undone:
    """Tell the same without a store: the checkpoint's place is where it usually lies, for its owner to check.

    A job whose owner asked for a signal may have been stopped by it, and ends as its script likes.
    """
    _check_right(caller, job.uid, job.job_id)
    if not job.state.startswith("CANCELLED") and parse_comment(job.comment).signal is None:
        raise Rejected(f"job {job.job_id} was not cancelled: it ended as {plain(job.state, 40)}")
    pins = f"{job.cluster}-{job.job_id}-{job.submitted_s}"
    path = posixpath.join(job.work_dir, ".evalstop", pins, "best")
    command = _command(job.job_id, job.work_dir, path)
    usual = "the store cannot be read here, so the checkpoint's path is the usual one; the message of the stop has it"
    credit = "a credit is booked once the daemon sees that job in the queue, if it was evalstopd that stopped this one"
    return Undone(job.job_id, "resume", (*_told(job.job_id, command), usual, credit), command, path)


def _check_right(caller: Caller, uid: int, job_id: str) -> None:
    if caller.uid != uid and not caller.operator():
        raise NotAllowed(_others_stop(job_id))


def _others_stop(job_id: str) -> str:
    return f"job {job_id} is another user's: only its owner or an operator may undo its stop"


def _command(job_id: str, work_dir: str, path: str) -> str:
    """Return the command as one line that a shell reads as it is meant, whatever users' paths hold."""
    chdir = [f"--chdir={shell_word(work_dir)}"] if work_dir else []
    comment = f"--comment={shell_word(resume_comment(job_id))}"
    checkpoint = ["--resume_from_checkpoint", shell_word(path)] if path else []
    return " ".join(["sbatch", *chdir, comment, "SCRIPT", *checkpoint])


def _told(job_id: str, command: str) -> tuple[str, ...]:
    head = f"job {job_id} has ended and cannot be released; its work goes on with"
    return (head, f"  {command}", _SCRIPT.format(job=job_id), _OPTION)


def _nothing(target: Target, job: Job | None) -> str:
    """Return why there is nothing to undo."""
    intent, name = target.intent, plain(target.job_id, 40)
    if intent is not None and not intent.closed and intent.state is not State.HELD:
        return f"job {name} is not stopped yet: evalstopd keep {name} prevents it"
    if job is not None and job.phase is not Phase.ENDED:
        return f"job {name} is not held by evalstopd: there is nothing to undo"
    if intent is None and job is None:
        return f"Slurm does not know job {name}, and no stop of it can be read from the store"
    return f"there is no stop of job {name} that could be undone"
