"""Online RL sources: algorithms, careful and careless, on the true reward and on one that also pays for speed."""

from .gradient import PolicyGradient
from .source import Source
from .values import Online
from .worlds import CartPole, Pendulum, Wind


def sources() -> tuple[Source, ...]:
    pole, pendulum, wind = CartPole(), Pendulum(), Wind()
    return (
        _source("ppo pole", PolicyGradient(pole, 20, 2, 8), pushed=False),
        _source("ppo pole hot", PolicyGradient(pole, 24, 2, 8, learning_rate=2e-2, entropy=0.0), pushed=True),
        _source("reinforce pole", PolicyGradient(pole, 20, 4, 8, 1e-2, epochs=1, clip=False), pushed=True),
        _source("ppo pendulum paid", PolicyGradient(pendulum, 20, 2, 10, paid=0.5), pushed=True),
        _source("ppo wind", PolicyGradient(wind, 20, 2, 5), pushed=False),
        _source("ppo wind paid", PolicyGradient(wind, 20, 2, 10, paid=1.0), pushed=True),
        _source("dqn pole", Online(pole, 20, 150, 8), pushed=False),
        _source("dqn pole forgetful", Online(pole, 24, 150, 8, 3e-3, 0.1, memory=400), pushed=True),
        _source("dqn pendulum", Online(pendulum, 24, 150, 8, 2e-3), pushed=False),
        _source("dqn wind", Online(wind, 20, 120, 5), pushed=False),
        _source("dqn wind forgetful", Online(wind, 20, 120, 8, 1e-2, 0.1, memory=400), pushed=True),
    )


def _source(name: str, recipe: PolicyGradient | Online, *, pushed: bool) -> Source:
    return Source(name, recipe, pushed, "eval/return")
