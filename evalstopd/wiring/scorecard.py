"""Whether the site may enforce: its scorecard, its limits, and what an admin put in writing instead."""

from evalstopd.core.model import Rung
from evalstopd.loop.telling import tell_admin
from evalstopd.ports import Changes, Notifier
from evalstopd.report.scorecard import Limit, Limits, Scorecard, read_scorecard
from evalstopd.settings import Settings, make_rules
from evalstopd.store.sql import SqlStore
from evalstopd.wiring.host import make_clock
from evalstopd.written import written


def make_scorecard(settings: Settings, store: SqlStore, since_s: float = 0.0) -> Scorecard:
    """Return what the store tells of the site's rule, and of others that jobs were judged by."""
    asked = settings.scorecard
    limits = Limits(
        warn=Limit(asked.warn_min_jobs, asked.warn_min_days, asked.warn_max_wronged),
        enforce=Limit(asked.enforce_min_jobs, asked.enforce_min_days, asked.enforce_max_wronged),
        min_evals=asked.min_evals,
    )
    return read_scorecard(store, store, make_rules(settings).rule, limits, since_s)


def admit(settings: Settings, store: SqlStore, notifier: Notifier, *, dry_run: bool) -> None:
    """Raise Misconfigured where the site may not enforce; note what an admin put in writing for it, and tell it."""
    if settings.rules.rung is not Rung.ENFORCE:
        return
    now_s = make_clock().now_s()
    noted = written(settings, make_scorecard(settings, store), store, now_s)
    if noted and not dry_run:
        store.record(Changes(remarks=tuple(noted)))
        tell_admin(store, notifier, noted, now_s)
