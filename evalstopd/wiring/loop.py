"""The loop over the real cluster, tracker, keeper and store."""

import threading
from collections.abc import Callable
from dataclasses import replace

from evalstopd import __version__
from evalstopd.core.estimates import History
from evalstopd.loop import Loop, Stance
from evalstopd.loop.lengths import Lengths
from evalstopd.ports import Ports
from evalstopd.settings import Settings, make_preempt, make_priorities, make_rules
from evalstopd.store.migrate import check_whole
from evalstopd.store.sql import SqlStore
from evalstopd.wiring.estimates import estimate_days
from evalstopd.wiring.host import make_clock, make_kill_switch
from evalstopd.wiring.keeper import make_keeper
from evalstopd.wiring.notify import make_notifier
from evalstopd.wiring.scorecard import admit
from evalstopd.wiring.slurm import make_cluster
from evalstopd.wiring.store import make_store
from evalstopd.wiring.tracker import make_gate, make_metrics, make_models, make_registry, make_trust


def make_loop(
    settings: Settings,
    stopping: threading.Event,
    *,
    dry_run: bool = False,
    store: SqlStore | None = None,
    history: Callable[[str], History] | None = None,
) -> Loop:
    """Return the loop over the real cluster, tracker, keeper and store; `history` is what estimates rest on.

    Raises Misconfigured or Fatal where the settings, the scorecard or the store do not allow a start. Where a limit
    is lifted by a written reason, the store notes it and the admin is told, once for each digest of the settings.
    """
    check_whole(settings.store.url, indexes=False)
    metrics, store = make_metrics(settings), store or make_store(settings)
    notifier = make_notifier(settings)
    admit(settings, store, notifier, dry_run=dry_run)
    rules = replace(make_rules(settings), trust=make_trust(settings))
    ports = Ports(
        clock=make_clock(),
        cluster=make_cluster(settings),
        metrics=metrics,
        runs=metrics,
        keeper=make_keeper(settings),
        store=store,
        notifier=notifier,
        kill_switch=make_kill_switch(settings),
        finder=metrics,
        gate=make_gate(settings),
        should_stop=stopping.is_set,
        registry=make_registry(settings),
        models=make_models(settings),
    )
    stance = Stance(rules, settings.digest, __version__, make_priorities(settings), make_preempt(settings))
    return estimating(settings, ports, stance, history or remembered(store))


def estimating(settings: Settings, ports: Ports, stance: Stance, history: Callable[[str], History]) -> Loop:
    """Return a loop that estimates jobs' lengths where the settings need them."""
    known = Lengths(history, ports.clock)
    return Loop(ports, stance) if estimate_days(settings) is None else Loop(ports, stance, known, known.of)


def remembered(store: SqlStore) -> Callable[[str], History]:
    """Return what tells a cluster's history as the store has it."""
    return lambda cluster: store.history(cluster) or History()
