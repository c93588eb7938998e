"""The drive against the plainest simulator: at every event rank everybody by core and fill from the top."""

import random
from dataclasses import dataclass
from math import inf

import pytest
from evalstopd_sim.drive import Scheduler, drive
from evalstopd_sim.options import ClusterOptions
from evalstopd_sim.sight import first_view
from evalstopd_sim.truth import TrueJob
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.model import JobView
from evalstopd.core.policies import Policy, policy, rank

from .worlds import job

GPUS = 8


@dataclass
class Plain:
    """A job of the plain simulator."""

    truth: TrueJob
    view: JobView
    done_s: float = 0.0
    begun_s: float = 0.0
    yields: int = 0

    def seen(self, now_s: float) -> JobView:
        worked_s = max(0.0, now_s - self.begun_s) if self.view.running else 0.0
        return self.view._replace(attained_s=self.done_s + worked_s)

    def end_s(self) -> float:
        return self.begun_s + self.truth.duration_s - self.done_s if self.view.running else inf

    def turn_s(self, chosen: Policy, now_s: float) -> float:
        """Return when the job's key may jump: for policies in queues only."""
        if not self.view.running or chosen.spec != "las":
            return inf
        if now_s < self.begun_s:
            return self.begun_s
        return now_s + chosen.trend(self.seen(now_s)).holds_s


def plain_ends(jobs: list[TrueJob], chosen: Policy, overhead_s: float) -> dict[str, float]:
    """Return when each job ends, ranking everybody at every arrival, end and jump."""
    coming, here, ends = list(jobs), {}, {}
    now_s = 0.0
    while coming or here:
        arrival_s = coming[0].submit_s if coming else inf
        turns_s = min((p.turn_s(chosen, now_s) for p in here.values()), default=inf)
        now_s = min(arrival_s, turns_s, min((p.end_s() for p in here.values()), default=inf))
        for name in [name for name, p in here.items() if p.end_s() <= now_s]:
            ends[name] = now_s
            del here[name]
        while coming and coming[0].submit_s == now_s:
            truth = coming.pop(0)
            here[truth.job_id] = Plain(truth, first_view(truth))
        _fill(here, chosen, now_s, overhead_s)
    return ends


def _fill(here: dict[str, Plain], chosen: Policy, now_s: float, overhead_s: float) -> None:
    free = GPUS
    running = {name for name, p in here.items() if p.view.running}
    ranked = rank(chosen, [p.seen(now_s) for p in here.values()], now_s)
    if not chosen.preemptive:
        ranked = sorted(ranked, key=lambda view: not view.running)
    for view in ranked:
        plain = here[view.job_id]
        if view.gpus <= free:
            free -= view.gpus
            if view.job_id not in running:
                plain.begun_s = now_s + (overhead_s if plain.yields else 0.0)
                plain.view = plain.view._replace(running=True)
        elif view.job_id in running:
            plain.done_s = view.attained_s
            plain.yields += 1
            plain.view = plain.view._replace(running=False)


workloads = st.lists(
    st.tuples(st.integers(0, 400), st.integers(1, 8), st.integers(10, 900), st.sampled_from([0.5, 1.0, 2.0])),
    min_size=1,
    max_size=14,
)
Shape = tuple[float, int, float, float]


def compare(spec: str, rows: list[Shape], overhead_s: float) -> None:
    jobs = [
        job(f"{place:02d}", float(submit), gpus, float(length), estimate_s=length * error)
        for place, (submit, gpus, length, error) in enumerate(sorted(rows))
    ]

    tally = drive(jobs, Scheduler(policy(spec)), ClusterOptions(GPUS, preemption_overhead_s=overhead_s))

    ends = {each.job_id: each.submit_s + jct for each, jct in zip(jobs, tally.jct_s, strict=True)}
    assert ends == pytest.approx(plain_ends(jobs, policy(spec), overhead_s), abs=1e-3)


@pytest.mark.parametrize("spec", ["fifo", "sjf-est", "srtf-est"])
@given(rows=workloads, overhead_s=st.sampled_from([0.0, 30.0]))
def test_every_job_ends_when_the_plain_simulator_ends_it(spec: str, rows: list[Shape], overhead_s: float) -> None:
    compare(spec, rows, overhead_s)


@pytest.mark.parametrize("seed", range(200))
def test_jobs_under_las_end_when_the_plain_simulator_ends_them(seed: int) -> None:
    """Times without ties: in a queue the order of events of one instant decides, and 7,200 / 8 is a whole number."""
    draws = random.Random(seed)
    count = draws.randint(1, 14)
    rows = [(draws.uniform(0, 400), draws.randint(1, 8), draws.uniform(10, 2000), 1.0) for _ in range(count)]

    compare("las", rows, draws.choice([0.0, 30.0]))
