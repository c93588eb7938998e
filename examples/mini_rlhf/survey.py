"""Show how the demo's seeds were chosen: train many runs, say where k declines would stop each.

`--record FILE` trains the chosen runs instead (seeds.py) and writes their curves, which `replay.py` plays.
"""

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

import torch

from . import seeds
from .declines import stop_eval
from .points import EvalPoint
from .ppo import Recipe, Trainer


@dataclass(frozen=True, slots=True)
class Curve:
    """One finished run; evals are counted from 1."""

    recipe: Recipe
    evals: list[EvalPoint]

    @property
    def scores(self) -> list[float]:
        return [point.gold_reward for point in self.evals]

    @property
    def best(self) -> int:
        return max(range(len(self.scores)), key=self.scores.__getitem__) + 1

    def fall(self) -> float:
        """Return how far the mean of the last three evals lies below the best, in units of reward."""
        return max(self.scores) - sum(self.scores[-3:]) / len(self.scores[-3:])


def train(recipe: Recipe) -> Curve:
    torch.set_num_threads(1)
    return Curve(recipe, list(Trainer(recipe).evaluations()))


def describe(curve: Curve, k: int, min_delta: float) -> str:
    stop = stop_eval(curve.scores, k, min_delta)
    verdict = f"stopped at {stop}" if stop else "kept"
    return (
        f"kl {curve.recipe.kl:<4g} seed {curve.recipe.seed:<3d} best {max(curve.scores):6.3f} at eval "
        f"{curve.best:2d} of {len(curve.evals)}, ends {curve.fall():5.3f} lower, {verdict}"
    )


def record(curves: Sequence[Curve], file: Path) -> None:
    runs = [{"recipe": asdict(curve.recipe), "evals": [asdict(p) for p in curve.evals]} for curve in curves]
    file.write_text(json.dumps({"runs": runs}, indent=1) + "\n")


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kl", type=float, nargs="+", default=[0.0, 0.4])
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(6)))
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--k", type=int, default=2)
    parser.add_argument("--min-delta", type=float, default=0.06)
    parser.add_argument("--parallel", type=int, default=2, help="runs side by side, one thread each")
    parser.add_argument("--record", type=Path, help="train the chosen runs and write their curves here")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    options = parse(argv)
    runs = seeds.CHOSEN if options.record else [(kl, seed) for kl in options.kl for seed in options.seeds]
    recipes = [Recipe(seed=seed, kl=kl, steps=options.steps) for kl, seed in runs]
    curves = []
    with ProcessPoolExecutor(options.parallel, mp_context=get_context("spawn")) as pool:
        for curve in pool.map(train, recipes):
            print(describe(curve, options.k, options.min_delta), flush=True)
            curves.append(curve)
    if options.record:
        record(curves, options.record)


if __name__ == "__main__":
    main()
