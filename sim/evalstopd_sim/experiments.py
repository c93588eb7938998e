"""Every experiment of the paper, and those it should have had, as data."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evalstopd_sim.arms import Arm, Setting
from evalstopd_sim.curves import Fate, gao_level
from evalstopd_sim.deal import read_curves
from evalstopd_sim.options import ClusterOptions
from evalstopd_sim.presets import PRESETS, Noise, Preset

PAPER = PRESETS["paper"]
K2 = "k-declines:k=2"
SRTF = "srtf-est"
# The tuning for runs of about 8 evals that still rise, and the one that is safe on plateaus.
DROP_PAPER, DROP_SAFE = "drop-test-paper", "drop-test-safe"
JOBS = 500


@dataclass(frozen=True, slots=True)
class Point:
    """One point of an experiment: a setting with its arms."""

    at: str
    setting: Setting
    arms: tuple[Arm, ...]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A name, what it asks, what its points vary, the scores to draw, and the points."""

    name: str
    title: str
    axis: str
    drawn: tuple[str, ...]
    points: tuple[Point, ...]


def _world(preset: Preset = PAPER) -> Setting:
    return Setting(preset, JOBS, ClusterOptions())


def _with(base: str, *rules: str) -> tuple[Arm, ...]:
    return (Arm(base), *(Arm(base, rule) for rule in rules))


def _main() -> Experiment:
    rules = (
        K2,
        "stop-at-oracle",
        "elapsed-fraction",
        "loss-plateau",
        "patience",
        f"put-last+{K2}",
        DROP_PAPER,
        "recommended",
        "peak-oracle",
    )
    points = (Point("paper", _world(), _with(SRTF, *rules)),)
    return Experiment("main", "EvalStop and its competitors over SRTF-Est", "", ("jct_mean_s", "w3_gpu_h"), points)


def _composability() -> Experiment:
    bases = ("fifo", "sjf-est", SRTF, "loss-aware", "las", "goodput", "slaq")
    points = tuple(Point(base, _world(), _with(base, K2)) for base in bases)
    return Experiment("composability", "EvalStop round every base", "base", ("jct_mean_s", "w3_gpu_h"), points)


def _noise() -> Experiment:
    rules = (K2, DROP_PAPER)
    points = tuple(
        Point(f"{sigma:g}", _world(replace(PAPER, noise=Noise((sigma,)))), _with(SRTF, *rules))
        for sigma in (0.01, 0.025, 0.05, 0.08, 0.12)
    )
    return Experiment("noise", "Noise of the evals", "sigma", ("precision", "recall", "fpr_healthy_rlhf"), points)


def _base_rate() -> Experiment:
    points = tuple(
        Point(f"{share:g}", _world(replace(PAPER, hacking=share)), _with(SRTF, K2)) for share in (0.2, 0.4, 0.6, 0.8)
    )
    return Experiment("base-rate", "Share of RLHF jobs that hack", "share", ("precision", "recall", "fpr"), points)


def _threshold() -> Experiment:
    points = tuple(Point(f"{k}", _world(), _with(SRTF, f"k-declines:k={k}")) for k in range(1, 6))
    return Experiment("threshold", "Declines that stop a job", "k", ("precision", "recall", "f1"), points)


def _load() -> Experiment:
    points = tuple(
        Point(f"{rho:g}", _world(replace(PAPER, load=rho)), _with(SRTF, K2)) for rho in (0.5, 0.7, 0.87, 0.95)
    )
    return Experiment("load", "Offered load", "rho", ("jct_mean_s", "w3_gpu_h"), points)


def _evals_per_job() -> Experiment:
    rules = (K2, DROP_PAPER, DROP_SAFE, "recommended")
    counts = [Point(f"{n}", _world(replace(PAPER, evals=(n,))), _with(SRTF, *rules)) for n in (6, 8, 10, 20, 50)]
    walls = [
        Point(f"every {every_s / 60:g} min", _world(replace(PAPER, every_s=float(every_s))), _with(SRTF, *rules[:2]))
        for every_s in (5400, 2700)
    ]
    return Experiment(
        "evals-per-job", "Evals a job", "evals", ("fpr_healthy_rlhf", "precision", "recall"), (*counts, *walls)
    )


def _gao() -> Experiment:
    rules = (K2, DROP_PAPER)
    points = tuple(
        Point(
            f"{sigma:g} ({_mean_fall() / sigma:.0f})",
            _world(replace(PRESETS["gao"], noise=Noise((sigma,)))),
            _with(SRTF, *rules),
        )
        for sigma in (0.001, 0.005, 0.01, 0.025, 0.05)
    )
    return Experiment(
        "gao", "Shallow declines (Gao et al. 2023)", "sigma (mean fall / sigma)", ("precision", "recall"), points
    )


def _mean_fall() -> float:
    """Return how far a hacking run of preset `gao` falls from its peak to its end, averaged over its peaks."""
    low, high = PRESETS["gao"].peak
    peaks = [low + (high - low) * (i + 0.5) / 100 for i in range(100)]
    return sum(gao_level(peak, Fate(peak, 0.0)) - gao_level(1.0, Fate(peak, 0.0)) for peak in peaks) / len(peaks)


def _real() -> Experiment:
    rules = (K2, "k-declines:k=3", "patience", DROP_SAFE, "recommended")
    real = PRESETS["real"]
    drawn = [Point(f"{n} evals", _world(replace(real, evals=(n,))), _with(SRTF, *rules)) for n in real.evals]
    dealt = Point("real curves", replace(_world(), curves=read_curves("curves")), _with(SRTF, *rules))
    return Experiment("real", "Evals as they are measured", "evals", ("fpr_healthy_rlhf", "recall"), (*drawn, dealt))


_MAKERS = (_main, _composability, _noise, _base_rate, _threshold, _load, _evals_per_job, _gao, _real)


def experiments(names: Sequence[str] = ("all",)) -> tuple[Experiment, ...]:
    """Return the experiments of these names, in the report's order. Raises ValueError for an unknown one."""
    known = {experiment.name: experiment for experiment in (make() for make in _MAKERS)}
    for name in names:
        if name not in known and name != "all":
            raise ValueError(f"unknown experiment {name!a}; known: {', '.join([*known, 'all'])}")
    return tuple(each for name, each in known.items() if name in names or "all" in names)
