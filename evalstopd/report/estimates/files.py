"""Lives of the past from a file of sacct's."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evalstopd.core.estimates import PastLife
from evalstopd.errors import WrongUsage
from evalstopd.report.scorecard.since import since_s
from evalstopd.slurmtext.sacct import read_sacct

_NEEDED = ("JobID", "JobName", "User", "Account", "Submit", "End", "Elapsed", "TimelimitRaw", "State")


@dataclass(frozen=True, slots=True)
class Past:
    """Lives that were over, and how many records of the file tell of none, by why."""

    lives: tuple[PastLife, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)


def read_file(path: Path, since: str = "") -> Past:
    """Return the lives that were over when the file was written, and ended `since`; days count from the newest end.

    Raises WrongUsage.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise WrongUsage(f"{path}: cannot be read as sacct's output: {error}") from None
    records = list(read_sacct(str(path), text, _NEEDED))
    lives = [life for each in records if not isinstance(each, str) and (life := each.past) is not None]
    begin_s = since_s(since, max((life.ended_s for life in lives), default=0.0))
    kept = tuple(life for life in lives if life.ended_s >= begin_s)
    return Past(kept, dict(sorted(Counter(each for each in records if isinstance(each, str)).items())))
