"""The drive through the daemon: its whole loop and store against the emulated cluster, on the virtual clock."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Protocol

from evalstopd.core.caps import UNLIMITED
from evalstopd.core.curve import curve
from evalstopd.core.detectors import Stop
from evalstopd.core.model import Mode, Rung
from evalstopd.core.plan import verdicts
from evalstopd.core.policies import Policy
from evalstopd.core.rules import Rules, ServerClass
from evalstopd.core.watch import PinState, Terms
from evalstopd.errors import Fatal, WrongUsage
from evalstopd.loop import Loop, Stance
from evalstopd.ports import Archive, Ports, Store
from evalstopd.store.memory import MemoryStore
from evalstopd_sim.drive import Scheduler
from evalstopd_sim.emulated.cluster import EmulatedCluster
from evalstopd_sim.emulated.others import EmulatedKeeper, EmulatedPeople, NoStrangers, NoSwitch
from evalstopd_sim.emulated.simulation import Record, Simulation
from evalstopd_sim.emulated.tracker import METRIC, EmulatedTracker, Runs
from evalstopd_sim.options import ClusterOptions
from evalstopd_sim.rule import Act, Rule, Wrapper
from evalstopd_sim.sight import first_view
from evalstopd_sim.simjob import Trigger
from evalstopd_sim.truth import TrueJob

# They need what a tracker's points do not tell: elapsed time against an estimate, the training loss.
_NOT_FROM_POINTS = ("elapsed-fraction", "loss-plateau")
# A due time that is a whole number of polls must not become one more by rounding.
_ROUNDING = 1e-9


class AnyStore(Store, Archive, Protocol):
    """What the daemon keeps, and what is asked of it afterwards."""


@dataclass(frozen=True, slots=True)
class Detections:
    """How the stops of the drive per eval fared with the daemon, over jobs that are over.

    `both`: the daemon stopped the job too. `ended`: the job had ended before a poll saw the eval. `let_go`: a
    poll saw the eval, and the daemon let the job go on, since a later eval seen with it took the verdict back or
    since the job was in another life by then. `elsewhere`: the daemon's first stop
    verdict lies at another eval than that of the drive per eval (none is expected). `delay_s` is the sum, over
    `both`, of the seconds from the eval to the job's end.
    """

    both: int
    ended: int
    let_go: int
    elsewhere: int
    delay_s: float


@dataclass(frozen=True, slots=True)
class Daemon:
    """A daemon over an emulated cluster; `poll` takes the world to the daemon's next pass that could do anything.

    With `every_pass` it makes those too that could not.
    """

    world: Simulation
    loop: Loop
    store: AnyStore
    poll_s: float
    cluster: str
    every_pass: bool = False
    polls: list[int] = field(default_factory=lambda: [-1])

    def poll(self) -> bool:
        """Make the next pass; False once nothing is left to happen or see."""
        place = self._next()
        if place is None:
            return False
        self.polls.append(place)
        self.world.advance(place * self.poll_s)
        report = self.loop.tick()
        if not report.good or report.troubles:
            raise Fatal(f"the daemon has trouble with an emulated cluster: {report.summary}")
        return True

    def _next(self) -> int | None:
        """Return the number of the next poll worth making.

        One between it and the last would find the same queue, no run due and nothing open: the loop keeps
        nothing between two passes, so leaving such a pass out changes nothing.
        """
        book = self.store.book(self.cluster)
        undone = any(not intent.closed for intent in book.intents)
        undone = undone or any(pin.state in (PinState.WANTED, PinState.OUTDATED) for pin in book.pins)
        if self.world.over and not undone and not book.watches:
            return None
        after = self.polls[-1] + 1
        live = self.world.live
        reads = [w.reads.due_s for w in book.watches if w.key.job_id in live and live[w.key.job_id].job.running]
        wake_s = min([self.world.next_s, *reads])
        return (
            after if self.every_pass or undone or wake_s == inf else max(after, ceil(wake_s / self.poll_s - _ROUNDING))
        )


def through_daemon(
    jobs: Iterable[TrueJob],
    policy: Policy,
    rule: Rule,
    options: ClusterOptions,
    poll_s: float,
    *,
    every_pass: bool = False,
) -> tuple[Simulation, MemoryStore]:
    """Run a workload to its end (or `until_s`) with the daemon polling in the enforce rung, without notice.

    Returns world and store as they are then. Raises WrongUsage for a rule that the daemon cannot run.
    """
    store = MemoryStore()
    world = Simulation(jobs, Scheduler(policy), options)
    daemon = watching(world, Runs(world), rule, poll_s, store, every_pass=every_pass)
    while world.now_s() <= options.until_s and daemon.poll():
        pass
    return world, store


def watching(
    world: Simulation, runs: Runs, rule: Rule, poll_s: float, store: AnyStore, *, every_pass: bool = False
) -> Daemon:
    """Return a daemon over a simulation and any store. Raises WrongUsage for a rule that it cannot run."""
    spec = daemon_rule(rule)
    cluster = EmulatedCluster(world, runs.comment_of, lambda record: _reason(store, record, world.now_s()))
    tracker = EmulatedTracker(runs.find)
    keeper, people, switch, door = EmulatedKeeper(), EmulatedPeople(), NoSwitch(), NoStrangers()
    ports = Ports(_Clock(world), cluster, tracker, tracker, keeper, store, people, switch, door, door)
    return Daemon(world, Loop(ports, Stance(_rules(spec, poll_s))), store, poll_s, cluster.name, every_pass)


def daemon_rule(rule: Rule) -> str:
    """Return the rule's text for the daemon. Raises WrongUsage where it could not run there."""
    if not isinstance(rule, Wrapper) or rule.act is not Act.STOP:
        raise WrongUsage(f"--through-daemon: the daemon has no rule {rule.label}")
    spec = rule.detector.spec
    if spec.partition(":")[0] in _NOT_FROM_POINTS:
        raise WrongUsage(f"--through-daemon: {rule.label} needs more than the evals that the daemon reads")
    return spec


def detections(world: Simulation, store: MemoryStore, rule: Rule) -> Detections:
    """Return how the stops of the drive per eval fared, job by job."""
    fates = [_fate(record, store, rule) for record in world.records.values() if record.job_id not in world.live]
    counts = {name: sum(name in fate for fate in fates) for name in ("both", "ended", "let_go", "elsewhere")}
    delay_s = sum(fate.get("both", 0.0) for fate in fates)
    return Detections(**counts, delay_s=delay_s)


def _fate(record: Record, store: MemoryStore, rule: Rule) -> dict[str, float]:
    """Return what became of one job, and, if both drives stopped it, how long after the eval."""
    truth = record.job.truth
    expected = rule.trigger(truth, first_view(truth))
    if expected is not None and expected.work_s > min(truth.duration_s, truth.cancel_s):
        expected = None
    step = None if expected is None or expected.eval_place is None else expected.eval_place + 1
    seen, first = _seen(record, store, rule)
    stopped = record.job.trigger is not None
    if first != step and (first is not None or (step is not None and seen >= step)):
        return {"elsewhere": 1.0}
    if expected is None or step is None:
        return {}
    if stopped:
        return {"both": record.job.done_s - expected.work_s}
    return {"ended": 1.0} if seen < step else {"let_go": 1.0}


def _seen(record: Record, store: MemoryStore, rule: Rule) -> tuple[int, int | None]:
    """Return the newest step that the daemon saw of a job while it ran, and the step of its first stop verdict."""
    watches = store.find(record.job_id)
    if not watches:
        return 0, None
    evals = curve(store.points([watches[0].key])[watches[0].key])
    in_time = [each.step for each in evals if each.arrived_s < record.ended_s]
    answers = verdicts(evals, Terms(Rung.ENFORCE, daemon_rule(rule), METRIC, Mode.MAX))
    first = next((e.step for e, answer in zip(evals, answers, strict=True) if isinstance(answer, Stop)), None)
    return max(in_time, default=0), first


def _reason(store: Archive, record: Record, now_s: float) -> Trigger | None:
    """Return the eval that the daemon stops a job for, from its own evidence."""
    intents = store.intents_of([watch.key for watch in store.find(record.job_id)])
    if not intents:
        return None
    evidence = intents[0].evidence
    return Trigger(record.job.work_s(now_s), evidence.trigger_step - 1, evidence.declines)


def _rules(spec: str, poll_s: float) -> Rules:
    return Rules(
        rung=Rung.ENFORCE,
        rule=spec,
        metric=METRIC,
        mode=Mode.MAX,
        server=ServerClass.AUTHENTICATED,
        notice_s=0.0,
        tick_s=poll_s,
        caps=UNLIMITED,
    )


@dataclass(frozen=True, slots=True)
class _Clock:
    """The simulation's clock, as the daemon's."""

    world: Simulation

    def now_s(self) -> float:
        """Return the virtual time in seconds since the simulation began."""
        return self.world.now_s()
