"""Offline RL sources: logged data of half-trained policies, with something that holds the learner to it or nothing."""

from .source import Source
from .values import Offline
from .worlds import CartPole, Pendulum, Wind


def sources() -> tuple[Source, ...]:
    pole, pendulum, wind = CartPole(), Pendulum(), Wind()
    return (
        _source("pole free", Offline(pole, 20, 100, 10, logged=4000, taught=1200), pushed=True),
        _source(
            "pole free hot", Offline(pole, 24, 100, 10, 3e-3, 0.05, logged=2000, taught=1200, imitated=200), pushed=True
        ),
        _source("pole held", Offline(pole, 20, 100, 10, logged=4000, taught=1200, held=0.5), pushed=False),
        _source("pole clone tuned", Offline(pole, 24, 60, 10, logged=4000, taught=1200, imitated=400), pushed=True),
        _source("pole clone held", Offline(pole, 20, 60, 10, taught=1200, cloned=0.5, imitated=200), pushed=False),
        _source("pendulum held", Offline(pendulum, 20, 100, 10, taught=1500, held=0.2), pushed=False),
        _source("pendulum clone tuned", Offline(pendulum, 20, 100, 10, taught=1500, imitated=300), pushed=True),
        _source("wind free few", Offline(wind, 30, 80, 8, 3e-3, logged=600, taught=1000, imitated=200), pushed=True),
        _source("wind held", Offline(wind, 20, 80, 8, taught=1000, held=0.3), pushed=False),
        _source("wind clone", Offline(wind, 20, 80, 8, 2e-3, logged=1000, taught=1000, cloned=1.0), pushed=False),
        _source("wind clone tuned", Offline(wind, 20, 80, 8, logged=1000, taught=1000, imitated=300), pushed=True),
    )


def _source(name: str, recipe: Offline, *, pushed: bool) -> Source:
    return Source(name, recipe, pushed, "eval/return")
