"""Train for real: PPO of a small policy against a fitted reward model, judged by the gold reward.

With --kl 0 the policy exploits the reward model: the proxy rises on while gold peaks and falls. With --kl 0.4
it stays healthy. Needs MLflow (skinny will do) and torch; one CPU thread.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict

import torch

from . import job
from .points import EvalPoint
from .ppo import Recipe, Trainer


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    job.add_arguments(parser)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--eval-every", type=int, default=20)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    options = parse(argv)
    torch.set_num_threads(1)
    recipe = Recipe(seed=options.seed, kl=options.kl, steps=options.steps, eval_every=options.eval_every)
    trainer, shell = Trainer(recipe), job.from_arguments(options)
    earlier = take_up(trainer, shell)
    shell.run(trainer.evaluations(), earlier, asdict(recipe), trainer.save)


def take_up(trainer: Trainer, shell: job.Job) -> list[EvalPoint]:
    """Go on from the newest complete checkpoint of an earlier life (a requeued job), if there is one."""
    found = shell.checkpoints.newest_complete()
    if found is None:
        return []
    folder, history = found
    trainer.load(folder, history[-1].step)
    print(f"resumed from {folder}", flush=True)
    return history


if __name__ == "__main__":
    main()
