"""What may be wrong with settings though each has the right form: a rule nobody knows, keys that need one another."""

import re
from collections.abc import Iterator

from evalstopd.core.detectors import DETECTORS, detector
from evalstopd.core.model import Mode
from evalstopd.core.policies import ELASTIC, policy
from evalstopd.core.rules import ServerClass
from evalstopd.core.spec import parse_spec
from evalstopd.settings.faults import Fault, shown
from evalstopd.settings.whole import Settings

LOSS_AWARE = "loss-aware"
SPARE_S = 2.0
"""A command of Slurm's that is late is killed, and waited for, for a second."""
PATHS = (
    "slurm.conf", "mlflow.ca_file", "mlflow.client_cert", "binding.mac_key", "keeper.socket", "daemon.kill_switch",
    "notify.smtp_password_file", "notify.smtp_ca_file",
)  # fmt: skip
_WHERE = "a relative one hangs on the folder in which a command is started"
_RELATIVE_SQLITE = re.compile(r"sqlite(\+[a-z]+)?:///[^/]")
# LossAware would take a job's GPUs on the word of numbers that others write.
PREEMPTIVE = ("srtf-est", "las")


def _rule(settings: Settings) -> Iterator[Fault]:
    try:
        detector(settings.rules.rule, settings.rules.mode or Mode.MAX)
    except ValueError as error:
        yield _fault("rules.rule", str(error))


def _actions(settings: Settings) -> Iterator[Fault]:
    for number, each in enumerate(settings.enforce.actions, 1):
        if each.rule and each.rule not in DETECTORS:
            known = ", ".join(sorted(DETECTORS))
            yield _fault("enforce.actions", f"entry {number}: {shown(each.rule)} is no rule; known: {known}")


def _tags(settings: Settings) -> Iterator[Fault]:
    if settings.binding.tags and settings.mlflow.server is not ServerClass.AUTHENTICATED:
        yield _fault("binding.tags", 'tags prove nothing unless mlflow.server is "authenticated"', "mlflow.server")


def _policy(settings: Settings) -> Iterator[Fault]:
    """Refuse what cannot be had on a live cluster."""
    asked = settings.priorities
    if not asked.policy:
        return
    try:
        name = parse_spec(asked.policy).name
        if name in ELASTIC:
            raise ValueError(f"{name} gives running jobs more or fewer GPUs, which Slurm cannot: it is for simulations")
        policy(asked.policy)
    except ValueError as error:
        yield _fault("priorities.policy", str(error))
        return
    if name == LOSS_AWARE and not (asked.loss_aware and asked.loss_metric):
        why = "ranks on numbers that users write: it needs priorities.loss_aware = true and a loss_metric"
        yield _fault("priorities.policy", f"{LOSS_AWARE} {why}", "priorities.loss_aware", "priorities.loss_metric")


def _preempt(settings: Settings) -> Iterator[Fault]:
    asked = settings.preempt
    if not asked.policy:
        return
    try:
        made = policy(asked.policy)
    except ValueError as error:
        yield _fault("preempt.policy", str(error))
        return
    if parse_spec(asked.policy).name not in PREEMPTIVE:
        yield _fault("preempt.policy", f"{made.spec} requeues no running job; {' or '.join(PREEMPTIVE)} does")


def _kinds(settings: Settings) -> Iterator[Fault]:
    """Refuse a kind without what it needs."""
    asked = settings.notify
    if not asked.kinds:
        yield _fault("notify.kinds", 'kinds is empty: "log" is the least')
    if "command" in asked.kinds and not asked.command:
        yield _fault("notify.command", 'kinds has "command", but command names no program', "notify.kinds")
    if asked.command and not asked.command[0].startswith("/"):
        yield _fault("notify.command", f"an absolute path is needed, not {shown(asked.command[0])}")
    if "smtp" in asked.kinds and not (asked.smtp_from and asked.smtp_to):
        yield _fault("notify.kinds", '"smtp" needs smtp_from and smtp_to', "notify.smtp_from", "notify.smtp_to")


def _password(settings: Settings) -> Iterator[Fault]:
    """Refuse a password that would go over the wire for all to read, or that is nobody's."""
    asked = settings.notify
    if bool(asked.smtp_user) != bool(asked.smtp_password_file):
        text = "smtp_user and smtp_password_file go together"
        yield _fault("notify.smtp_user", text, "notify.smtp_password_file")
    if asked.smtp_user and asked.smtp_security == "none":
        yield _fault("notify.smtp_security", "no password is sent without starttls or tls", "notify.smtp_user")


def _login(settings: Settings) -> Iterator[Fault]:
    """Refuse half a login to the tracker: it would be used, or left out, in silence."""
    asked = settings.mlflow
    has = bool(asked.password.get_secret_value())
    if bool(asked.username) != has:
        said = "there is a password and no user name" if has else "there is a user name and no password"
        yield _fault("mlflow.username", f"goes together with mlflow.password: {said}", "mlflow.password")


def _paths(settings: Settings) -> Iterator[Fault]:
    """Refuse what depends on the folder that a command, or systemd, happens to start in."""
    for key in PATHS:
        part, _, name = key.partition(".")
        given = str(getattr(getattr(settings, part), name))
        if given and not given.startswith("/"):
            yield _fault(key, f"an absolute path is needed, not {shown(given)}: {_WHERE}")
    if any(not each.startswith("/") for each in settings.slurm.path.split(":")):
        yield _fault("slurm.path", f"absolute paths are needed, with : between them: {_WHERE}")
    if _RELATIVE_SQLITE.match(settings.store.url):
        four = "SQLite needs an absolute path, with four slashes, as in sqlite:////var/lib/evalstopd/store.db"
        yield _fault("store.url", f"{four}: {_WHERE}")


def least_lease_s(settings: Settings) -> float:
    """Return the shortest lease that an act on Slurm can be begun under, in seconds.

    A beat beside the passes renews the lease when a third of it is over, however long a pass takes: so the period of
    the passes sets no bound. An act is begun only while the lease surely outlasts the command's time limit and the time
    that a command is waited for after it was killed; twice that leaves room for one renewal that fails.
    """
    return 2 * (settings.slurm.time_limit_s + SPARE_S)


def take_over_s(settings: Settings) -> float:
    """Return how long nobody leads at most once a leader was killed: its lease, and who waits asks every third of it.

    The new leader makes its first pass at once, so nothing of this hangs on the period of the passes.
    """
    return settings.store.lease_s * 4 / 3


def told_take_over(settings: Settings) -> str:
    """Say how long a take-over lasts, and where that is more than two passes."""
    if settings.store.url.startswith("sqlite"):
        return "an SQLite store serves one daemon: none takes over"
    takes_s, tick_s = take_over_s(settings), settings.daemon.tick_s
    said = f"a leader that dies is replaced after {takes_s:.3g} s at most, four thirds of store.lease_s"
    if takes_s <= 2 * tick_s:
        return f"{said}: within two passes"
    return f"{said}: more than two passes (daemon.tick_s is {tick_s:g}); {_within_two(settings)}"


def _within_two(settings: Settings) -> str:
    """Say what would let a take-over end within two passes."""
    most_s = 1.5 * settings.daemon.tick_s
    would_do = f"a store.lease_s of {most_s:.3g} at most would do"
    limit_s = most_s / 2 - SPARE_S
    if settings.slurm.time_limit_s <= limit_s:
        return would_do
    return f"{would_do}, with a slurm.time_limit_s of {limit_s:.3g} at most" if limit_s > 0 else "no lease is so short"


def _lease(settings: Settings) -> Iterator[Fault]:
    """Refuse a lease too short to act within; of SQLite's one daemon there is none."""
    least_s = least_lease_s(settings)
    if settings.store.lease_s < least_s and not settings.store.url.startswith("sqlite"):
        text = (
            f"at least {least_s:g} is needed, not {settings.store.lease_s:g}: a Slurm command must end well within it"
        )
        yield _fault("store.lease_s", text, "store.url", "slurm.time_limit_s")


CHECKS = (_rule, _actions, _policy, _preempt, _tags, _kinds, _password, _login, _paths, _lease)
"""What may be wrong though it has the right form."""


def _fault(key: str, text: str, *more: str) -> Fault:
    """Return a fault of one key; `more` are the others that it depends on."""
    return Fault(tuple(key.split(".")), f"{key}: {text}", (key, *more))
