"""Checkpoints as trainers write them: `checkpoint-<step>`, state file last, the oldest deleted."""

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .points import EvalPoint

NAME = re.compile(r"checkpoint-(\d+)")
STATE = "trainer_state.json"


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints below one output folder; at most `limit` of them are kept (HF: save_total_limit)."""

    output_dir: Path
    limit: int

    def save(
        self,
        history: Sequence[EvalPoint],
        config: Mapping[str, object],
        write_weights: Callable[[Path], None],
    ) -> Path:
        """Write the checkpoint of the last point in `history`, then rotate.

        Its state file appears last and whole: a checkpoint is complete once that is there.
        """
        folder = self.output_dir / f"checkpoint-{history[-1].step}"
        if folder.exists():
            # An earlier life was ended while it wrote this one.
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        write_weights(folder)
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        _write_state(folder, history)
        self._rotate()
        return folder

    def newest_complete(self) -> tuple[Path, list[EvalPoint]] | None:
        """Return where an earlier life may be taken up, and the evaluations it had made."""
        for folder in reversed(self._by_step()):
            if (folder / STATE).is_file():
                return folder, _read_history(folder)
        return None

    def _by_step(self) -> list[Path]:
        found = [path for path in self.output_dir.glob("checkpoint-*") if NAME.fullmatch(path.name)]
        return sorted(found, key=lambda path: int(path.name.removeprefix("checkpoint-")))

    def _rotate(self) -> None:
        for folder in self._by_step()[: -self.limit]:
            shutil.rmtree(folder)


def _write_state(folder: Path, history: Sequence[EvalPoint]) -> None:
    log = [{"step": point.step, **point.metrics()} for point in history]
    partial = folder / f"{STATE}.partial"
    partial.write_text(json.dumps({"global_step": history[-1].step, "log_history": log}, indent=2) + "\n")
    partial.replace(folder / STATE)


def _read_history(folder: Path) -> list[EvalPoint]:
    log = json.loads((folder / STATE).read_text())["log_history"]
    return [EvalPoint.from_metrics(entry) for entry in log]
