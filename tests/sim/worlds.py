"""Small worlds for the simulator's tests."""

from collections.abc import Iterable

from evalstopd_sim.drive import Scheduler, drive
from evalstopd_sim.journal import Decision
from evalstopd_sim.options import ClusterOptions
from evalstopd_sim.rule import NO_RULE, Rule
from evalstopd_sim.truth import TrueJob

from evalstopd.core.policies import Policy, policy


def job(name: str, submit_s: float = 0.0, gpus: int = 1, duration_s: float = 100.0, **more: object) -> TrueJob:
    made = TrueJob(name, "rlhf", submit_s, gpus, duration_s, duration_s)
    return made._replace(**more)


def decisions(
    jobs: Iterable[TrueJob],
    base: Policy | str = "fifo",
    rule: Rule = NO_RULE,
    options: ClusterOptions | None = None,
) -> list[Decision]:
    journal: list[Decision] = []
    made = policy(base) if isinstance(base, str) else base
    drive(jobs, Scheduler(made, rule, journal), options or ClusterOptions(8, preemption_overhead_s=0.0))
    return journal
