"""Small worlds to act in, many runs and copies at once: a pole, a pendulum, a point in the wind."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

Shape = tuple[int, int]
"""Runs, and copies of the world for each."""

Act = Callable[[Tensor], Tensor]
"""From states (runs, copies, n) to the number of the action of each."""


class World(Protocol):
    """A world of `inputs` observed numbers and `actions` actions, in which an episode lasts `horizon` steps at most."""

    inputs: int
    actions: int
    horizon: int

    def start(self, shape: Shape, generator: torch.Generator) -> Tensor:
        """Return first states, (runs, copies, n)."""
        ...

    def step(self, states: Tensor, action: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Return the next states, the rewards and whether each episode is over."""
        ...

    def seen(self, states: Tensor) -> Tensor:
        """Return what the agent observes, (runs, copies, inputs)."""
        ...

    def speed(self, states: Tensor) -> Tensor:
        """Return a quantity that a careless reward might pay for."""
        ...


class CartPole:
    """Barto, Sutton and Anderson's pole on a cart: one point a step until it falls, 200 at most."""

    inputs, actions, horizon = 4, 2, 200

    def start(self, shape: Shape, generator: torch.Generator) -> Tensor:
        return torch.rand(*shape, 4, generator=generator) * 0.2 - 0.1

    def step(self, states: Tensor, action: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        place, speed, angle, turn = states.unbind(-1)
        force = action * 20.0 - 10.0 + torch.randn(action.shape, generator=generator)
        pushed = (force + 0.05 * turn**2 * angle.sin()) / 1.1
        bend = (9.8 * angle.sin() - angle.cos() * pushed) / (0.5 * (4 / 3 - 0.1 * angle.cos() ** 2 / 1.1))
        gain = pushed - 0.05 * bend * angle.cos() / 1.1
        after = torch.stack([place + 0.02 * speed, speed + 0.02 * gain, angle + 0.02 * turn, turn + 0.02 * bend], -1)
        over = (after[..., 0].abs() > 2.4) | (after[..., 2].abs() > 0.21)
        return after, torch.ones(action.shape), over

    def seen(self, states: Tensor) -> Tensor:
        return states

    def speed(self, states: Tensor) -> Tensor:
        return states[..., 1].abs()


class Pendulum:
    """Swing a pendulum up by one of three torques and hold it there; the cost is angle and speed, 100 steps."""

    inputs, actions, horizon = 3, 3, 100

    def start(self, shape: Shape, generator: torch.Generator) -> Tensor:
        return (torch.rand(*shape, 2, generator=generator) * 2 - 1) * torch.tensor([math.pi, 1.0])

    def step(self, states: Tensor, action: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        del generator
        angle, turn = states.unbind(-1)
        near = torch.remainder(angle + math.pi, 2 * math.pi) - math.pi
        torque = action * 2.0 - 2.0
        turn = (turn + 0.05 * (15 * angle.sin() + 3 * torque)).clamp(-8, 8)
        reward = -(near**2 + 0.1 * turn**2 + 0.001 * torque**2) / 10
        return torch.stack([angle + 0.05 * turn, turn], -1), reward, torch.zeros(action.shape, dtype=torch.bool)

    def seen(self, states: Tensor) -> Tensor:
        angle, turn = states.unbind(-1)
        return torch.stack([angle.cos(), angle.sin(), turn / 4], -1)

    def speed(self, states: Tensor) -> Tensor:
        return states[..., 1].abs() / 4


class Wind:
    """Push a point to the middle, against gusts, in four directions or none; the cost is the distance, 60 steps."""

    inputs, actions, horizon = 4, 5, 60

    def start(self, shape: Shape, generator: torch.Generator) -> Tensor:
        return torch.cat([torch.rand(*shape, 2, generator=generator) * 4 - 2, torch.zeros(*shape, 2)], -1)

    def step(self, states: Tensor, action: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        push = torch.tensor([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])[action]
        gust = torch.randn(*action.shape, 2, generator=generator)
        speed = 0.9 * states[..., 2:] + 0.15 * push + 0.1 * gust
        place = (states[..., :2] + 0.3 * speed).clamp(-3, 3)
        return torch.cat([place, speed], -1), -place.norm(dim=-1) / 10, torch.zeros(action.shape, dtype=torch.bool)

    def seen(self, states: Tensor) -> Tensor:
        return states

    def speed(self, states: Tensor) -> Tensor:
        return states[..., 2:].norm(dim=-1)


class Moves(NamedTuple):
    """What copies of a world did in a step: states before and after, actions, true rewards, whether it was the end."""

    states: Tensor
    actions: Tensor
    rewards: Tensor
    after: Tensor
    over: Tensor

    def take(self, rows: Tensor) -> "Moves":
        return Moves(*(part[:, rows] for part in self))

    @staticmethod
    def joined(parts: "list[Moves]") -> "Moves":
        return Moves(*(torch.cat(each, 1) for each in zip(*parts, strict=True)))


@dataclass(slots=True)
class Copies:
    """Copies of a world that each begin anew when their episode ends; `states` are what they are in."""

    world: World
    generator: torch.Generator
    states: Tensor
    ages: Tensor

    @classmethod
    def of(cls, world: World, shape: Shape, generator: torch.Generator) -> "Copies":
        return cls(world, generator, world.start(shape, generator), torch.zeros(shape))

    def step(self, actions: Tensor) -> tuple[Moves, Tensor]:
        """Move all copies; return the moves and which episodes ended, by their world's end or for their length."""
        after, rewards, over = self.world.step(self.states, actions, self.generator)
        moves = Moves(self.states, actions, rewards, after, over)
        self.ages = self.ages + 1
        ended = over | (self.ages >= self.world.horizon)
        self.ages = torch.where(ended, torch.zeros_like(self.ages), self.ages)
        self.states = torch.where(ended[..., None], self.world.start(_shape(ended), self.generator), after)
        return moves, ended


@torch.no_grad()
def returns(world: World, act: Act, shape: Shape, generator: torch.Generator) -> Tensor:
    """Return the sum of rewards of each episode, as many as copies."""
    states, alive, total = world.start(shape, generator), torch.ones(shape), torch.zeros(shape)
    for _ in range(world.horizon):
        states, reward, over = world.step(states, act(states), generator)
        total += alive * reward
        alive *= (~over).float()
        if not alive.any():
            break
    return total


def _shape(each: Tensor) -> Shape:
    runs, copies = each.shape
    return runs, copies
