"""Undoing a stop with the caller's own rights, with or without the site's settings and store."""

import os
from dataclasses import replace
from pathlib import Path

from evalstopd.adapters.slurm.cluster import SlurmCluster
from evalstopd.adapters.slurm.rights import is_operator
from evalstopd.errors import Fatal, Misconfigured, Rejected, Unavailable
from evalstopd.loop.ledger import Ledger
from evalstopd.ports import Cluster
from evalstopd.settings import load_settings
from evalstopd.store.sql import SqlStore
from evalstopd.undo import Caller, Target, Undone, parse_target, tasks_line, undo
from evalstopd.wiring.host import account_name, make_clock
from evalstopd.wiring.notify import make_channels, make_notifier
from evalstopd.wiring.own_shell import make_plain_runner
from evalstopd.wiring.store import make_checked_store


def undo_stop(name: str, config: Path | None) -> Undone:
    """Undo a stop with the caller's own rights; who can read neither settings nor store does it by Slurm alone.

    Raises as `undo` does, and what is wrong with settings or store where a settings file was named.
    """
    target, uid, ledger, people = parse_target(name), os.getuid(), None, None
    run = make_plain_runner()
    cluster = SlurmCluster(run)
    try:
        settings = load_settings(config)
        store = make_checked_store(settings)
        target, ledger = _found(target, store, cluster), Ledger(store, make_clock())
        people = make_notifier(settings) if make_channels(settings) else None  # our log is the caller's terminal
    except (Misconfigured, Unavailable, Fatal) as error:
        if config is not None:
            raise
        target = replace(target, unread=str(error))
    return undo(cluster, target, Caller(uid, lambda: is_operator(run, uid, account_name(uid))), ledger, people)


def _found(target: Target, store: SqlStore, cluster: Cluster) -> Target:
    """Return the target with what the store has of its newest stop."""
    keys = [watch.key for watch in store.find(target.job_id)]
    if target.named is not None:
        keys = [key for key in keys if (key.cluster, key.uid, key.submitted_s) == target.named]
    intents = store.intents_of(keys[:1])
    if not intents:
        tasks = tasks_line(cluster, target.job_id)
        raise Rejected(f"evalstopd has decided no stop of job {target.job_id}{tasks}")
    return replace(target, intent=intents[0])
