"""From samples over seeds to rows: a mean for every score, and paired differences to the base policy alone."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields

from evalstopd.errors import WrongUsage
from evalstopd_sim.arms import Arm, Sample, make_rule
from evalstopd_sim.score import Scores, mean
from evalstopd_sim.stats import Estimate, estimate
from evalstopd_sim.through import Detections, daemon_rule

SCORES = tuple(field.name for field in fields(Scores))

# What is compared with the base, in per cent of it, seed by seed.
_COMPARED: Mapping[str, Callable[[Sample], float | None]] = {
    "jct_mean_s": lambda sample: sample.scores.jct_mean_s,
    "jct_p95_s": lambda sample: sample.scores.jct_p95_s,
    "w1_gpu_h": lambda sample: sample.scores.w1_gpu_h,
    "w2_gpu_h": lambda sample: sample.scores.w2_gpu_h,
    "w3_gpu_h": lambda sample: sample.scores.w3_gpu_h,
}


@dataclass(frozen=True, slots=True)
class Row:
    """One arm over all seeds: means of the scores where they are defined, and changes against its base in per cent.

    `changes["jct_kept_mean_s"]` compares the jobs that this arm did not stop with the same jobs under the base.
    `detections` are sums over the seeds, of an arm run through the daemon.
    """

    arm: Arm
    label: str
    seeds: int
    means: Mapping[str, float | None]
    spreads: Mapping[str, Estimate]
    changes: Mapping[str, Estimate]
    detections: Detections | None = None


def rows(arms: Sequence[Arm], by_seed: Sequence[Sequence[Sample]]) -> list[Row]:
    """Return one row for each arm; `by_seed` has for each seed one sample for each arm."""
    columns = {arm: [samples[place] for samples in by_seed] for place, arm in enumerate(arms)}
    return [_row(arm, columns[arm], columns.get(Arm(arm.base))) for arm in arms]


def _row(arm: Arm, samples: Sequence[Sample], base: Sequence[Sample] | None) -> Row:
    known = {name: _known([getattr(sample.scores, name) for sample in samples]) for name in SCORES}
    return Row(
        arm=arm,
        label=label(arm),
        seeds=len(samples),
        means={name: mean(values) for name, values in known.items()},
        spreads={name: estimate(values) for name, values in known.items() if values},
        changes={} if base is None or arm == Arm(arm.base) else _changes(samples, base),
        detections=_all_detections([each.detections for each in samples if each.detections is not None]),
    )


def _all_detections(each: Sequence[Detections]) -> Detections | None:
    if not each:
        return None
    return Detections(**{field.name: sum(getattr(one, field.name) for one in each) for field in fields(Detections)})


def label(arm: Arm) -> str:
    """Return the rule's name for tables. Raises WrongUsage for an unknown rule."""
    try:
        rule = make_rule(arm.rule)
    except ValueError as error:
        raise WrongUsage(str(error)) from None
    if arm.poll_s is None:
        return rule.label
    daemon_rule(rule)
    return f"{rule.label}, polled {arm.poll_s:g} s"


def _changes(samples: Sequence[Sample], base: Sequence[Sample]) -> dict[str, Estimate]:
    pairs = {name: [(read(b), read(s)) for b, s in zip(base, samples, strict=True)] for name, read in _COMPARED.items()}
    pairs["jct_kept_mean_s"] = [(sample.base_kept_s, sample.scores.jct_kept_mean_s) for sample in samples]
    percents = {name: _percents(each) for name, each in pairs.items()}
    return {name: estimate(values) for name, values in percents.items() if values}


def _percents(pairs: Sequence[tuple[float | None, float | None]]) -> list[float]:
    return [100 * (after / before - 1) for before, after in pairs if before and after is not None]


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def as_json(row: Row) -> dict[str, object]:
    """Return a row as plain data, in the shape that `simulate --json` documents."""
    changes = {name: _estimate_json(each) for name, each in row.changes.items()}
    means = {name: _whole(value) if name in _COUNTS else value for name, value in row.means.items()}
    shown: dict[str, object] = {
        "base": row.arm.base,
        "detector": row.label,
        "seeds": row.seeds,
        **means,
        "change_percent": changes,
    }
    return shown if row.detections is None else {**shown, "through_daemon": _daemon_json(row)}


def _daemon_json(row: Row) -> dict[str, object]:
    return {"poll_s": row.arm.poll_s, **({} if row.detections is None else asdict(row.detections))}


_COUNTS = ("jobs", "unfinished")


def _whole(value: float | None) -> float | None:
    return int(value) if value is not None and value == int(value) else value


def _estimate_json(each: Estimate) -> dict[str, float | None]:
    bounded = each.p_value is not None
    return {
        "mean": each.mean,
        "ci95_low": each.low if bounded else None,
        "ci95_high": each.high if bounded else None,
        "p_value": each.p_value,
    }
