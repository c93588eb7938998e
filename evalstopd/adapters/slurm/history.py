"""Which jobs ended within a span of time, from accounting: one call of slurmdbd, none of the controller."""

import secrets

from evalstopd.adapters.slurm.run import Runner, succeed
from evalstopd.core.estimates import PastLife
from evalstopd.errors import Misconfigured, Unavailable
from evalstopd.ports import Span
from evalstopd.slurmtext.sacct import read_framed

# A user's text is never the last field; only what an estimate needs is asked for.
_FIELDS = ("JobName", "User", "Account", "JobID", "Submit", "End", "ElapsedRaw", "TimelimitRaw", "State")
_ENDED = "BF,CA,CD,DL,F,NF,OOM,PR,RQ,RV,TO"
# Whole jobs, all their lives, everybody's, of this cluster alone.
_SACCT = ("sacct", "--allocations", "--duplicates", "--allusers", "--noheader", "--parsable2")
_WORD_BYTES = 12


def read_ended(run: Runner, span: Span) -> tuple[PastLife, ...]:
    """Return the lives of jobs that ended within a span (seconds since the epoch). Raises Unavailable.

    The word between the fields can be seen by others in the list of processes, but these jobs' names are written
    already: no job can bear it.
    """
    word = f"~{secrets.token_hex(_WORD_BYTES)}~"
    argv = (
        *_SACCT,
        f"--delimiter={word}",
        f"--format={','.join(_FIELDS)}",
        f"--state={_ENDED}",
        f"--starttime={_moment(span.since_s)}",
        f"--endtime={_moment(span.until_s)}",
    )
    text = succeed(run(argv, {}), "sacct")
    try:
        lives = [each.past for each in read_framed("sacct", text, _FIELDS, word)]
    except Misconfigured as error:
        raise Unavailable(str(error)) from None
    # sacct's own bounds are whole seconds, and both within.
    return tuple(each for each in lives if each is not None and each.ended_s in span)


def _moment(at_s: float) -> str:
    return f"uts{int(at_s)}"
