"""What a training job does round its training, real or replayed: log, save, rotate, keep pace, be found."""

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import mlflow

from . import slurm_link
from .checkpoints import Checkpoints
from .points import EvalPoint

EXPERIMENT = "mini_rlhf"


@dataclass(frozen=True, slots=True)
class Job:
    """Where the job writes and how fast it goes; an evaluation takes `pace_s` seconds at least."""

    output_dir: str
    save_total_limit: int
    pace_s: float

    @property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(Path(self.output_dir), self.save_total_limit)

    def run(
        self,
        points: Iterable[EvalPoint],
        earlier: list[EvalPoint],
        params: Mapping[str, object],
        write_weights: Callable[[Path], None],
    ) -> None:
        """Log and save each evaluation as it comes, after those of `earlier` lives."""
        history = list(earlier)
        mlflow.set_experiment(EXPERIMENT)
        with mlflow.start_run():
            slurm_link.link_active_run()
            mlflow.log_params({**self._params(), **params})
            for point in paced(points, self.pace_s):
                mlflow.log_metrics(point.metrics(), step=point.step)
                history.append(point)
                self.checkpoints.save(history, params, write_weights)
                print(
                    f"step {point.step:4d}  gold {point.gold_reward:6.3f}  proxy {point.proxy_reward:6.3f}",
                    flush=True,
                )

    def _params(self) -> dict[str, object]:
        return {
            "output_dir": self.output_dir,
            "save_total_limit": self.save_total_limit,
            "metric_for_best_model": "eval/gold_reward",
            "greater_is_better": True,
        }


def paced(points: Iterable[EvalPoint], pace_s: float) -> Iterator[EvalPoint]:
    """Pass evaluations on, no two of them less than `pace_s` seconds apart."""
    due = time.monotonic() + pace_s
    for point in points:
        time.sleep(max(0.0, due - time.monotonic()))
        due = time.monotonic() + pace_s
        yield point


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kl", type=float, default=0.0, help="weight of the KL penalty; 0 over-optimises")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output-dir", default="out", help="folder of the checkpoints")
    parser.add_argument("--save-total-limit", type=int, default=2, help="checkpoints kept, the newest")
    parser.add_argument("--pace-s", type=float, default=1.5, help="seconds an evaluation at least; 0: full speed")


def from_arguments(options: argparse.Namespace) -> Job:
    return Job(options.output_dir, options.save_total_limit, options.pace_s)
