"""The emulated cluster whose training jobs really log and save, in step with the daemon's loop."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from evalstopd_sim.drive import Scheduler
from evalstopd_sim.emulated.cluster import EmulatedCluster, User
from evalstopd_sim.emulated.simulation import Record, Simulation
from evalstopd_sim.options import ClusterOptions
from evalstopd_sim.truth import TrueJob
from mini_rlhf.recorded import find

from demo import scene
from evalstopd.core.policies import policy

from .parts import Owner, TrainerProcess

NAME = "emulated"
NODES = 8
EVAL_S = 600.0  # of virtual time, from one evaluation to the next
STEP_S = 300.0  # of virtual time, from one pass of the loop to the next
LIMIT_S = 12 * 3600  # the time limit of each job; no training job reaches it
OVER_S = 1e6  # the jobs that wait run longer than the demo


def cluster_of(who: Owner, work_dir: str, begins_s: float) -> EmulatedCluster:
    """Return a full cluster: the scene's training jobs, and behind them a job for each stop that should come."""
    options = ClusterOptions(NODES * scene.GPUS, gpus_per_node=scene.GPUS)
    world = Simulation(_jobs(begins_s), Scheduler(policy("fifo")), options)
    user = User(who.uid, who.name)
    return EmulatedCluster(world, owner_of=lambda record: user, name=NAME, work_dir=work_dir, limit_s=LIMIT_S)


def _jobs(begins_s: float) -> Iterator[TrueJob]:
    # All are submitted at once: the ids, in order, say who comes first.
    for number, (kind, kl, seed, _) in enumerate(scene.cast()):
        count = len(find(kl, seed).evals)
        marks = tuple(EVAL_S * place for place in range(1, count + 1))
        yield TrueJob(f"{number:02d}-{kind}-{seed}", kind, begins_s, scene.GPUS, marks[-1], None, marks)
    for place in range(len(scene.HACKING_SEEDS)):
        yield TrueJob(f"next-{place}", "waits", begins_s, scene.GPUS, OVER_S, None)


@dataclass(slots=True)
class Stage:
    """Moves time, tells the trainer what is due, and puts each run into its job's comment, as a script would."""

    cluster: EmulatedCluster
    trainer: TrainerProcess
    logged: dict[str, int] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)

    def parts(self, who: Owner) -> list[scene.Part]:
        """Return the jobs in the form that the demos' table wants."""
        cast = {str(place): each for place, each in enumerate(scene.cast(), 1)}
        return [
            scene.Part(job_id, who.name, f"{kind}, kl {kl:g}, seed {seed}", trains=True)
            for job_id, (kind, kl, seed, _) in cast.items()
        ]

    def advance(self, to_s: float) -> None:
        """Let everything happen up to a moment of virtual time, evaluations and checkpoints included."""
        self.cluster.world.advance(to_s)
        records = [each for each in self.cluster.world.records.values() if each.job.truth.marks]
        for record in records:
            if record.state == "RUNNING" and record.job_id not in self.logged:
                self._start(record)
        self.trainer.do([order for record in records for order in self._due(record)])

    def _start(self, record: Record) -> None:
        _, kl, seed, _ = scene.cast()[record.raw_id - 1]
        order = {"do": "start", "job": record.job_id, "kl": kl, "seed": seed, "cluster": NAME}
        (run_id,) = self.trainer.do([order])
        self.cluster.set_comment(record.job_id, f"mlflow_run={run_id} evalstop=enforce evalstop_output=out")
        self.logged[record.job_id] = 0

    def _due(self, record: Record) -> Iterator[dict[str, Any]]:
        """Yield an order for each evaluation that the job's work has come to, and for its own end."""
        job = record.job
        come = sum(mark <= job.work_s(self.cluster.world.now_s()) for mark in job.truth.marks)
        for _ in range(self.logged.get(record.job_id, come), come):
            yield {"do": "eval", "job": record.job_id}
        self.logged[record.job_id] = come
        if record.state == "COMPLETED" and record.job_id not in self.finished:
            self.finished.add(record.job_id)
            yield {"do": "finish", "job": record.job_id}
