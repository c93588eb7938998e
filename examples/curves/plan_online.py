"""Online RL sources: algorithms, careful and careless, on the true reward and on one that also pays for speed."""

from .gradient import PolicyGradient
from .source import Source
from .values import Online
from .worlds import CartPole, Pendulum, Wind


def sources() -> tuple[Source, ...]:
    pole, pendulum, wind = CartPole(), Pendulum(), Wind()
    return (
        _source("ppo pole", False, PolicyGradient(pole, 20, 2, 8)),
        _source("ppo pole hot", True, PolicyGradient(pole, 24, 2, 8, learning_rate=2e-2, entropy=0.0)),
        _source("reinforce pole", True, PolicyGradient(pole, 20, 4, 8, 1e-2, epochs=1, clip=False)),
        _source("ppo pendulum paid", True, PolicyGradient(pendulum, 20, 2, 10, paid=0.5)),
        _source("ppo wind", False, PolicyGradient(wind, 20, 2, 5)),
        _source("ppo wind paid", True, PolicyGradient(wind, 20, 2, 10, paid=1.0)),
        _source("dqn pole", False, Online(pole, 20, 150, 8)),
        _source("dqn pole forgetful", True, Online(pole, 24, 150, 8, 3e-3, 0.1, memory=400)),
        _source("dqn pendulum", False, Online(pendulum, 24, 150, 8, 2e-3)),
        _source("dqn wind", False, Online(wind, 20, 120, 5)),
        _source("dqn wind forgetful", True, Online(wind, 20, 120, 8, 1e-2, 0.1, memory=400)),
    )


def _source(name: str, pushed: bool, recipe: PolicyGradient | Online) -> Source:
    return Source(name, recipe, pushed, "eval/return")
