"""What an admin put in writing to lift a limit: kept in the book once for each digest of the settings."""

from collections.abc import Sequence

from evalstopd.core.caps import SITE
from evalstopd.core.watch import Remark
from evalstopd.ports import Archive
from evalstopd.report.scorecard import Scorecard, check_enforce, override_remark
from evalstopd.settings import Settings

ACCEPTED = "open-mlflow-accepted"
"""The remark that points which any user could have written may cost a job."""


def written(settings: Settings, card: Scorecard, archive: Archive, now_s: float) -> Sequence[Remark]:
    """Return the lines on an enforcing site that the book does not have yet.

    Raises Misconfigured where a needed reason is missing.
    """
    reason = settings.enforce.override
    check_enforce(card, reason)
    return (*override_remark(card, reason, settings.digest, now_s), *_accepted(settings, archive, now_s))


def _accepted(settings: Settings, archive: Archive, now_s: float) -> Sequence[Remark]:
    """Return the line on an open server whose points are trusted; one that is only declared otherwise counts, too."""
    reason, mark = settings.trust.open_mlflow, f"settings {settings.digest}: "
    noted = (each for each in archive.remarks_of([SITE]) if each.code == ACCEPTED)
    if not reason or any(each.text.startswith(mark) for each in noted):
        return ()
    text = f"{mark}points of an open MLflow server, which any user can write, may cost a job: {reason}"
    return (Remark(SITE, ACCEPTED, text, now_s),)
