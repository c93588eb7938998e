"""What every reader of traces makes: checked rows, and one trace sorted by submission."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from evalstopd.errors import WrongUsage
from evalstopd_sim.workload import Outline


class Row(NamedTuple):
    """One job of a trace, and where in the file it stands (`file:line`)."""

    where: str
    job_id: str
    submit_s: float
    gpus: int
    duration_s: float
    estimate_s: float | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """The jobs of a trace from time 0 on, where each stands in its file, and what was left out and why."""

    name: str
    outlines: tuple[Outline, ...]
    where: tuple[str, ...]
    left_out: tuple[tuple[str, int], ...]

    def fitting(self, gpus: int) -> "Trace":
        """Return the trace without the jobs larger than the cluster, their number among what was left out."""
        pairs = [(each, where) for each, where in zip(self.outlines, self.where, strict=True) if _size(each) <= gpus]
        dropped = len(self.outlines) - len(pairs)
        told = ((f"larger than {gpus} GPUs", dropped),) if dropped else ()
        return Trace(self.name, tuple(o for o, _ in pairs), tuple(w for _, w in pairs), self.left_out + told)

    def first(self, count: int) -> "Trace":
        """Return the first `count` jobs of the trace."""
        return Trace(self.name, self.outlines[:count], self.where[:count], self.left_out)

    def check_fits(self, gpus: int) -> None:
        """Raise WrongUsage, naming file and line, if a job is larger than the cluster."""
        for outline, where in zip(self.outlines, self.where, strict=True):
            if _size(outline) > gpus:
                raise WrongUsage(
                    f"{where}: job {outline.job_id!a} asks for {outline.gpus} GPUs, more than the cluster's {gpus}"
                )


def gather(name: str, rows: Iterable[Row | str]) -> Trace:
    """Sort rows into a trace; a text instead of a row says why that job is left out."""
    kept: list[Row] = []
    left_out: Counter[str] = Counter()
    for row in rows:
        if isinstance(row, str):
            left_out[row] += 1
        else:
            kept.append(row)
    if not kept:
        raise WrongUsage(f"{name}: no job in this trace can be used")
    kept.sort(key=lambda row: row.submit_s)
    start_s = kept[0].submit_s
    return Trace(
        name,
        tuple(Outline(r.job_id, r.submit_s - start_s, r.gpus, r.duration_s, r.estimate_s) for r in kept),
        tuple(row.where for row in kept),
        tuple(sorted(left_out.items())),
    )


def _size(outline: Outline) -> int:
    return outline.gpus or 1
