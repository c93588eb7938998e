"""Traces of real clusters as outlines of jobs: who came when, asked for what and ran for how long."""

from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

from evalstopd.errors import WrongUsage
from evalstopd_sim.traces.row import Row, Trace, gather
from evalstopd_sim.traces.sacct import read_accounting
from evalstopd_sim.traces.swf import read_swf
from evalstopd_sim.traces.table import read_csv
from evalstopd_sim.truth import TrueJob

# Small ones that ship with the package, by the name that `--trace` takes.
BUNDLED: Mapping[str, str] = MappingProxyType(
    {
        "golden": "golden_jobs_1000_64.csv",
        "kalos": "acme_kalos_completed.csv",
        "philly": "philly_sample.csv",
        "alibaba": "alibaba_openb2023_sample.csv",
    }
)


def read_trace(name: str) -> Trace:
    """Read a trace file, or a bundled one by name; the format is told from its first line.

    Raises WrongUsage with one line that names file and line, for the first row that makes no sense.
    """
    path = Path(name)
    if name in BUNDLED and not path.exists():
        return gather(name, read_csv(BUNDLED[name], _bundled(BUNDLED[name]).splitlines()))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUsage(f"{name}: cannot be read as a trace: {error}") from None
    return gather(name, _reader(text)(name, text.splitlines()))


def plain_jobs(trace: Trace) -> list[TrueJob]:
    """Return the trace's jobs without kind, curve or label, their length known exactly to everybody."""
    return [
        TrueJob(each.job_id, "", each.submit_s, each.gpus or 1, each.duration_s or 0.0, each.duration_s)
        for each in trace.outlines
    ]


def golden_jobs() -> list[TrueJob]:
    """Return the 1,000 jobs on which independent simulators agree."""
    return plain_jobs(read_trace("golden"))


def _reader(text: str) -> Callable[[str, list[str]], Iterable[Row | str]]:
    first = text.lstrip().partition("\n")[0]
    if first.startswith("{") or "|" in first:
        return read_accounting
    return read_csv if "," in first else read_swf


def _bundled(name: str) -> str:
    return (files("evalstopd_sim") / "data" / name).read_text(encoding="utf-8")
