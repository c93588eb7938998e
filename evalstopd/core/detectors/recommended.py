"""The rule a new installation starts with: blocks that look for a quick deep fall and for a slow shallow one."""

from dataclasses import dataclass
from typing import ClassVar

from evalstopd.core.detectors.blocks import Blocks
from evalstopd.core.noise import from_bends, unfloored_bends


@dataclass(frozen=True, slots=True)
class Recommended(Blocks):
    """Stop when each of the last three blocks of evals lies clearly below the best stretch, or six by 0.7 as much.

    `blocks` with four changes: six low blocks in a row need only .7 of the margin; noise is the plain size of the
    second differences; the margin is c (1 + 4 / blocks) times it; a verdict from 5 evals on. c and growth are set so
    that about 6 % of flat runs of independent Gaussian noise are stopped within 20 evals and 7 % within 100. How the
    changes were chosen, and what the rule does on real curves, is in docs/rules.md, with the commands.
    """

    c: float = 2.6
    growth: float = 1.5

    first: ClassVar[int] = 5
    caution: ClassVar[float] = 4.0
    persistence: ClassVar[tuple[tuple[int, float], ...]] = ((3, 1.0), (6, 0.7))

    @property
    def _name(self) -> str:
        return "recommended"

    def _shown(self, blocks: list[float]) -> float:
        return from_bends(blocks)

    def _unfloored(self, blocks: list[float]) -> float:
        return unfloored_bends(blocks)
