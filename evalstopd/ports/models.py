"""Logged models: checkpoints that lie with the tracker alone."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ModelQuery:
    """Which step's checkpoint is looked for among the logged models of a run.

    One that was made before `since_s` (seconds since the epoch) is another, and so is one that has another `score` of
    the metric at the step.
    """

    run_id: str
    step: int
    since_s: int = 0
    metric: str = ""
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class ModelReport:
    """A logged model as the tracker lists it: its address there, number of files, bytes, digest of the listing."""

    uri: str
    files: int
    size: int
    listing: str


class Models(Protocol):
    """The logged models of runs: what is seen of them is the tracker's word, and nothing of them is kept.

    Raises CheckpointMissing, CheckpointIncomplete (not ready, no files, another one), Rejected or Unavailable.
    """

    def find(self, query: ModelQuery) -> ModelReport:
        """Find the step's newest one that is ready and has files."""

    def verify(self, run_id: str, uri: str) -> ModelReport:
        """Look at one of the run's again."""
