"""Over-optimisation of a fitted reward: PPO as in mini_rlhf, and best-of-n imitation; gold is the score."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from mini_rlhf.ppo import EVALUATION, MAX_GRADIENT, TRAINING, Recipe, Trainer, stream
from torch import nn

from .checkpoint import Checkpoint, judged

TRUE_SAMPLES = 2048


class BestOfN(Trainer):
    """Imitate the best of each n samples by the proxy, held to the first policy by a share of the KL's gradient."""

    of = 4

    def _update(self) -> None:
        generator = stream(self.recipe, TRAINING, self.step)
        tokens, _ = self.policy.sample(self.recipe.batch, self.recipe.length, generator)
        groups = self.proxy(tokens).view(-1, self.of)
        best = tokens.view(*groups.shape, -1)[torch.arange(len(groups)), groups.argmax(1)]
        loss = -self.policy.log_prob(best).sum(1).mean()
        if self.recipe.kl:
            earlier, _ = self.initial.sample(len(best), self.recipe.length, generator)
            loss = loss - self.recipe.kl * self.policy.log_prob(earlier).sum(1).mean()
        self.optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(self.policy.parameters(), MAX_GRADIENT)
        self.optimizer.step()


@dataclass(frozen=True, slots=True)
class Rlhf:
    """`recipe.eval_samples` are what a rule sees; 2,048 more are the truth."""

    recipe: Recipe
    best_of_n: bool = False

    def train(self, seed: int, runs: int) -> Iterator[list[Checkpoint]]:
        yield from map(list, zip(*(self._run(seed + run) for run in range(runs)), strict=True))

    def _run(self, seed: int) -> list[Checkpoint]:
        return list(self._checkpoints(seed))

    def _checkpoints(self, seed: int) -> Iterator[Checkpoint]:
        recipe = replace(self.recipe, seed=seed)
        trainer = BestOfN(recipe) if self.best_of_n else Trainer(recipe)
        for point in trainer.evaluations():
            generator = stream(recipe, EVALUATION, point.step)
            tokens, _ = trainer.policy.sample(recipe.eval_samples + TRUE_SAMPLES, recipe.length, generator)
            gold = trainer.gold(tokens)
            yield judged(point.step, gold[: recipe.eval_samples], gold[recipe.eval_samples :])
