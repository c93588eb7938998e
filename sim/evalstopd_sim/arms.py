"""One seed's world run under several schedulers: every arm sees the very same jobs, so differences are paired."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evalstopd.core.detectors import detector
from evalstopd.core.policies import ELASTIC, POLICIES, elastic, policy
from evalstopd.core.spec import Spec, parse_spec
from evalstopd.errors import WrongUsage
from evalstopd_sim.deal import Curves, redeal
from evalstopd_sim.drive import Scheduler, drive
from evalstopd_sim.elastic import drive_elastic
from evalstopd_sim.options import ClusterOptions
from evalstopd_sim.oracle import PeakOracle, StopAtOracle
from evalstopd_sim.presets import Preset
from evalstopd_sim.prior import PutLast
from evalstopd_sim.rule import NO_RULE, Act, Rule, Wrapper
from evalstopd_sim.score import Scores, kept_mean_s, scores
from evalstopd_sim.tally import Tally
from evalstopd_sim.through import Detections, detections, through_daemon
from evalstopd_sim.traces.row import Trace
from evalstopd_sim.truth import TrueJob
from evalstopd_sim.workload import Workload

NONE = "none"
PUT_LAST = "put-last+"
# Larger worlds are dealt anew for each arm: the same jobs at some cost in time, and none in memory.
_KEPT_JOBS = 20_000


@dataclass(frozen=True, slots=True)
class Arm:
    """A base policy and the rule round it, both as text: `none`, a detector, `put-last+DETECTOR` or an oracle.

    With `poll_s` the rule is applied by the daemon's whole loop, polling the emulated cluster so many seconds
    apart; without it, at each eval.
    """

    base: str
    rule: str = NONE
    poll_s: float | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """A world without its seed: workload, number of jobs, cluster; a trace or real curves in place of drawn ones."""

    preset: Preset
    jobs: int
    cluster: ClusterOptions
    trace: Trace | None = None
    curves: Curves | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One arm on one seed.

    `base_kept_s`: the base's mean JCT over the jobs that this arm did not stop. `detections`: of arms run
    through the daemon.
    """

    scores: Scores
    base_kept_s: float | None
    detections: Detections | None = None


def run_seed(setting: Setting, seed: int, arms: tuple[Arm, ...], most_kept: int = _KEPT_JOBS) -> tuple[Sample, ...]:
    """Run all arms on one seed. An arm's base is the arm of the same policy without a rule, where there is one.

    Worlds of more than `most_kept` jobs are dealt anew for each arm.
    """
    if setting.jobs <= most_kept:
        kept = tuple(jobs_of(setting, seed))
        runs = {arm: _run(arm, kept, setting.cluster) for arm in dict.fromkeys(arms)}
    else:
        runs = {arm: _run(arm, jobs_of(setting, seed), setting.cluster) for arm in dict.fromkeys(arms)}
    return tuple(_sample(arm, runs) for arm in arms)


def jobs_of(setting: Setting, seed: int) -> Iterator[TrueJob]:
    """Yield the jobs of a setting for one seed."""
    workload = Workload(setting.preset, setting.cluster.gpus, seed)
    trace = setting.trace
    jobs = workload.jobs(setting.jobs) if trace is None else workload.dress(iter(trace.outlines))
    return jobs if setting.curves is None else redeal(jobs, setting.curves, seed)


def run_arm(arm: Arm, jobs: Iterable[TrueJob], cluster: ClusterOptions) -> Tally:
    """Run one arm. Raises WrongUsage for an unknown policy or rule, in the words of its registry."""
    return _run(arm, jobs, cluster).tally


@dataclass(frozen=True, slots=True)
class _Run:
    tally: Tally
    detections: Detections | None = None


def _run(arm: Arm, jobs: Iterable[TrueJob], cluster: ClusterOptions) -> _Run:
    try:
        rule = make_rule(arm.rule)
        if parse_spec(arm.base).name in ELASTIC:
            if arm.poll_s is not None:
                raise WrongUsage(f"--through-daemon: policy {arm.base} is elastic, and no live cluster runs it")
            return _Run(drive_elastic(jobs, elastic(arm.base), rule, cluster))
        base = policy(arm.base)
    except ValueError as error:
        raise WrongUsage(_told(str(error))) from None
    if arm.poll_s is not None:
        world, store = through_daemon(jobs, base, rule, cluster, arm.poll_s)
        return _Run(world.tally, detections(world, store, rule))
    wrapped = PutLast(base, after=1) if rule.act is Act.PUT_LAST else base
    return _Run(drive(jobs, Scheduler(wrapped, rule), cluster))


def make_rule(text: str) -> Rule:
    """Make a rule from text. Raises ValueError for an unknown one."""
    if text == NONE:
        return NO_RULE
    if text.startswith(PUT_LAST):
        return Wrapper(detector(text.removeprefix(PUT_LAST)), Act.PUT_LAST)
    spec = parse_spec(text)
    if spec.name == "stop-at-oracle":
        return _stop_at(spec)
    return PeakOracle() if spec.name == "peak-oracle" else Wrapper(detector(spec))


def _stop_at(spec: Spec) -> StopAtOracle:
    unknown = [name for name, _ in spec.params if name != "share"]
    if unknown:
        raise ValueError(f"rule {spec.name} has no parameter {unknown[0]!r}; it has: share")
    return StopAtOracle(dict(spec.params).get("share", 0.65))


def _sample(arm: Arm, runs: dict[Arm, _Run]) -> Sample:
    base, own = runs.get(Arm(arm.base)), runs[arm]
    kept_s = None if base is None else kept_mean_s(base.tally, own.tally)
    return Sample(scores(own.tally), kept_s, own.detections)


def _told(words: str) -> str:
    """Name the elastic policies too where a policy is not known."""
    if words.startswith("unknown policy"):
        return f"{words.partition('; known')[0]}; known: {', '.join(sorted([*POLICIES, *ELASTIC]))}"
    return words
