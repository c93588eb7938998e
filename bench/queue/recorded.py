"""Slurm's programs as recordings: one real record of squeue, told of as many tasks as wanted, each with its run."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from evalstopd.adapters.slurm.run import Answer

RECORD = Path(__file__).with_name("squeue_record.json")


def run_of(task: int) -> str:
    """Return the id of a task's run."""
    return f"{task:032x}"


class Recorded:
    """A Runner that answers squeue; the text is made before, so that a call costs no more than to read it."""

    def __init__(self, jobs: int) -> None:
        self._record: dict[str, str] = json.loads(RECORD.read_text())
        self._jobs = jobs
        self._text, self._form = "", ""
        self.calls: list[str] = []

    def __call__(self, argv: Sequence[str], env: Mapping[str, str]) -> Answer:
        """Answer squeue in the format that is asked for, with this call's own separators."""
        self.calls.append(argv[0])
        if argv[0] != "squeue":
            return Answer(1, "", f"{argv[0]} was not recorded")
        form = [part.partition(":") for part in env["SQUEUE_FORMAT2"].split(",")]
        (_, _, middle), (_, _, end) = form[0], form[-1]
        if not self._text:
            self._text = "".join(self._line([name for name, _, _ in form], task) for task in range(self._jobs))
        return Answer(0, self._text.replace("\x1e", end).replace("\x1f", middle), "")

    def _line(self, names: Sequence[str], task: int) -> str:
        own = {"JobID": str(1_000 + task), "ArrayTaskID": str(task), "Comment": f"mlflow_run={run_of(task)}"}
        record = self._record | own
        return "\x1f".join(record[name] for name in names) + "\x1e\n"
