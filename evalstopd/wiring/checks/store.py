"""What `evalstopd check` asks of the store: whether it is whole, and what is written in it."""

from collections.abc import Iterable

from evalstopd.core.model import Rung
from evalstopd.errors import EvalstopError, Unavailable
from evalstopd.lead.seat import led_elsewhere
from evalstopd.pulse import alive, missed, told
from evalstopd.report.scorecard import check_enforce, enforce_verdict
from evalstopd.settings import Settings
from evalstopd.store.migrate import check_whole, current
from evalstopd.wiring.pulses import daemon_rows
from evalstopd.wiring.scorecard import make_scorecard
from evalstopd.wiring.slurm import make_cluster, require_conf
from evalstopd.wiring.store import make_checked_store


def schema(settings: Settings) -> str:
    """Tell the schema's revision. Raises as `check_whole` does."""
    check_whole(settings.store.url)
    return f"schema revision {current(settings.store.url)}, whole"


def daemons(settings: Settings) -> str:
    """Tell of the daemons on the store; none that is well is bad news only where one has worked, or works."""
    rows, rival = daemon_rows(settings), _rival(settings)
    said = "; ".join([*rival, *told(rows)])
    if rival or (rows and (missed(rows) or not alive(rows))):
        raise Unavailable(said)
    return said


def _rival(settings: Settings) -> list[str]:
    """Say that another lease leads the cluster, or the own one another; nothing where Slurm does not answer."""
    try:
        require_conf(settings)
        cluster = make_cluster(settings).queue().cluster
    except EvalstopError:
        return []
    store, lease = make_checked_store(settings), settings.store.lease
    names, own = store.leading(cluster), store.leader(lease)
    elsewhere = led_elsewhere(lease, own.cluster if own and own.left_s > 0 else "", cluster)
    return [*([elsewhere] if elsewhere else []), *_others(settings, cluster, names)]


def _others(settings: Settings, cluster: str, names: Iterable[str]) -> list[str]:
    return [
        f"the lease {name!a} leads the cluster {cluster!a}, not {settings.store.lease!a}, which these settings name: "
        "give all its daemons one name in store.lease"
        for name in names
        if name != settings.store.lease
    ]


def card(settings: Settings) -> str:
    """Tell whether the site's rule has passed. Raises Misconfigured where it has not and should enforce."""
    card = make_scorecard(settings, make_checked_store(settings))
    if settings.rules.rung is Rung.ENFORCE:
        return check_enforce(card, settings.enforce.override)
    verdict = enforce_verdict(card)
    lacks = "; ".join(verdict.missing)
    return f"{card.site_rule} has {'passed for enforce' if verdict.met else f'not passed for enforce: {lacks}'}"
