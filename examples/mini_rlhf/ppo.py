"""The optimisation: PPO-clip on the proxy reward less a KL penalty, one sequence one advantage."""

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from .model import Policy
from .points import EvalPoint
from .reward import CALIBRATION_SAMPLES, Reward, RewardNet, calibrated, fit, label_pairs

CLIP = 0.2
EPOCHS_A_BATCH = 2
MAX_GRADIENT = 1.0
# Streams of random numbers: each step and each evaluation draws from one of its own, so that neither the
# size of an evaluation nor a resumed life changes what training sees.
TRAINING, EVALUATION = 1, 2


@dataclass(frozen=True, slots=True)
class Recipe:
    """What makes the curve: equal recipes give equal curves on one machine."""

    seed: int = 0
    kl: float = 0.0
    steps: int = 600
    eval_every: int = 20
    eval_samples: int = 1024
    learning_rate: float = 3e-4
    batch: int = 128
    pairs: int = 4000
    vocab: int = 16
    length: int = 16
    hidden: int = 64


def stream(recipe: Recipe, kind: int, step: int) -> torch.Generator:
    """Return the random stream that belongs to one step of one recipe alone."""
    return torch.Generator().manual_seed((recipe.seed * 1_000_003 + step) * 10 + kind)


class Trainer:
    """The policy, the policy it started from, and the two rewards; `step` counts the updates done."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.step = 0
        generator = torch.manual_seed(1000 + recipe.seed)
        gold_net = RewardNet(recipe.vocab, depth=2, scale=1.6)
        self.policy = Policy(recipe.vocab, recipe.hidden)
        self.initial = copy.deepcopy(self.policy)
        samples, _ = self.initial.sample(CALIBRATION_SAMPLES, recipe.length, generator)
        self.gold = calibrated(gold_net, samples)
        self.proxy = self._fit_proxy(samples, generator)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), recipe.learning_rate)

    def _fit_proxy(self, samples: Tensor, generator: torch.Generator) -> Reward:
        net = RewardNet(self.recipe.vocab, depth=1)
        pairs = label_pairs(self.gold, self.initial, self.recipe.pairs, self.recipe.length, generator)
        fit(net, pairs, generator)
        return calibrated(net, samples)

    def evaluations(self) -> Iterator[EvalPoint]:
        """Train on, pausing at each evaluation; the policy then is the one that was evaluated."""
        while self.step < self.recipe.steps:
            self.step += 1
            self._update()
            if self.step % self.recipe.eval_every == 0:
                yield self.evaluate()

    def evaluate(self) -> EvalPoint:
        """Judge fresh samples by the gold reward that training never sees."""
        count = self.recipe.eval_samples
        generator = stream(self.recipe, EVALUATION, self.step)
        tokens, log_prob = self.policy.sample(count, self.recipe.length, generator)
        gold = self.gold(tokens)
        return EvalPoint(
            step=self.step,
            gold_reward=gold.mean().item(),
            gold_stderr=gold.std().item() / math.sqrt(count),
            proxy_reward=self.proxy(tokens).mean().item(),
            kl=self._divergence(tokens, log_prob).mean().item(),
        )

    @torch.no_grad()
    def _divergence(self, tokens: Tensor, log_prob: Tensor) -> Tensor:
        return (log_prob - self.initial.log_prob(tokens)).sum(1)

    def _update(self) -> None:
        generator = stream(self.recipe, TRAINING, self.step)
        tokens, log_prob = self.policy.sample(self.recipe.batch, self.recipe.length, generator)
        gain = self.proxy(tokens) - self.recipe.kl * self._divergence(tokens, log_prob)
        advantage = ((gain - gain.mean()) / (gain.std() + 1e-6))[:, None]
        for _ in range(EPOCHS_A_BATCH):
            ratio = (self.policy.log_prob(tokens) - log_prob).exp()
            clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
            loss = -torch.min(ratio * advantage, clipped * advantage).mean()
            self.optimizer.zero_grad()
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(self.policy.parameters(), MAX_GRADIENT)
            self.optimizer.step()

    def save(self, folder: Path) -> None:
        """Write the weights and the optimiser's state (torch zip files)."""
        torch.save(self.policy.state_dict(), folder / "policy.pt")
        torch.save(self.optimizer.state_dict(), folder / "optimizer.pt")

    def load(self, folder: Path, step: int) -> None:
        """Go on from what `save` wrote after `step` updates."""
        self.policy.load_state_dict(torch.load(folder / "policy.pt", weights_only=True))
        self.optimizer.load_state_dict(torch.load(folder / "optimizer.pt", weights_only=True))
        self.step = step
