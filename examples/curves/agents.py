"""What the agents share: small networks, one a run, trained side by side, and how a checkpoint of each is judged."""

import math
from itertools import pairwise

import torch
from torch import Tensor, nn

from .checkpoint import Checkpoint, judged
from .worlds import World, returns

HIDDEN = 48
TRUE_EPISODES = 400


class Networks(nn.Module):
    """Maps (runs, count, inputs) to (runs, count, outputs), each run by a network of its own."""

    def __init__(self, runs: int, inputs: int, outputs: int) -> None:
        super().__init__()
        widths = list(pairwise((inputs, HIDDEN, HIDDEN, outputs)))
        self.weights = nn.ParameterList(torch.randn(runs, a, b) / math.sqrt(a) for a, b in widths)
        self.biases = nn.ParameterList(torch.zeros(runs, 1, b) for _, b in widths)

    def forward(self, values: Tensor) -> Tensor:
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            values = torch.baddbmm(bias, values, weight).tanh()
        return torch.baddbmm(self.biases[-1], values, self.weights[-1])


def greedy(world: World, nets: nn.Module, states: Tensor) -> Tensor:
    best: Tensor = nets(world.seen(states)).argmax(-1)
    return best


def checkpoints(
    world: World, nets: nn.Module, step: int, runs: int, episodes: int, generator: torch.Generator
) -> list[Checkpoint]:
    """Judge the greedy policy of each run: a rule sees `episodes` episodes, 400 more are the truth."""
    found = returns(world, lambda states: greedy(world, nets, states), (runs, episodes + TRUE_EPISODES), generator)
    return [judged(step, each[:episodes], each[episodes:]) for each in found]


def descend(losses: Tensor, optimizer: torch.optim.Optimizer, nets: nn.Module, limit: float) -> None:
    """Take a step of every run down its own loss; a run's gradient is cut to `limit`, no other's with it."""
    optimizer.zero_grad()
    torch.autograd.backward(losses.sum())
    slopes = [each.grad for each in nets.parameters() if each.grad is not None]
    norms = torch.stack([slope.square().sum((1, 2)) for slope in slopes]).sum(0).sqrt()
    cut = (limit / (norms + 1e-6)).clamp(max=1.0)[:, None, None]
    for slope in slopes:
        slope.mul_(cut)
    optimizer.step()


def adam(nets: nn.Module, rate: float) -> torch.optim.Optimizer:
    return torch.optim.Adam(nets.parameters(), rate, foreach=True)
