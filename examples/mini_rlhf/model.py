"""The policy: a GRU small enough to train on one CPU thread, large enough to exploit a reward model."""

import torch
from torch import Tensor, nn
from torch.nn import functional

EMBEDDING = 32


class Policy(nn.Module):
    """A language model over `vocab` tokens; index `vocab` is the start token."""

    def __init__(self, vocab: int, hidden: int) -> None:
        super().__init__()
        self.vocab = vocab
        self.embedding = nn.Embedding(vocab + 1, EMBEDDING)
        self.cell = nn.GRUCell(EMBEDDING, hidden)
        self.head = nn.Linear(hidden, vocab)

    def _start(self, count: int) -> tuple[Tensor, Tensor]:
        return torch.full((count,), self.vocab), torch.zeros(count, self.cell.hidden_size)

    def _advance(self, token: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.cell(self.embedding(token), hidden)
        return functional.log_softmax(self.head(hidden), -1), hidden

    @torch.no_grad()
    def sample(self, count: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw sequences; returns tokens and their log-probabilities, both (count, length)."""
        token, hidden = self._start(count)
        tokens, log_probs = [], []
        for _ in range(length):
            scores, hidden = self._advance(token, hidden)
            token = torch.multinomial(scores.exp(), 1, generator=generator).squeeze(1)
            tokens.append(token)
            log_probs.append(scores.gather(1, token[:, None]).squeeze(1))
        return torch.stack(tokens, 1), torch.stack(log_probs, 1)

    def log_prob(self, tokens: Tensor) -> Tensor:
        """Return the log-probability of each token given those before it, (count, length)."""
        token, hidden = self._start(tokens.shape[0])
        log_probs = []
        for column in tokens.unbind(1):
            scores, hidden = self._advance(token, hidden)
            log_probs.append(scores.gather(1, column[:, None]).squeeze(1))
            token = column
        return torch.stack(log_probs, 1)
