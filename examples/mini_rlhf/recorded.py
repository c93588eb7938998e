"""Recorded runs and how they are played again: scores, and checkpoints that hold those scores, no policy."""

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .points import EvalPoint

CURVES = Path(__file__).with_name("curves.json")


@dataclass(slots=True)
class Recording:
    """One recorded run; `played` holds the evaluations given out so far."""

    recipe: dict[str, object]
    evals: list[EvalPoint]
    played: list[EvalPoint] = field(default_factory=list)

    def play(self, after_step: int) -> Iterator[EvalPoint]:
        for point in self.evals:
            self.played.append(point)
            if point.step > after_step:
                yield point

    def save(self, folder: Path) -> None:
        """Write the scores played so far as one float32 tensor in the safetensors format."""
        scores = [point.gold_reward for point in self.played]
        data = struct.pack(f"<{len(scores)}f", *scores)
        entry = {"dtype": "F32", "shape": [len(scores)], "data_offsets": [0, len(data)]}
        header = json.dumps({"recorded_gold_reward": entry}).encode()
        (folder / "policy.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)


def find(kl: float, seed: int, file: Path = CURVES) -> Recording:
    """Return the recorded run; raises SystemExit naming those there are when it is none of them."""
    runs = json.loads(file.read_text())["runs"]
    for run in runs:
        if (run["recipe"]["kl"], run["recipe"]["seed"]) == (kl, seed):
            return Recording(run["recipe"], [EvalPoint(**point) for point in run["evals"]])
    known = ", ".join(f"kl {run['recipe']['kl']:g} seed {run['recipe']['seed']}" for run in runs)
    raise SystemExit(f"no run with kl {kl:g} and seed {seed} was recorded; there are: {known}")
