"""The simulator and the live cluster rank the same jobs alike: one source, asked from both ends."""

import pytest
from evalstopd_sim.drive import Scheduler
from evalstopd_sim.emulated.cluster import EmulatedCluster
from evalstopd_sim.emulated.simulation import Simulation
from evalstopd_sim.options import ClusterOptions
from evalstopd_sim.truth import TrueJob
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.lineup import Known, PriorityRules, limits, line_up, waiting_of
from evalstopd.core.model import Phase
from evalstopd.core.policies import POLICIES, policy
from evalstopd.core.rules import Rules
from evalstopd.ports import EndingQuery

GPUS = 8
jobs = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 8), st.integers(1, 100)), min_size=1, max_size=15)


def busy_cluster(spec: str, drawn: list[tuple[int, int, int]]) -> tuple[Simulation, EmulatedCluster]:
    """A cluster that one endless job fills, and the others behind it; ids are as long as each other."""
    made = [TrueJob("00", "rlhf", 0.0, GPUS, 1e9, 1e-3)]
    for number, (submit_s, gpus, estimate_s) in enumerate(sorted(drawn), 1):
        made.append(TrueJob(f"{number:02d}", "rlhf", 1.0 + submit_s, gpus, 500.0, 1000.0 + estimate_s))
    world = Simulation(made, Scheduler(policy(spec)), ClusterOptions(GPUS, preemption_overhead_s=0.0))
    world.advance(100.0)
    return world, EmulatedCluster(world)


@pytest.mark.parametrize("spec", sorted(POLICIES))
@given(jobs)
def test_the_same_jobs_stand_in_the_same_order(spec: str, drawn: list[tuple[int, int, int]]) -> None:
    world, cluster = busy_cluster(spec, drawn)
    simulated = [entry[3].truth.job_id for entry in world._waiting.entries()]
    queue, now_s = cluster.queue().jobs, world.now_s()
    asked = PriorityRules(policy(spec), most=1000)
    waiting = waiting_of(queue, (), Rules(), asked, now_s)
    again = [EndingQuery(each.job.job_id, each.job.life) for each in waiting]
    attained = {query.job_id: ran_s for query, ran_s in cluster.served(again).items()}
    known = Known(limits(waiting), attained, {})
    ranked = [each.job.name for line in line_up(waiting, queue, known, asked, now_s) for each in line.wanted]

    assert len([job for job in queue if job.phase is Phase.PENDING]) == len(simulated)
    assert ranked == simulated
