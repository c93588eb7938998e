"""What `evalstopd check` asks of Slurm: whether it answers, and lets this account do what the settings want."""

import os

from evalstopd.adapters.slurm.accounts import accounts
from evalstopd.adapters.slurm.clock import controllers_clock_s
from evalstopd.adapters.slurm.cluster import SlurmCluster
from evalstopd.adapters.slurm.partitions import partitions
from evalstopd.adapters.slurm.rights import is_operator, is_slurms_own
from evalstopd.adapters.slurm.run import ProcessRunner
from evalstopd.core.model import Rung
from evalstopd.core.spec import parse_spec
from evalstopd.core.words import OPERATOR
from evalstopd.errors import EvalstopError, Unavailable
from evalstopd.priorities import still_set, told_still_set
from evalstopd.settings import Settings, make_preempt, make_priorities
from evalstopd.skew import agreeing
from evalstopd.wiring.host import account_name, make_clock
from evalstopd.wiring.slurm import make_cluster, make_runner, require_conf
from evalstopd.wiring.store import make_checked_store


def queue(settings: Settings) -> str:
    """Tell whether the queue can be listed."""
    queue = _cluster(settings).queue()
    return f"cluster {queue.cluster} answers, {len(queue.jobs)} jobs in its queue"


def rights(settings: Settings) -> str:
    """Tell whether Slurm lets this account end the jobs of others. Raises Unavailable where it must and may not."""
    return rights_of(os.getuid(), settings)


def rights_of(uid: int, settings: Settings) -> str:
    """Tell the same of any account."""
    run = _runner(settings)
    if is_operator(run, uid, account_name(uid)) or is_slurms_own(run, uid):
        return "this account may end the jobs of others"
    lack = f"Slurm does not call this account Operator: it may not end the jobs of others ({OPERATOR})"
    if settings.rules.rung < Rung.ENFORCE:
        return f"{lack}; on the {settings.rules.rung.word} rung it need not"
    raise Unavailable(lack)


def clock(settings: Settings) -> str:
    """Tell whether the controller's clock agrees with ours."""
    return agreeing("slurmctld", lambda: controllers_clock_s(_runner(settings)), make_clock().now_s)


def governed(settings: Settings) -> str:
    """Name the governed partitions. Raises Unavailable where Slurm has no such one."""
    named = dict.fromkeys(settings.rules.partitions, "rules.partitions")
    named |= {each: "priorities.partitions" for each in settings.priorities.partitions if each not in named}
    if not named:
        return "all partitions are governed"
    known = partitions(_runner(settings))
    if unknown := [f"{each} ({where})" for each, where in sorted(named.items()) if each not in known]:
        raise Unavailable(f"Slurm has no partition {', '.join(unknown)}")
    return f"governed: {', '.join(sorted(named))}"


def exempt(settings: Settings) -> str:
    """Name the exempt accounts. Raises Unavailable where accounting has no such one; without accounting all may be."""
    named = sorted(settings.rules.exempt_accounts)
    if not named:
        return "no account is exempt"
    said = f"exempt: {', '.join(named)}"
    try:
        known = accounts(_runner(settings))
    except Unavailable as error:
        return f"{said}; whether Slurm has them cannot be told: {error}"
    if unknown := [each for each in named if each not in known]:
        raise Unavailable(f"Slurm has no account {', '.join(unknown)} (rules.exempt_accounts): nobody is exempt by it")
    return said


def priorities(settings: Settings) -> str:
    """Tell by what waiting jobs are ordered. Raises Unavailable where they should be and cannot."""
    asked = make_priorities(settings)
    if asked is None:
        return told_still_set(_still_set(settings))
    _as_operator(settings, "change the order of waiting jobs")
    return f"waiting jobs are ordered by {asked.policy.spec}, by {asked.lever.value.capitalize()}"


def _cluster(settings: Settings) -> SlurmCluster:
    """Return the cluster. Raises Unavailable where no command could reach it, before one is run."""
    require_conf(settings)
    return make_cluster(settings)


def _runner(settings: Settings) -> ProcessRunner:
    require_conf(settings)
    return make_runner(settings)


def _still_set(settings: Settings) -> int:
    """Return how many waiting jobs have what was set; 0 where that cannot be told, which other lines say."""
    try:
        queue = _cluster(settings).queue()
        return len(still_set(make_checked_store(settings).book(queue.cluster).shifts, queue.jobs))
    except EvalstopError:
        return 0


def preemption(settings: Settings) -> str:
    """Tell whether running jobs can yield to waiting ones. Raises Unavailable where they should and cannot."""
    asked = make_preempt(settings)
    if asked is None:
        return "no running job yields to a waiting one"
    if settings.rules.rung < Rung.WARN:
        raise Unavailable("nobody will yield: on the observe rung no checkpoint is pinned (rules.rung, preempt.policy)")
    _as_operator(settings, "requeue the jobs of others")
    return f"running jobs may yield by {asked.policy.spec}, {asked.per_hour} within an hour at most{seldom(settings)}"


def seldom(settings: Settings) -> str:
    """Say where the order of waiting jobs keeps them from it: who starts next is seldom whom they would yield to."""
    order, own = settings.priorities.policy, parse_spec(settings.preempt.policy).name
    if not order or parse_spec(order).name == own:
        return ""
    return f"; but hardly ever, as {order} puts others first (priorities.policy): set both to {own}"


def _as_operator(settings: Settings, to_do: str) -> None:
    """Raise Unavailable where Slurm does not answer, or does not let this account do it."""
    _cluster(settings).queue()
    if not is_operator(_runner(settings), os.getuid(), account_name(os.getuid())):
        raise Unavailable(f"Slurm does not call this account Operator: it may not {to_do}")
