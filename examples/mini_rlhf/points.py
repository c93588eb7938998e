"""One evaluation of the policy: what training hands to logging, whether it was computed or replayed."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EvalPoint:
    """The held-out gold reward of fresh samples, in standard deviations of the initial policy's reward.

    `kl` is in nats a sequence, against the initial policy.
    """

    step: int
    gold_reward: float
    gold_stderr: float
    proxy_reward: float
    kl: float

    def metrics(self) -> dict[str, float]:
        """Name the values as they are logged."""
        return {
            "eval/gold_reward": self.gold_reward,
            "eval/gold_reward_stderr": self.gold_stderr,
            "train/proxy_reward": self.proxy_reward,
            "train/kl": self.kl,
        }

    @classmethod
    def from_metrics(cls, entry: Mapping[str, float]) -> "EvalPoint":
        """Read back what `metrics` named; `entry` holds the step too."""
        return cls(
            step=int(entry["step"]),
            gold_reward=entry["eval/gold_reward"],
            gold_stderr=entry["eval/gold_reward_stderr"],
            proxy_reward=entry["train/proxy_reward"],
            kl=entry["train/kl"],
        )
