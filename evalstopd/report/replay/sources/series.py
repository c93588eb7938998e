"""What all sources share: series of points by metric become histories, one metric of a run being its primary one."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evalstopd.core.binding import CLUSTER_TAG, JOB_ID_TAG
from evalstopd.core.curve import curve, per_step
from evalstopd.core.logged import completed, is_beside
from evalstopd.core.model import Mode, Point
from evalstopd.core.naming import spoken_for
from evalstopd.report.replay.history import History, JobTag
from evalstopd.report.replay.labels import labels

_HELD_OUT = re.compile(r"(^|[/_.-])(eval|val|valid|validation|test|dev|heldout|held_out|gold)([/_.-]|$)", re.IGNORECASE)
_SPEED = re.compile(r"(runtime|per_second|epoch|_time|learning_rate)", re.IGNORECASE)
_COUNT = re.compile(r"(_n|_items|samples|example_count)$", re.IGNORECASE)
_FEWEST = 2


@dataclass(frozen=True, slots=True)
class Pick:
    """Which metric of a run is meant and which way is better; empty and None: guessed from the names.

    `items` is the number of items behind each eval of the metric, where the run does not say; 0: not known. `dataset`
    is meant where a tracker's metric has the evals of several.
    """

    metric: str = ""
    mode: Mode | None = None
    items: int = 0
    dataset: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a run's series come from; `job` is the Slurm job its tags name, `timed` if timestamps are a clock's."""

    name: str
    source: str
    family: str
    job: JobTag | None = None
    timed: bool = False


def histories(origin: Origin, series: Mapping[str, Sequence[Point]], pick: Pick) -> Iterator[History]:
    """Yield a run's held-out series (or the one that was named) as histories, labelled by their own shape.

    Without a name, the primary metric is the first in the alphabet that is not a loss.
    """
    keys = sorted(key for key in series if wanted(key, pick, series))
    chosen = next((key for key in keys if guessed_mode(key) is Mode.MAX), keys[0] if keys else "")
    for key in keys:
        points = per_step(completed(key, series[key], series, lambda name: series[name], pick.items), ended=True)
        if len(points) >= _FEWEST:
            yield _history(origin, key, points, pick, primary=key == chosen)


def _history(origin: Origin, key: str, points: Sequence[Point], pick: Pick, *, primary: bool) -> History:
    mode = pick.mode or guessed_mode(key)
    return History(
        name=origin.name,
        source=origin.source,
        family=origin.family,
        metric=key,
        mode=mode,
        evals=curve(points),
        labels=labels([each.value for each in points], mode),
        primary=primary,
        job=origin.job,
        times_s=tuple(point.timestamp_ms / 1000 for point in points) if origin.timed else (),
    )


def job_of(tags: Mapping[str, str]) -> JobTag | None:
    """Return the job that a run's tags name; None without the tag."""
    raw_id = tags.get(JOB_ID_TAG, "").strip()
    return JobTag(raw_id, tags.get(CLUSTER_TAG, "").strip()) if raw_id else None


def guessed_mode(metric: str) -> Mode:
    """Return the direction to replay a metric by: lower is better where any word of its name says so."""
    return Mode.MIN if Mode.MIN in spoken_for(metric) else Mode.MAX


def wanted(key: str, pick: Pick, names: Collection[str]) -> bool:
    """Tell whether a metric is one to replay: the one that was named, else any that its name calls held out.

    `names` are all of the run's: what is logged beside another metric to tell of its noise is none.
    """
    if pick.metric:
        return key == pick.metric
    known = _SPEED.search(key) or _COUNT.search(key) or is_beside(key, names)
    return bool(_HELD_OUT.search(key)) and not known
