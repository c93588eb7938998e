"""Traces in the Standard Workload Format: processors stand for GPUs."""

from collections.abc import Iterator

from evalstopd.errors import WrongUsage
from evalstopd.slurmtext.numbers import number
from evalstopd_sim.traces.row import Row

_FIELDS = 18


def read_swf(name: str, lines: list[str]) -> Iterator[Row | str]:
    """Yield the rows of an SWF trace; -1 means unknown there. Jobs without processors or running time are left out."""
    for place, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith(";"):
            yield _row(f"{name}:{place}", line.split())


def _row(where: str, cells: list[str]) -> Row | str:
    if len(cells) != _FIELDS:
        raise WrongUsage(f"{where}: {len(cells)} fields where SWF has {_FIELDS}")
    known = {n: number(cells[n - 1], f"field {n}", where) for n in (2, 4, 5, 8, 9) if cells[n - 1] != "-1"}
    gpus = int(known.get(5) or known.get(8) or 0)
    duration_s = known.get(4, 0.0)
    if gpus == 0 or duration_s == 0 or 2 not in known:
        return "no processors" if gpus == 0 else "no running time or submit time"
    return Row(where, cells[0], known[2], gpus, duration_s, known.get(9))
