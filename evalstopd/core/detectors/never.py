"""The rule that never stops a run: the base scheduler alone, and the switch that turns detection off."""

from dataclasses import dataclass

from evalstopd.core.detectors.verdict import KEEP_GOING, Detector, Verdict
from evalstopd.core.model import Eval, JobView


@dataclass(frozen=True, slots=True)
class Never(Detector):
    """Let every run go on."""

    @property
    def spec(self) -> str:
        """Return the rule as text."""
        return "never"

    def start(self, job: JobView) -> None:
        """Return the state before the first eval: there is none."""
        del job

    def step(self, state: None, point: Eval) -> tuple[None, Verdict]:
        """Take one eval and let the run go on."""
        del point
        return state, KEEP_GOING
