"""What is compared: a workload of the simulator on a clock on which an hour takes some seconds, and its prediction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evalstopd_sim.arms import make_rule
from evalstopd_sim.drive import Scheduler, drive
from evalstopd_sim.options import ClusterOptions, HeadOfLine
from evalstopd_sim.presets import PRESETS, Preset
from evalstopd_sim.rule import NO_RULE
from evalstopd_sim.score import Scores, mean, scores, share
from evalstopd_sim.sight import first_view
from evalstopd_sim.simjob import End, SimJob
from evalstopd_sim.tally import Tally, usage
from evalstopd_sim.through import detections, through_daemon
from evalstopd_sim.truth import TrueJob
from evalstopd_sim.workload import Workload

from evalstopd.core.policies import policy

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Plan:
    """The workload and the cluster. An hour of the workload takes `hour_s` real seconds; the daemon's tick is real."""

    jobs: int = 64
    nodes: int = 8
    gpus_per_node: int = 8
    hour_s: float = 2.5
    load: float = 1.0
    preset: str = "paper"
    rule: str = "k-declines:k=2"
    tick_s: float = 0.5

    @property
    def options(self) -> ClusterOptions:
        """Return the emulated cluster: jobs on single nodes, nobody passes a blocked job, nobody is preempted."""
        gpus = self.nodes * self.gpus_per_node
        return ClusterOptions(gpus, HeadOfLine.STRICT, 0.0, gpus_per_node=self.gpus_per_node)

    def deal(self, seed: int) -> tuple[TrueJob, ...]:
        """Return the jobs of a seed, their times in real seconds."""
        dealt = Workload(self._fitting(), self.options.gpus, seed).jobs(self.jobs)
        return tuple(_at_scale(job, self.hour_s / HOUR_S) for job in dealt)

    def _fitting(self) -> Preset:
        """Return the preset with the sizes that fit on a node, at this plan's load."""
        preset = PRESETS[self.preset]
        kinds = [replace(k, gpus=tuple(n for n in k.gpus if n <= self.gpus_per_node)) for k in preset.kinds]
        return replace(preset, kinds=tuple(kind for kind in kinds if kind.gpus), load=self.load)


def _at_scale(job: TrueJob, scale: float) -> TrueJob:
    return job._replace(
        submit_s=job.submit_s * scale,
        duration_s=job.duration_s * scale,
        estimate_s=None if job.estimate_s is None else job.estimate_s * scale,
        marks=tuple(mark * scale for mark in job.marks),
        peak_s=job.peak_s * scale,
        cancel_s=job.cancel_s * scale,
    )


@dataclass(frozen=True, slots=True)
class Run:
    """One arm's scores, and the seconds from the eval that a stop was decided on to the job's end, on average."""

    scores: Scores
    delay_s: float | None = None


def predicted(plan: Plan, jobs: tuple[TrueJob, ...]) -> dict[str, Run]:
    """Return what the simulator says: without a rule, with it at each eval, and through the daemon at its tick."""
    base, rule = policy("fifo"), make_rule(plan.rule)
    world, store = through_daemon(jobs, base, rule, plan.options, plan.tick_s)
    found = detections(world, store, rule)
    return {
        "simulated off": Run(scores(drive(jobs, Scheduler(base, NO_RULE), plan.options))),
        "simulated on": Run(scores(drive(jobs, Scheduler(base, rule), plan.options)), 0.0),
        "through daemon on": Run(scores(world.tally), share(found.delay_s, found.both)),
    }


@dataclass(frozen=True, slots=True)
class Ran:
    """How a job went on the real cluster, by its accounting: seconds from submission to end and from start to end."""

    job_id: str
    job: TrueJob
    took_s: float
    ran_s: float
    stopped: bool


def measured(plan: Plan, ran: Sequence[Ran], steps: Mapping[str, int]) -> Run:
    """Return the scores of a real run, reckoned by what reckons the simulated ones.

    `steps` are the evals that the daemon decided on, by job id.

    All the time that a job held its GPUs counts as its work: how long Slurm took to start and end it is in it.
    """
    tally = Tally(plan.options.gpus)
    for each in sorted(ran, key=lambda one: one.job.submit_s):
        job = SimJob(each.job, tally.arrived(each.job), each.job.gpus, first_view(each.job))
        job.done_s, job.end = each.ran_s, End.STOPPED if each.stopped else End.FINISHED
        tally.ended(job, each.job.submit_s + each.took_s, usage(job))
    delays = [one.ran_s - one.job.marks[steps[one.job_id] - 1] for one in ran if one.stopped and one.job_id in steps]
    return Run(scores(tally), mean(delays))
