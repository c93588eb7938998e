"""RLHF sources: how hard the proxy is pressed, how good it is, and how many samples an eval has."""

from mini_rlhf.ppo import Recipe

from .rlhf import Rlhf
from .source import Source


def sources() -> tuple[Source, ...]:
    return (
        _ppo("ppo kl=0 n=64", pushed=True, kl=0, eval_samples=64),
        _ppo("ppo kl=0 n=256", pushed=True, kl=0, eval_samples=256),
        _ppo("ppo kl=0 pairs=600 n=128", pushed=True, kl=0, pairs=600, eval_samples=128),
        _ppo("ppo kl=.1 n=128", pushed=False, kl=0.1, eval_samples=128),
        _ppo("ppo kl=.4 n=64", pushed=False, kl=0.4, eval_samples=64),
        _ppo("ppo kl=.4 n=256", pushed=False, kl=0.4, eval_samples=256),
        _best("best of 4 n=128", pushed=True, kl=0, eval_samples=128),
        _best("best of 4 pairs=600 n=64", pushed=True, kl=0, pairs=600, eval_samples=64),
        _best("best of 4 held n=128", pushed=False, kl=0.5, eval_samples=128),
    )


def _ppo(name: str, *, pushed: bool, **changes: float) -> Source:
    return Source(name, Rlhf(_recipe(**changes)), pushed, "gold_reward")


def _best(name: str, *, pushed: bool, **changes: float) -> Source:
    return Source(name, Rlhf(_recipe(**changes), best_of_n=True), pushed, "gold_reward")


def _recipe(**changes: float) -> Recipe:
    """Return a run of 20 evals, shorter than the demo's so that many can be had."""
    usual = {"steps": 300, "eval_every": 15, "learning_rate": 4e-4, "batch": 96, "length": 10}
    return Recipe(**(usual | changes))  # type: ignore[arg-type]
