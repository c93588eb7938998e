"""The two rewards: gold, which nobody optimises, and the proxy fitted to preferences that gold labelled."""

import copy
import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from .model import Policy

FEATURES = 24
WIDTH = 64
CALIBRATION_SAMPLES = 4096
BATCH = 64
MAX_EPOCHS = 150
PATIENCE = 15


class RewardNet(nn.Module):
    """Scores a sequence from its mean token and mean token-pair features."""

    def __init__(self, vocab: int, depth: int, scale: float = 1.0) -> None:
        super().__init__()
        self.token = nn.Embedding(vocab, FEATURES)
        self.previous = nn.Embedding(vocab, FEATURES)
        widths = [2 * FEATURES] + [WIDTH] * depth
        layers = [nn.Sequential(nn.Linear(a, b), nn.Tanh()) for a, b in pairwise(widths)]
        self.mlp = nn.Sequential(*layers, nn.Linear(widths[-1], 1))
        for module in self.mlp.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, 0, scale / math.sqrt(module.in_features))

    def forward(self, tokens: Tensor) -> Tensor:
        single = self.token(tokens).mean(1) * 4
        pairs = (self.token(tokens[:, 1:]) * self.previous(tokens[:, :-1])).mean(1) * 4
        scores: Tensor = self.mlp(torch.cat([single, pairs], 1)).squeeze(1)
        return scores


@dataclass(frozen=True, slots=True)
class Reward:
    """A reward network in units of its own spread over the initial policy's samples."""

    net: RewardNet
    mean: Tensor
    std: Tensor

    @torch.no_grad()
    def __call__(self, tokens: Tensor) -> Tensor:
        scores: Tensor = self.net(tokens)
        return (scores - self.mean) / self.std


@dataclass(frozen=True, slots=True)
class Preferences:
    """Pairs of sequences and 1.0 where the first was preferred."""

    first: Tensor
    second: Tensor
    prefer_first: Tensor

    def take(self, rows: Tensor | slice) -> "Preferences":
        return Preferences(self.first[rows], self.second[rows], self.prefer_first[rows])

    def loss(self, net: RewardNet) -> Tensor:
        """Return the Bradley-Terry negative log-likelihood."""
        return functional.binary_cross_entropy_with_logits(net(self.first) - net(self.second), self.prefer_first)


def calibrated(net: RewardNet, samples: Tensor) -> Reward:
    with torch.no_grad():
        scores = net(samples)
    return Reward(net, scores.mean(), scores.std())


def label_pairs(gold: Reward, policy: Policy, count: int, length: int, generator: torch.Generator) -> Preferences:
    """Draw pairs from the policy and let the gold reward prefer, with Bradley-Terry noise."""
    first, _ = policy.sample(count, length, generator)
    second, _ = policy.sample(count, length, generator)
    chance = torch.sigmoid(gold(first) - gold(second))
    return Preferences(first, second, (torch.rand(count, generator=generator) < chance).float())


def fit(net: RewardNet, pairs: Preferences, generator: torch.Generator) -> None:
    """Fit in place, keeping the epoch that is best on the held-out tenth."""
    held_out_from = int(0.9 * len(pairs.prefer_first))
    training, held_out = pairs.take(slice(None, held_out_from)), pairs.take(slice(held_out_from, None))
    optimizer = torch.optim.AdamW(net.parameters(), 3e-3, weight_decay=1e-2)
    best, best_weights, waited = math.inf, copy.deepcopy(net.state_dict()), 0
    for _ in range(MAX_EPOCHS):
        _fit_epoch(net, training, optimizer, generator)
        with torch.no_grad():
            loss = held_out.loss(net).item()
        if loss < best:
            best, best_weights, waited = loss, copy.deepcopy(net.state_dict()), 0
        waited += 1
        if waited > PATIENCE:
            break
    net.load_state_dict(best_weights)


def _fit_epoch(
    net: RewardNet, pairs: Preferences, optimizer: torch.optim.Optimizer, generator: torch.Generator
) -> None:
    for rows in torch.split(torch.randperm(len(pairs.prefer_first), generator=generator), BATCH):
        optimizer.zero_grad()
        torch.autograd.backward(pairs.take(rows).loss(net))
        optimizer.step()
