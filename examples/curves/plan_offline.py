"""Offline RL sources: logged data of half-trained policies, with something that holds the learner to it or nothing."""

from .source import Source
from .values import Offline
from .worlds import CartPole, Pendulum, Wind


def sources() -> tuple[Source, ...]:
    pole, pendulum, wind = CartPole(), Pendulum(), Wind()
    return (
        _source("pole free", True, Offline(pole, 20, 100, 10, logged=4000, taught=1200)),
        _source("pole free hot", True, Offline(pole, 24, 100, 10, 3e-3, 0.05, logged=2000, taught=1200, imitated=200)),
        _source("pole held", False, Offline(pole, 20, 100, 10, logged=4000, taught=1200, held=0.5)),
        _source("pole clone tuned", True, Offline(pole, 24, 60, 10, logged=4000, taught=1200, imitated=400)),
        _source("pole clone held", False, Offline(pole, 20, 60, 10, taught=1200, cloned=0.5, imitated=200)),
        _source("pendulum held", False, Offline(pendulum, 20, 100, 10, taught=1500, held=0.2)),
        _source("pendulum clone tuned", True, Offline(pendulum, 20, 100, 10, taught=1500, imitated=300)),
        _source("wind free few", True, Offline(wind, 30, 80, 8, 3e-3, logged=600, taught=1000, imitated=200)),
        _source("wind held", False, Offline(wind, 20, 80, 8, taught=1000, held=0.3)),
        _source("wind clone", False, Offline(wind, 20, 80, 8, 2e-3, logged=1000, taught=1000, cloned=1.0)),
        _source("wind clone tuned", True, Offline(wind, 20, 80, 8, logged=1000, taught=1000, imitated=300)),
    )


def _source(name: str, pushed: bool, recipe: Offline) -> Source:
    return Source(name, recipe, pushed, "eval/return")
