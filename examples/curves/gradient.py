"""Online RL by policy gradients: PPO-clip with a critic or REINFORCE, on the true reward or on a careless one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from .agents import Networks, adam, checkpoints, descend
from .checkpoint import Checkpoint
from .worlds import Copies, World

COPIES, DISCOUNT, TRACE, CLIP = 32, 0.98, 0.95, 0.2


class Batch(NamedTuple):
    """A rollout, flat: what was observed and done, its log-probability, its advantage, what the critic should say."""

    seen: Tensor
    actions: Tensor
    logs: Tensor
    gains: Tensor
    aims: Tensor


@dataclass(frozen=True, slots=True)
class PolicyGradient:
    """`epochs` 1 and no `clip` is REINFORCE with a base line. `paid` is what a unit of speed earns in training.

    An iteration is 32 copies of the world for `length` steps. Evaluated on the true reward alone.
    """

    world: World
    evals: int
    iterations: int
    episodes: int
    learning_rate: float = 3e-3
    epochs: int = 4
    clip: bool = True
    entropy: float = 0.01
    paid: float = 0.0
    length: int = 50

    def train(self, seed: int, runs: int) -> Iterator[list[Checkpoint]]:
        generator, judging = torch.manual_seed(seed), torch.Generator().manual_seed(seed + 1)
        policy, critic = Networks(runs, self.world.inputs, self.world.actions), Networks(runs, self.world.inputs, 1)
        both = nn.ModuleList([policy, critic])
        optimizer = adam(both, self.learning_rate)
        copies = Copies.of(self.world, (runs, COPIES), generator)
        for step in range(1, self.evals + 1):
            for _ in range(self.iterations):
                self._update(self._rollout(policy, critic, copies), both, optimizer, generator)
            yield checkpoints(self.world, policy, step, runs, self.episodes, judging)

    @torch.no_grad()
    def _rollout(self, policy: nn.Module, critic: nn.Module, copies: Copies) -> Batch:
        seen, actions, logs, rewards, values, ends = [], [], [], [], [], []
        for _ in range(self.length):
            look = self.world.seen(copies.states)
            log = functional.log_softmax(policy(look), -1)
            action = _drawn(log, copies.generator)
            moves, ended = copies.step(action)
            seen.append(look)
            actions.append(action)
            logs.append(_of(log, action))
            rewards.append(moves.rewards + self.paid * self.world.speed(moves.after))
            values.append(critic(look).squeeze(-1))
            ends.append(ended)
        last = critic(self.world.seen(copies.states)).squeeze(-1)
        gains = torch.cat(_advantages(rewards, values, ends, last), 1)
        aims = gains + torch.cat(values, 1)
        return Batch(torch.cat(seen, 1), torch.cat(actions, 1), torch.cat(logs, 1), gains, aims)

    def _update(
        self, batch: Batch, both: nn.ModuleList, optimizer: torch.optim.Optimizer, generator: torch.Generator
    ) -> None:
        for _ in range(self.epochs):
            for rows in torch.randperm(batch.gains.shape[1], generator=generator).chunk(2 if self.clip else 1):
                seen, actions, logs, gains, aims = (part[:, rows] for part in batch)
                gains = (gains - gains.mean(1, keepdim=True)) / (gains.std(1, keepdim=True) + 1e-6)
                log = functional.log_softmax(both[0](seen), -1)
                chosen = _of(log, actions)
                ratio = (chosen - logs).exp()
                gain = (
                    torch.min(ratio * gains, ratio.clamp(1 - CLIP, 1 + CLIP) * gains) if self.clip else chosen * gains
                )
                entropy = -(log.exp() * log).sum(-1)
                error = (both[1](seen).squeeze(-1) - aims).square()
                descend((-gain - self.entropy * entropy + 0.5 * error).mean(1), optimizer, both, 1.0)


def _drawn(log: Tensor, generator: torch.Generator) -> Tensor:
    """Return actions drawn by their log-probabilities."""
    return (log.exp() / torch.empty(log.shape).exponential_(generator=generator)).argmax(-1)


def _of(values: Tensor, actions: Tensor) -> Tensor:
    return values.gather(-1, actions[..., None]).squeeze(-1)


def _advantages(rewards: list[Tensor], values: list[Tensor], ends: list[Tensor], last: Tensor) -> list[Tensor]:
    """Return generalised advantages (Schulman 2016), backwards through the rollout."""
    found: list[Tensor] = []
    after, running = last, torch.zeros_like(last)
    for reward, value, ended in zip(reversed(rewards), reversed(values), reversed(ends), strict=True):
        goes_on = (~ended).float()
        running = reward + DISCOUNT * goes_on * after - value + DISCOUNT * TRACE * goes_on * running
        found.append(running)
        after = value
    return found[::-1]
