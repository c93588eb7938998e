"""Q-learning: online from a replay buffer, and offline from logged data, held to the data or not."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from .agents import Networks, adam, checkpoints, descend, greedy
from .checkpoint import Checkpoint
from .worlds import Copies, Moves, World

COPIES, DISCOUNT, BATCH = 16, 0.98, 96


@dataclass(frozen=True, slots=True)
class QLearning:
    """Double Q-learning with a target network that follows by `follow` an update."""

    world: World
    evals: int
    updates: int
    episodes: int
    learning_rate: float = 1e-3
    follow: float = 0.01

    def _nets(self, runs: int) -> tuple[nn.Module, nn.Module, torch.optim.Optimizer]:
        nets, target = (Networks(runs, self.world.inputs, self.world.actions) for _ in range(2))
        target.load_state_dict(nets.state_dict())
        return nets, target, adam(nets, self.learning_rate)

    def _losses(self, nets: nn.Module, target: nn.Module, moves: Moves) -> tuple[Tensor, Tensor]:
        """Return the temporal-difference loss of each move and the values of all actions."""
        values: Tensor = nets(self.world.seen(moves.states))
        with torch.no_grad():
            looks = self.world.seen(moves.after)
            chosen = nets(looks).argmax(-1)
            aims = moves.rewards + DISCOUNT * (~moves.over).float() * _of(target(looks), chosen)
        return functional.smooth_l1_loss(_of(values, moves.actions), aims, reduction="none"), values

    @torch.no_grad()
    def _follow(self, nets: nn.Module, target: nn.Module) -> None:
        for own, other in zip(target.parameters(), nets.parameters(), strict=True):
            own.lerp_(other, self.follow)


@dataclass(frozen=True, slots=True)
class Online(QLearning):
    """Sixteen copies of the world, one step each an update; `memory` moves are remembered; a tenth acts at random."""

    memory: int = 20_000
    paid: float = 0.0

    def train(self, seed: int, runs: int) -> Iterator[list[Checkpoint]]:
        judging = torch.Generator().manual_seed(seed + 1)
        for update, nets in self.nets(seed, runs):
            yield checkpoints(self.world, nets, update, runs, self.episodes, judging)

    def nets(self, seed: int, runs: int) -> Iterator[tuple[int, nn.Module]]:
        """Train, and give out the networks after each `updates` updates."""
        generator = torch.manual_seed(seed)
        nets, target, optimizer = self._nets(runs)
        copies, kept = Copies.of(self.world, (runs, COPIES), generator), list[Moves]()
        for update in range(1, self.evals * self.updates + 1):
            moves = self._act(nets, copies)
            if len(kept) < self.memory // COPIES:
                kept.append(moves)
            else:
                kept[update % len(kept)] = moves
            drawn = torch.randint(len(kept), (BATCH // COPIES,), generator=generator).tolist()
            losses, _ = self._losses(nets, target, Moves.joined([kept[row] for row in drawn]))
            descend(losses.mean(1), optimizer, nets, 10.0)
            self._follow(nets, target)
            if update % self.updates == 0:
                yield update, nets

    def _act(self, nets: nn.Module, copies: Copies) -> Moves:
        moves, _ = copies.step(_mostly_greedy(self.world, nets, copies, 0.1))
        return moves._replace(rewards=moves.rewards + self.paid * self.world.speed(moves.after))


@dataclass(frozen=True, slots=True)
class Offline(QLearning):
    """Only logged data: `logged` moves of a policy trained online for `taught` updates, a share `random` at random.

    `held` weighs the loss that keeps the values of actions not in the data low (CQL, Kumar 2020); `cloned` is the
    share of plain imitation in the loss. With neither, nothing holds the values down where there is no data.
    `imitated` updates of imitation alone come first and are not evaluated: the run then fine-tunes a clone.
    """

    logged: int = 10_000
    random: float = 0.3
    held: float = 0.0
    cloned: float = 0.0
    taught: int = 600
    imitated: int = 0

    def train(self, seed: int, runs: int) -> Iterator[list[Checkpoint]]:
        generator, judging = torch.manual_seed(seed), torch.Generator().manual_seed(seed + 1)
        data = self._log(seed, runs, generator)
        nets, target, optimizer = self._nets(runs)
        for update in range(1 - self.imitated, self.evals * self.updates + 1):
            moves = data.take(torch.randint(data.actions.shape[1], (BATCH,), generator=generator))
            losses = self._held_losses(nets, target, moves, 1.0 if update < 1 else self.cloned)
            descend(losses, optimizer, nets, 10.0)
            self._follow(nets, target)
            if update > 0 and update % self.updates == 0:
                yield checkpoints(self.world, nets, update, runs, self.episodes, judging)

    def _held_losses(self, nets: nn.Module, target: nn.Module, moves: Moves, cloned: float) -> Tensor:
        losses, values = self._losses(nets, target, moves)
        # Of values read as log-odds this is the loss of imitation; of plain values CQL's.
        unlike = values.logsumexp(-1) - _of(values, moves.actions)
        return (cloned * unlike + (1 - cloned) * (losses + self.held * unlike)).mean(1)

    def _log(self, seed: int, runs: int, generator: torch.Generator) -> Moves:
        teaching = Online(self.world, evals=1, updates=self.taught, episodes=2)
        _, teachers = next(teaching.nets(seed + 2, runs))
        copies = Copies.of(self.world, (runs, COPIES), generator)
        acted = (
            copies.step(_mostly_greedy(self.world, teachers, copies, self.random))[0]
            for _ in range(self.logged // COPIES)
        )
        return Moves.joined(list(acted))


@torch.no_grad()
def _mostly_greedy(world: World, nets: nn.Module, copies: Copies, random: float) -> Tensor:
    """Return the actions of greatest value, a share of them replaced by any."""
    shape = copies.ages.shape
    free = torch.randint(world.actions, shape, generator=copies.generator)
    lost = torch.rand(shape, generator=copies.generator) < random
    return torch.where(lost, free, greedy(world, nets, copies.states))


def _of(values: Tensor, actions: Tensor) -> Tensor:
    return values.gather(-1, actions[..., None]).squeeze(-1)
