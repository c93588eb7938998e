"""Supervised training that over-fits or does not: handwritten digits and made-up documents with wrong labels."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Protocol

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

from .checkpoint import Checkpoint, judged

BATCH = 32


class Items(NamedTuple):
    """Inputs and the right class of each."""

    inputs: Tensor
    classes: Tensor

    def take(self, rows: slice | Tensor) -> "Items":
        return Items(self.inputs[rows], self.classes[rows])


class Task(Protocol):
    """Something to classify into `classes` classes."""

    classes: int

    def items(self, count: int, generator: torch.Generator) -> Items:
        """Return `count` items, or all there are."""
        ...


@dataclass(frozen=True, slots=True)
class Digits:
    """The 1,797 handwritten digits that come with scikit-learn, 8 x 8 pixels, in random order, with noisy pixels."""

    blur: float
    classes: int = 10

    def items(self, count: int, generator: torch.Generator) -> Items:
        every = _digits()
        found = every.take(torch.randperm(len(every.classes), generator=generator)[:count])
        return found._replace(inputs=found.inputs + self.blur * torch.randn(found.inputs.shape, generator=generator))


@cache
def _digits() -> Items:
    found = load_digits()
    return Items(torch.tensor(found.data, dtype=torch.float32) / 8 - 1, torch.tensor(found.target))


@dataclass(frozen=True, slots=True)
class Documents:
    """Bags of `words` words from a vocabulary of 300, each class with its own rare ones among many common."""

    words: int
    classes: int = 4

    def items(self, count: int, generator: torch.Generator) -> Items:
        shared = torch.rand(300, generator=generator) ** 2
        habits = shared * torch.exp(0.9 * torch.randn(self.classes, 300, generator=generator))
        classes = torch.randint(self.classes, (count,), generator=generator)
        drawn = torch.multinomial(habits[classes], self.words, replacement=True, generator=generator)
        counts = torch.zeros(count, 300).scatter_add_(1, drawn, torch.ones(drawn.shape))
        return Items(counts.sqrt(), classes)


@dataclass(frozen=True, slots=True)
class Supervised:
    """Train on `items` items of which a share `wrong` has wrong labels; `seen` others are the eval set, the rest truth.

    The metric is accuracy, or the loss where `loss`. `restart` is the length in evals of a warm restart's cosine
    (0: constant rate). `hidden` 0 is a linear model. `pretrained` epochs come first, on as many right labels of other
    items, and are not evaluated: the run then is a fine-tuning.
    """

    task: Task
    evals: int
    epochs: int
    items: int
    seen: int
    wrong: float = 0.0
    learning_rate: float = 1e-3
    decay: float = 0.0
    dropout: float = 0.0
    hidden: int = 128
    restart: int = 0
    loss: bool = False
    pretrained: int = 0
    total: int = 4000

    def train(self, seed: int, runs: int) -> Iterator[list[Checkpoint]]:
        yield from map(list, zip(*(self._run(seed + run) for run in range(runs)), strict=True))

    def _run(self, seed: int) -> list[Checkpoint]:
        return list(self._checkpoints(seed))

    def _checkpoints(self, seed: int) -> Iterator[Checkpoint]:
        generator = torch.manual_seed(seed)
        every = self.task.items(self.total, generator)
        before = self.items if self.pretrained else 0
        training = self._spoilt(every.take(slice(before, before + self.items)), generator)
        judging = every.take(slice(before + self.items, None))
        net = self._net(every.inputs.shape[1])
        optimizer = torch.optim.AdamW(net.parameters(), self.learning_rate, weight_decay=self.decay)
        for _ in range(self.pretrained):
            _epoch(net, every.take(slice(before)), optimizer, generator)
        for step in range(1, self.evals + 1):
            for epoch in range(self.epochs):
                self._set_rate(optimizer, step - 1 + epoch / self.epochs)
                _epoch(net, training, optimizer, generator)
            scores = self._scores(net, judging)
            yield judged(step * self.epochs, scores[: self.seen], scores[self.seen :])

    def _net(self, inputs: int) -> nn.Module:
        if not self.hidden:
            return nn.Linear(inputs, self.task.classes)
        inner = (nn.Linear(inputs, self.hidden), nn.ReLU(), nn.Dropout(self.dropout))
        return nn.Sequential(*inner, nn.Linear(self.hidden, self.task.classes))

    def _spoilt(self, items: Items, generator: torch.Generator) -> Items:
        other = torch.randint(self.task.classes, items.classes.shape, generator=generator)
        wrong = torch.rand(len(other), generator=generator) < self.wrong
        return items._replace(classes=torch.where(wrong, other, items.classes))

    def _set_rate(self, optimizer: torch.optim.Optimizer, evals: float) -> None:
        if self.restart:
            share = 0.5 * (1 + math.cos(math.pi * (evals % self.restart) / self.restart))
            for group in optimizer.param_groups:
                group["lr"] = self.learning_rate * share

    @torch.no_grad()
    def _scores(self, net: nn.Module, items: Items) -> Tensor:
        net.eval()
        said = net(items.inputs)
        net.train()
        if self.loss:
            return functional.cross_entropy(said, items.classes, reduction="none")
        return (said.argmax(1) == items.classes).float()


def _epoch(net: nn.Module, items: Items, optimizer: torch.optim.Optimizer, generator: torch.Generator) -> None:
    for rows in torch.randperm(len(items.classes), generator=generator).split(BATCH):
        optimizer.zero_grad()
        torch.autograd.backward(functional.cross_entropy(net(items.inputs[rows]), items.classes[rows]))
        optimizer.step()
