"""What is asked of Slurm for single jobs: cancel, hold, signal, comment. Exit code 0 proves nothing here."""

import re
import unicodedata
from collections.abc import Sequence

from evalstopd.adapters.slurm.ids import address, exact
from evalstopd.adapters.slurm.run import Answer, Runner, printable
from evalstopd.core.shift import AT_ONCE, Steer
from evalstopd.errors import NotAllowed, NotRequeueable, Rejected, Unavailable

COMMENT_CAP = 1000
_DENIED_CODE = 210
_NO_RIGHT = ("Access/permission denied", "Invalid user id")
_GONE = ("Invalid job id specified", "Job/step already completing or completed", "Job has already finished")
_WAITS = "Job is pending execution"
_FIXED = ("Requested operation is presently disabled", "Only batch jobs are accepted or processed")
# What is said of a job that no longer waits.
_MOVED_ON = ("Requested operation is presently disabled", "Job is no longer pending execution")
_SIGNAL = re.compile(r"[A-Z][A-Z0-9]{1,11}")
_CONTROL = frozenset({"Cc", "Zl", "Zp"})


def cancel(run: Runner, job_ids: Sequence[str]) -> None:
    """Ask once for the end of these jobs; those no longer running are left alone.

    Raises Rejected where there is no right to (others of the batch may have been cancelled), Unavailable
    where the outcome is unknown.
    """
    # The state is looked up by scancel itself just before: a job requeued meanwhile keeps its place in the queue.
    _scancel(run, ("--state=RUNNING", *exact(job_ids)))


def requeue_hold(run: Runner, job_id: str) -> None:
    """Ask once to requeue a running job and to hold it; one that does not run is left alone.

    Raises NotRequeueable for a job that was submitted with --no-requeue or has no batch script, Rejected where there
    is no right to, Unavailable where the outcome is unknown.
    """
    _requeue(run, "requeuehold", job_id)


def _requeue(run: Runner, verb: str, job_id: str) -> None:
    # Without "Incomplete" Slurm takes ended jobs back into the queue as well: one that has just ended well, say.
    answer = run(("scontrol", verb, "Incomplete", *exact([job_id])), {})
    if answer.code == 0 or any(words in answer.err for words in (*_GONE, _WAITS)):
        return
    if any(words in answer.err for words in _FIXED):
        raise NotRequeueable(f"Slurm may not requeue it: {answer.complaint}")
    if any(words in answer.err for words in _NO_RIGHT):
        raise Rejected(f"{verb} was refused: {answer.complaint}")
    raise Unavailable(f"outcome unknown: scontrol {verb} failed ({answer.code}): {answer.complaint}")


def put_back(run: Runner, job_id: str) -> None:
    """Ask once to requeue a running job; one that does not run is left alone. Raises as `requeue_hold` does."""
    _requeue(run, "requeue", job_id)


def release(run: Runner, job_id: str) -> None:
    """Let a held job go on; raises NotAllowed without the right, Rejected for one that has ended, else Unavailable."""
    answer = run(("scontrol", "release", *exact([job_id])), {})
    if answer.code == 0:
        return
    _check_refusal(answer, "the job was not released")
    raise Unavailable(f"scontrol release failed ({answer.code}): {answer.complaint}")


def send_signal(run: Runner, job_id: str, name: str) -> None:
    """Send a signal to the batch script alone; raises as `cancel` does, and Rejected for a name Slurm lacks."""
    if not _SIGNAL.fullmatch(name):
        raise Rejected(f"not the name of a signal: {printable(name, 40)}")
    _scancel(run, (f"--signal={name}", "--batch", *exact([job_id])))


def set_comment(run: Runner, job_id: str, comment: str) -> None:
    """Replace a job's comment; raises NotAllowed without the right, Rejected for one that tools would cut or misread.

    At most 1,000 bytes of UTF-8 on one line: Slurm cuts comments at 1,024 in places.
    """
    _check_comment(comment)
    answer = run(("scontrol", "update", f"JobId={address(job_id)}", f"Comment={comment}"), {})
    if answer.code == 0:
        return
    _check_refusal(answer, "the comment was not set")
    raise Unavailable(f"scontrol update failed ({answer.code}): {answer.complaint}")


def steer(run: Runner, asks: Sequence[Steer]) -> None:
    """Set Nice or Priority of waiting jobs and arrays, many in one scontrol; those that are gone are left out.

    Raises Rejected where there is no right to for any of them (others may have been set), Unavailable where the outcome
    is unknown. A job whose Priority was set by hand takes no Nice, and Slurm does not say so.
    """
    for start in range(0, len(asks), AT_ONCE):
        lines = [line for ask in asks[start : start + AT_ONCE] for line in _orders(ask)]
        answer = run(("scontrol",), {}, feed="".join(f"{line}\n" for line in lines))
        _judge_orders(answer)


def _orders(ask: Steer) -> list[str]:
    (job_id,) = exact([ask.job_id])
    anew = [f"release {job_id}"] if ask.anew else []
    nice = [f"update JobId={job_id} Nice={ask.nice}"] if ask.nice is not None else []
    priority = [f"update JobId={job_id} Priority={ask.priority}"] if ask.priority is not None else []
    return anew + nice + priority


def _judge_orders(answer: Answer) -> None:
    """Sort the complaints: scontrol goes on after each, and ends with 1 if there was any."""
    lines = [line for line in answer.err.splitlines() if line.strip()]
    refused = [line for line in lines if any(words in line for words in _NO_RIGHT)]
    if refused:
        raise Rejected(f"scontrol update was refused: {printable(refused[0])}")
    if [line for line in lines if not any(words in line for words in (*_GONE, *_MOVED_ON))]:
        raise Unavailable(f"outcome unknown: scontrol update failed ({answer.code}): {answer.complaint}")


def _check_refusal(answer: Answer, what: str) -> None:
    if any(words in answer.err for words in _NO_RIGHT):
        raise NotAllowed(f"{what}: {answer.complaint}")
    if any(words in answer.err for words in _GONE):
        raise Rejected(f"{what}: {answer.complaint}")


def _check_comment(comment: str) -> None:
    try:
        size = len(comment.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        raise Rejected("the comment is no text that UTF-8 can hold") from None
    if size > COMMENT_CAP:
        raise Rejected(f"the comment has {size} bytes, more than {COMMENT_CAP}")
    if any(unicodedata.category(char) in _CONTROL for char in comment):
        raise Rejected("the comment has line breaks or control characters")


def _scancel(run: Runner, arguments: Sequence[str]) -> None:
    try:
        answer = run(("scancel", *arguments), {})
    except Unavailable as error:
        raise Unavailable(f"outcome unknown: {error}") from error
    if answer.code != 0:
        _judge(answer)


def _judge(answer: Answer) -> None:
    """Sort the complaints of one scancel: a job that is gone already is no failure, the next look tells."""
    lines = [line for line in answer.err.splitlines() if line.strip()]
    refused = [line for line in lines if line.endswith(_NO_RIGHT) or line.startswith("Unknown job signal")]
    if refused or answer.code == _DENIED_CODE:
        raise Rejected(f"scancel was refused: {printable(refused[0]) if refused else answer.complaint}")
    if not lines or not all(line.endswith(_GONE) for line in lines):
        raise Unavailable(f"outcome unknown: scancel failed ({answer.code}): {answer.complaint}")
