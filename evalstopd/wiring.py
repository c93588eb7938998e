"""Settings become adapters, adapters become a loop: the one module that imports concrete adapters."""

import os
import pwd
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

from evalstopd import __version__
from evalstopd.adapters.keeper_client import KeeperClient
from evalstopd.adapters.mlflow import credentials
from evalstopd.adapters.mlflow.copying import Copier
from evalstopd.adapters.mlflow.database import DatabaseRoute
from evalstopd.adapters.mlflow.gate import ServerGate
from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.models import RunModels
from evalstopd.adapters.mlflow.registrar import Registrar
from evalstopd.adapters.mlflow.registration import Registration
from evalstopd.adapters.mlflow.server import Server
from evalstopd.adapters.mlflow.source import MlflowSource, Ways
from evalstopd.adapters.notify.channel import Channel
from evalstopd.adapters.notify.command import CommandChannel
from evalstopd.adapters.notify.log import LogNotifier
from evalstopd.adapters.notify.mail import MailChannel, MailServer, Security
from evalstopd.adapters.notify.outbox import Outbox
from evalstopd.adapters.notify.several import AlsoLogged, Several
from evalstopd.adapters.site_key import read_site_key
from evalstopd.adapters.slurm.clock import controllers_clock_s
from evalstopd.adapters.slurm.cluster import SlurmCluster
from evalstopd.adapters.slurm.partitions import partitions
from evalstopd.adapters.slurm.rights import is_operator
from evalstopd.adapters.slurm.run import ProcessRunner
from evalstopd.adapters.system import KillSwitchFile, SystemClock, boottime_s
from evalstopd.checks import Probe, probe
from evalstopd.core.binding import Trust
from evalstopd.core.estimates import History, PastLife
from evalstopd.core.metric_choice import site_mode
from evalstopd.core.model import Rung
from evalstopd.core.rules import ServerClass
from evalstopd.core.spec import parse_spec
from evalstopd.errors import EvalstopError, Fatal, Misconfigured, Rejected, Unavailable
from evalstopd.late import LateGate, LateTracker
from evalstopd.lead.fence import fenced
from evalstopd.lead.lead import Lead
from evalstopd.lead.seat import LeaseSeat, OwnSeat, Seat
from evalstopd.loop import Loop, Stance, TickReport
from evalstopd.loop.folds import Folds
from evalstopd.loop.ledger import Ledger
from evalstopd.loop.lengths import Lengths
from evalstopd.loop.telling import tell_admin
from evalstopd.meters.after import AfterPass
from evalstopd.meters.measured import measured
from evalstopd.meters.port import Meters
from evalstopd.ports import Changes, Notifier, PastJobs, Ports, Span
from evalstopd.priorities import Place, places, still_set, told_back, told_still_set
from evalstopd.pulse import NotePulse, PulseRow, alive, lease_of, missed, pulse_rows, told
from evalstopd.report.scorecard import (
    Limit,
    Limits,
    Scorecard,
    check_enforce,
    enforce_verdict,
    read_scorecard,
)
from evalstopd.sense import SPARE_S, told_take_over
from evalstopd.service import Service
from evalstopd.settings import Settings, load_settings, make_preempt, make_priorities, make_rules
from evalstopd.skew import agreeing
from evalstopd.slot import Slot, take_slot
from evalstopd.store.engine import parse
from evalstopd.store.lock import lock_alone
from evalstopd.store.migrate import check, check_whole, current
from evalstopd.store.sql import SqlStore
from evalstopd.store.tracker import TrackerDatabase
from evalstopd.undo import Caller, Target, Undone, parse_target, undo
from evalstopd.upkeep.habits import DAY_S, Habits
from evalstopd.upkeep.hourly import Hourly
from evalstopd.written import written

# What one reading of accounting may print: more is asked for in smaller pieces.
_HISTORY_CAP = 16 * 2**20
_PATIENT_S = 60.0
_KEEPER_LEAST_WAIT_S = 1.0
NEED_LENGTHS = ("sjf-est", "srtf-est")


def make_service(settings: Settings, load: Callable[[], Settings], stopping: threading.Event) -> Service:
    """Return what the daemon runs. Raises as `make_loop` and `make_seat` do."""
    check(settings.store.url)
    seat, store, meters = make_seat(settings), make_store(settings), make_meters(settings)
    folds = Folds()
    habits = Habits(make_past_jobs(settings), store, SystemClock(), lambda: estimate_days(service.settings))

    def make(now: Settings) -> Loop:
        made = replace(make_loop(now, stopping, store=store, history=habits.history), folds=folds)
        loop = seated(made, seat, now)
        return loop if meters is None else replace(loop, ports=measured(loop.ports, meters, boottime_s))

    service = Service(load, make, settings, seat, boottime_s)
    note_pulses(service, store)
    service.after.append(habits)
    service.after.append(Hourly(store, lambda: service.settings, lambda: service.loop))
    if meters is not None:
        service.after.append(AfterPass(meters, store, SystemClock().now_s))
    return service


def note_pulses(service: Service, store: SqlStore) -> None:
    """Let the service note its signs of life, under a name that no other daemon on the store has."""
    slot, now_s = _slot(service.settings, service.seat), SystemClock().now_s
    seat = service.seat
    pulse = NotePulse(
        store, slot.name, os.getpid(), __version__, now_s, lambda: service.settings, seat.holder, lambda: seat.lost
    )
    service.after.append(pulse)
    service.ending += [pulse.end, slot.release]


def _slot(settings: Settings, seat: Seat) -> Slot:
    """Return the daemon's name among those on its store, of which SQLite's has no other on any host."""
    name = f"{settings.store.lease}@{socket.gethostname()}"
    # Not the whole address: daemons may reach one database by several.
    database = parse(settings.store.url).database or ""
    return take_slot(database, name) if isinstance(seat, LeaseSeat) else Slot(name, lambda: None)


def make_meters(settings: Settings) -> Meters | None:
    """Return the meters, served already, if the site wants them. Raises Misconfigured without the extra for them."""
    if not settings.metrics.port:
        return None
    _require_prometheus()
    from evalstopd.meters.prometheus import PrometheusMeters  # noqa: PLC0415  an extra that few sites need

    meters = PrometheusMeters(SystemClock().now_s)
    meters.serve(settings.metrics.host, settings.metrics.port)
    return meters


def _require_prometheus() -> None:
    try:
        import_module("prometheus_client")
    except ModuleNotFoundError as error:
        raise Misconfigured("metrics.port: this needs prometheus-client: pip install 'evalstopd[metrics]'") from error


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
    _admit(settings, store, notifier, dry_run=dry_run)
    rules = replace(make_rules(settings), trust=make_trust(settings))
    ports = Ports(
        clock=SystemClock(),
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
        models=RunModels(Http(_server(settings))),
    )
    stance = Stance(rules, settings.digest, __version__, make_priorities(settings), make_preempt(settings))
    known = Lengths(history or _remembered(store), ports.clock)
    return Loop(ports, stance) if estimate_days(settings) is None else Loop(ports, stance, known, known.of)


def _remembered(store: SqlStore) -> Callable[[str], History]:
    return lambda cluster: store.history(cluster) or History()


def make_scorecard(settings: Settings, store: SqlStore, since_s: float = 0.0) -> Scorecard:
    """Return what the store tells of the site's rule, and of others that jobs were judged by."""
    asked = settings.scorecard
    limits = Limits(
        warn=Limit(asked.warn_min_jobs, asked.warn_min_days, asked.warn_max_wronged),
        enforce=Limit(asked.enforce_min_jobs, asked.enforce_min_days, asked.enforce_max_wronged),
        min_evals=asked.min_evals,
    )
    return read_scorecard(store, store, make_rules(settings).rule, limits, since_s)


def _admit(settings: Settings, store: SqlStore, notifier: Notifier, *, dry_run: bool) -> None:
    """Raise Misconfigured where the site may not enforce; note what an admin put in writing for it, and tell it."""
    if settings.rules.rung is not Rung.ENFORCE:
        return
    now_s = SystemClock().now_s()
    noted = written(settings, make_scorecard(settings, store), store, now_s)
    if noted and not dry_run:
        store.record(Changes(remarks=tuple(noted)))
        tell_admin(store, notifier, noted, now_s)


def make_seat(settings: Settings) -> Seat:
    """Return the seat of the one daemon that works on the store. Raises Unavailable where SQLite's is taken."""
    lock = lock_alone(settings.store.url)
    if lock is not None:
        return OwnSeat(lock.release, lambda: lock.replaced)
    holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
    return LeaseSeat(Lead(make_store(settings), settings.store.lease, holder, settings.store.lease_s, boottime_s))


def seated(loop: Loop, seat: Seat, settings: Settings) -> Loop:
    """Return the loop as one that writes and acts only while its process has the seat."""
    if not isinstance(seat, LeaseSeat):
        return loop
    return replace(loop, ports=fenced(loop.ports, seat.lead, settings.slurm.time_limit_s + SPARE_S))


def tick_alone(loop: Loop, settings: Settings) -> TickReport:
    """Make one pass, unless a daemon works on the store: that raises Unavailable."""
    try:
        seat = make_seat(settings)
    except EvalstopError:
        # What was told at the start may wait to be sent.
        loop.close()
        raise
    loop = seated(loop, seat, settings)
    seat.beat()
    try:
        if not seat.ours:
            raise Unavailable(f"no pass is made: this process {seat.said}")
        return loop.tick()
    finally:
        loop.close()
        seat.leave()


_SWITCH_OFF = "where a daemon runs, switch its policy off instead (priorities.policy), and reload it"


def show_priorities(settings: Settings) -> tuple[Place, ...]:
    """Return how the waiting jobs stand and are wanted; one question to Slurm, and nothing is changed."""
    return places(_ordering_loop(settings).ordering)


def restore_priorities(settings: Settings) -> str:
    """Take back what was changed of waiting jobs. Raises Unavailable while a daemon works on the store."""
    try:
        seat = make_seat(settings)
    except Unavailable as error:
        raise Unavailable(f"nothing is taken back: {error}; {_SWITCH_OFF}") from None
    loop = seated(_ordering_loop(settings), seat, settings)
    seat.beat()
    try:
        if not seat.ours:
            raise Unavailable(f"nothing is taken back: this process {seat.said}; {_SWITCH_OFF}")
        return told_back(loop.ordering)
    finally:
        seat.leave()


def _ordering_loop(settings: Settings) -> Loop:
    """Return a loop whose order of waiting jobs alone is used: it asks for no tracker unless the policy does."""
    check_whole(settings.store.url, indexes=False)
    store, tracker, gate = (
        make_store(settings),
        LateTracker(partial(make_metrics, settings)),
        LateGate(partial(make_gate, settings)),
    )
    ports = Ports(
        clock=SystemClock(),
        cluster=make_cluster(settings),
        metrics=tracker,
        runs=tracker,
        keeper=make_keeper(settings),
        store=store,
        notifier=LogNotifier(),
        kill_switch=make_kill_switch(settings),
        finder=tracker,
        gate=gate,
    )
    stance = Stance(make_rules(settings), priorities=make_priorities(settings))
    known = Lengths(_remembered(store), ports.clock)
    return Loop(ports, stance) if estimate_days(settings) is None else Loop(ports, stance, known, known.of)


def make_clock() -> SystemClock:
    """Return the clock."""
    return SystemClock()


def make_cluster(settings: Settings) -> SlurmCluster:
    """Return the scheduler's adapter."""
    return SlurmCluster(run=_runner(settings))


def make_past_jobs(settings: Settings, time_limit_s: float = 0.0) -> PastJobs:
    """Return accounting, bounded in time and in what one answer may hold."""
    slurm = settings.slurm
    limit_s = max(slurm.time_limit_s, time_limit_s)
    return SlurmCluster(ProcessRunner(slurm.conf or os.environ.get("SLURM_CONF"), limit_s, slurm.path, _HISTORY_CAP))


def estimate_days(settings: Settings) -> float | None:
    """Return how far back accounting is read for estimates; None where nothing needs them."""
    policies = {each.partition(":")[0] for each in (settings.priorities.policy, settings.preempt.policy)}
    needed = not policies.isdisjoint(NEED_LENGTHS)
    return settings.estimates.days if needed or settings.estimates.always else None


def read_past(settings: Settings, since_s: float, now_s: float) -> Iterator[PastLife]:
    """Yield the lives that ended since a moment, a day a call, for who can wait. Raises Unavailable."""
    past, begin_s = make_past_jobs(settings, _PATIENT_S), float(int(since_s))
    while begin_s < now_s:
        yield from past.ended(Span(begin_s, begin_s + DAY_S))
        begin_s += DAY_S


def _runner(settings: Settings) -> ProcessRunner:
    slurm = settings.slurm
    return ProcessRunner(slurm.conf or os.environ.get("SLURM_CONF"), slurm.time_limit_s, slurm.path)


def make_plain_cluster() -> SlurmCluster:
    """Return the scheduler's adapter without any settings, for an owner's own shell."""
    return SlurmCluster(run=ProcessRunner(os.environ.get("SLURM_CONF"), path=os.environ.get("PATH", os.defpath)))


def undo_stop(name: str, config: Path | None) -> Undone:
    """Undo a stop with the caller's own rights; who can read neither settings nor store does it by Slurm alone.

    Raises as `undo` does, and what is wrong with settings or store where a settings file was named.
    """
    target, uid, ledger, people = parse_target(name), os.getuid(), None, None
    run = ProcessRunner(os.environ.get("SLURM_CONF"), path=os.environ.get("PATH", os.defpath))
    try:
        settings = load_settings(config)
        store = make_checked_store(settings)
        target, ledger = _found(target, store), Ledger(store, SystemClock())
        people = make_notifier(settings) if _channels(settings) else None  # our log is the caller's terminal
    except (Misconfigured, Unavailable, Fatal) as error:
        if config is not None:
            raise
        target = replace(target, unread=str(error))
    return undo(SlurmCluster(run), target, Caller(uid, lambda: is_operator(run, uid, _name_of(uid))), ledger, people)


def _found(target: Target, store: SqlStore) -> Target:
    """Return the target with what the store has of its newest stop."""
    keys = [watch.key for watch in store.find(target.job_id)]
    if target.named is not None:
        keys = [key for key in keys if (key.cluster, key.uid, key.submitted_s) == target.named]
    intents = store.intents_of(keys[:1])
    if not intents:
        raise Rejected(f"evalstopd has decided no stop of job {target.job_id}")
    return replace(target, intent=intents[0])


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""


def make_metrics(settings: Settings) -> MlflowSource:
    """Return the tracker's adapter. Raises Misconfigured without a good address."""
    return MlflowSource(Http(_server(settings)), SystemClock(), ways=_ways(settings))


def _ways(settings: Settings) -> Ways:
    """Return the ways of reading, with MLflow's own database where its address is known."""
    address = settings.mlflow.database.get_secret_value()
    return Ways(database=DatabaseRoute(TrackerDatabase(address, settings.mlflow.time_limit_s)) if address else None)


def make_registry(settings: Settings) -> Registrar | None:
    """Return what makes model versions of kept checkpoints, if the site wants them."""
    asked = settings.promotion
    if not asked.registry:
        return None
    http = Http(replace(_server(settings), timeout_s=asked.time_limit_s))
    copier = Copier(http, asked.copy_mb * 2**20) if asked.copy_mb else None
    return Registrar(Registration(http, asked.model, copier).register)


def make_gate(settings: Settings) -> ServerGate:
    """Return what tells whether the tracker lets strangers in."""
    server = _server(settings)
    return ServerGate(Http(server), server)


def make_trust(settings: Settings) -> Trust:
    """Return which proofs of a binding count. Raises Misconfigured for a site key that is none."""
    binding = settings.binding
    credentials = os.environ.get("CREDENTIALS_DIRECTORY", "")
    key = read_site_key(Path(binding.mac_key), credentials) if binding.mac_key else None
    return Trust(key, tags=bool(binding.tags))


def _server(settings: Settings) -> Server:
    return _tracker(settings).server


def _tracker(settings: Settings) -> credentials.Found:
    """Return the tracking server by the settings, MLflow's own variables and its file, in this order."""
    mlflow = settings.mlflow
    server = Server(
        uri=mlflow.tracking_uri,
        timeout_s=mlflow.time_limit_s,
        username=mlflow.username,
        password=mlflow.password.get_secret_value(),
        token=mlflow.token.get_secret_value(),
        workspace=mlflow.workspace,
        proxy=mlflow.proxy.get_secret_value(),
        ca_file=mlflow.ca_file,
        client_cert=mlflow.client_cert,
    )
    return credentials.completed(server, os.environ)


def make_keeper(settings: Settings) -> KeeperClient:
    """Return the client of the privileged helper; a pass waits briefly for an answer.

    For a tenth of a tick: as many slow owners as the keeper serves at a time fit into the half tick of pins.
    """
    wait_s = max(_KEEPER_LEAST_WAIT_S, settings.daemon.tick_s / 10)
    return KeeperClient(settings.keeper.socket, settings.keeper.time_limit_s, wait_s)


def make_notifier(settings: Settings) -> Notifier:
    """Return what tells owners, by the kinds that the site chose."""
    channels = _channels(settings)
    if not channels:
        return LogNotifier()
    outbox = Outbox(Several(channels), settings.notify.most_waiting)
    return AlsoLogged(LogNotifier(), outbox) if "log" in settings.notify.kinds else outbox


def _channels(settings: Settings) -> tuple[Channel, ...]:
    """Return the chosen ways that may be slow or broken: all but the log."""
    asked = settings.notify
    server = MailServer(
        host=asked.smtp_host,
        port=asked.smtp_port,
        security=Security(asked.smtp_security),
        user=asked.smtp_user,
        password_file=asked.smtp_password_file,
        ca_file=asked.smtp_ca_file,
        limit_s=asked.smtp_time_limit_s,
    )
    known: dict[str, Channel] = {
        "command": CommandChannel(asked.command, asked.command_time_limit_s),
        "smtp": MailChannel(server, asked.smtp_from, asked.smtp_to, asked.smtp_admin),
    }
    return tuple(known[kind] for kind in dict.fromkeys(asked.kinds) if kind in known)


def make_store(settings: Settings) -> SqlStore:
    """Return the store."""
    return SqlStore(settings.store.url)


def make_kill_switch(settings: Settings) -> KillSwitchFile:
    """Return the kill switch."""
    return KillSwitchFile(settings.daemon.kill_switch)


def make_checked_store(settings: Settings) -> SqlStore:
    """Return the store after a look at its version. Raises Fatal where it is another one."""
    check(settings.store.url)
    return make_store(settings)


def _api(settings: Settings) -> str:
    workspace, said = _server(settings).workspace, make_metrics(settings).ping()
    return f"{said}; in the workspace {workspace[:60]!a}" if workspace else said


def _door(settings: Settings) -> str:
    declared = settings.mlflow.server
    if not make_gate(settings).admits_strangers():
        return f"it refuses who does not log in; declared {declared}"
    if declared is ServerClass.AUTHENTICATED:
        raise Unavailable("declared authenticated, but it answers without a login: it is taken for open")
    return "open: it answers without a login, so that anyone could have written a run's points"


def _proofs(settings: Settings) -> str:
    trust = make_trust(settings)
    ways = ["the job's comment", *(["seals"] if trust.key else []), *(["tags"] if trust.tags else [])]
    return f"a run is proven to be a job's by: {', '.join(ways)}"


def _slurm_clock(settings: Settings) -> str:
    return agreeing("slurmctld", lambda: controllers_clock_s(_runner(settings)), SystemClock().now_s)


def _tracker_clock(settings: Settings) -> str:
    return agreeing("MLflow", make_metrics(settings).clock_s, SystemClock().now_s)


def _daemons(settings: Settings) -> str:
    """Tell of the daemons on the store; none that is well is bad news only where one has worked, or works."""
    rows, rival = daemon_rows(settings), _rival(settings)
    said = "; ".join([*rival, *told(rows)])
    if rival or (rows and (missed(rows) or not alive(rows))):
        raise Unavailable(said)
    return said


def _rival(settings: Settings) -> list[str]:
    """Say that a lease of another name leads the cluster; nothing where Slurm does not answer."""
    try:
        cluster = make_cluster(settings).queue().cluster
    except EvalstopError:
        return []
    names = make_checked_store(settings).leading(cluster)
    return [
        f"the lease {name!a} leads the cluster {cluster!a}, not {settings.store.lease!a}, which these settings name: "
        "give all its daemons one name in store.lease"
        for name in names
        if name != settings.store.lease
    ]


def daemon_rows(settings: Settings) -> tuple[PulseRow, ...]:
    """Return the daemons that worked on the store within a week, and which of them leads."""
    store = make_checked_store(settings)
    pulses = store.pulses()
    leases = {name: lease for name in set(map(lease_of, pulses)) if (lease := store.leader(name)) is not None}
    return pulse_rows(pulses, SystemClock().now_s(), settings.daemon.tick_s, leases)


def _priorities(settings: Settings) -> str:
    asked = make_priorities(settings)
    if asked is None:
        return told_still_set(_still_set(settings))
    _as_operator(settings, "change the order of waiting jobs")
    return f"waiting jobs are ordered by {asked.policy.spec}, by {asked.lever.value.capitalize()}"


def _still_set(settings: Settings) -> int:
    """Return how many waiting jobs have what was set; 0 where that cannot be told, which other lines say."""
    try:
        queue = make_cluster(settings).queue()
        return len(still_set(make_checked_store(settings).book(queue.cluster).shifts, queue.jobs))
    except EvalstopError:
        return 0


def _as_operator(settings: Settings, to_do: str) -> None:
    """Raise Unavailable where Slurm does not answer, or does not let this account do it."""
    make_cluster(settings).queue()
    if not is_operator(_runner(settings), os.getuid(), _name_of(os.getuid())):
        raise Unavailable(f"Slurm does not call this account Operator: it may not {to_do}")


def _partitions(settings: Settings) -> str:
    """Name the governed partitions. Raises Unavailable where Slurm has no such one."""
    named = dict.fromkeys(settings.rules.partitions, "rules.partitions")
    named |= {each: "priorities.partitions" for each in settings.priorities.partitions if each not in named}
    if not named:
        return "all partitions are governed"
    known = partitions(_runner(settings))
    if unknown := [f"{each} ({where})" for each, where in sorted(named.items()) if each not in known]:
        raise Unavailable(f"Slurm has no partition {', '.join(unknown)}")
    return f"governed: {', '.join(sorted(named))}"


def _queue(settings: Settings) -> str:
    queue = make_cluster(settings).queue()
    return f"cluster {queue.cluster} answers, {len(queue.jobs)} jobs in its queue"


def _schema(settings: Settings) -> str:
    check_whole(settings.store.url)
    return f"schema revision {current(settings.store.url)}, whole"


def _card(settings: Settings) -> str:
    card = make_scorecard(settings, make_checked_store(settings))
    if settings.rules.rung is Rung.ENFORCE:
        return check_enforce(card, settings.enforce.override)
    verdict = enforce_verdict(card)
    lacks = "; ".join(verdict.missing)
    return f"{card.site_rule} has {'passed for enforce' if verdict.met else f'not passed for enforce: {lacks}'}"


def _switch(settings: Settings) -> str:
    if make_kill_switch(settings).engaged():
        raise Unavailable(f"the kill switch is set ({settings.daemon.kill_switch}): nothing is acted on")
    return "not set"


def _telling(settings: Settings) -> str:
    channels = _channels(settings)
    if channels:
        return Several(channels).check()
    if settings.rules.rung < Rung.WARN:
        return "messages go to the daemon's log"
    raise Unavailable(
        f"owners are told nothing: on the {settings.rules.rung.word} rung messages go to the daemon's log alone, which "
        'they cannot read; add "smtp" or "command" to notify.kinds'
    )


def _way(settings: Settings) -> str:
    rules = make_rules(settings)
    said = rules.mode or site_mode(rules.metric, rules.modes)
    if not rules.metric or said is not None:
        return f"{said.value} is better" if rules.metric and said else "the site judges by no metric of its own"
    raise Unavailable(
        f"nobody says which way is better for {rules.metric!a}: unless a job's owner or trainer does, it is only "
        'observed; add mode = "max" (or "min") to rules'
    )


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


def _database(settings: Settings) -> str:
    address = settings.mlflow.database.get_secret_value()
    if not address:
        return "not set: evals are read from the server"
    return TrackerDatabase(address, settings.mlflow.time_limit_s).look()


def _served(settings: Settings) -> str:
    asked = settings.metrics
    if not asked.port:
        return "no figures are served for Prometheus"
    _require_prometheus()
    return f"figures for Prometheus at http://{asked.host}:{asked.port}/metrics"


def _promotion(settings: Settings) -> str:
    asked = settings.promotion
    if not asked.registry:
        return "no model versions are made"
    account = _name_of(os.getuid()) or f"uid {os.getuid()}"
    copied = f"; only those of jobs of {account} can be copied in (promotion.copy_mb)" if asked.copy_mb else ""
    return f"kept checkpoints become versions of {asked.model}{copied}"


def _needing(
    need: Callable[[Settings], object], words: str, ask: Callable[[Settings], str]
) -> Callable[[Settings], str]:
    """Return a question that says shortly what it needs, where another one tells at length what is wrong with that."""

    def asked(settings: Settings) -> str:
        try:
            need(settings)
        except EvalstopError:
            raise Unavailable(f"needs {words}") from None
        return ask(settings)

    return asked


def make_checks(settings: Settings, source: str = "") -> tuple[Probe, ...]:
    """Return the questions of `evalstopd check`; `source` says where the settings come from."""
    tracker = partial(_needing, _tracker, "the tracker's address and login: see mlflow")
    store = partial(_needing, _schema, "the store")
    questions: tuple[tuple[str, Callable[[Settings], str]], ...] = (
        ("settings", lambda _: source),
        ("slurm", _queue),
        ("mlflow", _api),
        ("mlflow login", tracker(lambda given: credentials.check(_tracker(given)))),
        ("mlflow server", tracker(_door)),
        ("mlflow database", _database),
        ("binding", _proofs),
        ("keeper", lambda given: make_keeper(given).ping()),
        ("store", _schema),
        ("daemon", store(_daemons)),
        ("take-over", told_take_over),
        ("clock of slurmctld", _slurm_clock),
        ("clock of mlflow", tracker(_tracker_clock)),
        ("scorecard", store(_card)),
        ("kill switch", _switch),
        ("partitions", _partitions),
        ("priorities", _priorities),
        ("preemption", preemption),
        ("direction", _way),
        ("notify", _telling),
        ("promotion", _promotion),
        ("metrics", _served),
    )
    return tuple(probe(what, partial(ask, settings)) for what, ask in questions)
