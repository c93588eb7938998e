"""The rule a new installation starts with: blocks, with a threshold that pure noise alone has set."""

from dataclasses import dataclass

from evalstopd.core.detectors.blocks import Blocks


@dataclass(frozen=True, slots=True)
class Recommended(Blocks):
    """Stop when each of the last three blocks of evals lies below the best stretch by more than the noise explains.

    `blocks` with c and growth set on simulated flat runs of independent Gaussian noise, so that about 7 % of
    them are stopped within 20 evals and 9 % within 100. No real curve chose them; what they do on
    real ones is in docs/rules.md, with the command.
    """

    c: float = 1.8
    growth: float = 1.5

    @property
    def _name(self) -> str:
        return "recommended"
