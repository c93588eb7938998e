"""Traces from Slurm's accounting: which of its records make a job of a trace."""

from collections.abc import Iterator

from evalstopd.slurmtext.sacct import Accounted, read_sacct
from evalstopd_sim.traces.row import Row


def read_accounting(name: str, lines: list[str]) -> Iterator[Row | str]:
    """Yield the rows of `sacct --parsable2 --allocations --format=JobID,Submit,Elapsed,State,AllocTRES,TimelimitRaw`.

    Or of `sacct --json`. Steps, jobs that had not ended, and jobs without GPUs or running time are left out.
    """
    for each in read_sacct(name, "\n".join(lines)):
        if isinstance(each, str):
            yield each
            continue
        yield _useless(each) or Row(each.where, each.job_id, each.submit_s, each.gpus, each.elapsed_s, each.limit_s)


def _useless(each: Accounted) -> str:
    if each.is_step:
        return "job step"
    if not each.is_over:
        return "not ended when the trace was taken"
    if each.gpus == 0:
        return "no GPU"
    return "" if each.elapsed_s else "no running time"
