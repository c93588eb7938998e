"""Lives of the past from a file of sacct's."""

from pathlib import Path

from evalstopd.core.estimates import PastLife
from evalstopd.errors import WrongUsage
from evalstopd.slurmtext.sacct import read_sacct

_NEEDED = ("JobID", "JobName", "User", "Account", "Submit", "End", "Elapsed", "TimelimitRaw", "State")


def read_file(path: Path) -> tuple[PastLife, ...]:
    """Return the lives that were over when the file was written. Raises WrongUsage."""
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise WrongUsage(f"{path}: cannot be read as sacct's output: {error}") from None
    return tuple(life for each in read_sacct(str(path), text, _NEEDED) if (life := each.past) is not None)
