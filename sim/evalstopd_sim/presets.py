"""The workloads by name. Preset `paper` is fitted by us: the paper tells none of these numbers."""

from dataclasses import dataclass
from types import MappingProxyType

from evalstopd_sim.curves import Level, gao_level, paper_level, real_level
from evalstopd_sim.truth import RLHF

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of job: its share of all jobs, mean duration in hours, the GPU counts it asks for with equal odds."""

    name: str
    share: float
    mean_h: float
    gpus: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Noise:
    """The standard deviation of an eval's noise: one value, or quantiles to draw from at equal distances."""

    quantiles: tuple[float, ...]

    @property
    def fixed(self) -> float | None:
        """Return the one value; None if it is drawn."""
        return self.quantiles[0] if len(self.quantiles) == 1 else None


@dataclass(frozen=True, slots=True)
class Preset:
    """A workload in numbers. `load` is rho = arrival rate x E[GPUs x duration] / GPUs; `cv` that of the durations.

    `peak` and `depth` are quantiles at equal distances (two values: uniform between them). `evals` are drawn
    with equal odds, at p = i / n; with `every_s` they come after fixed intervals of running instead.
    """

    name: str
    about: str
    kinds: tuple[Kind, ...]
    level: Level = paper_level
    hacking: float = 0.6
    load: float = 0.87
    cv: float = 0.5
    estimate_sd: float | None = 0.4
    noise: Noise = Noise((0.025,))
    evals: tuple[int, ...] = (8,)
    every_s: float | None = None
    peak: tuple[float, ...] = (0.55, 0.75)
    depth: tuple[float, ...] = (0.25, 0.65)
    healthy_depth: tuple[float, ...] = (0.0, 0.0)
    loss_rate: tuple[float, ...] = (2.0, 8.0)
    cancelled: float = 0.0


def _mix(lora: float, dpo: float, rlhf: float) -> tuple[Kind, ...]:
    return (Kind("lora", lora, 1.5, (1,)), Kind("dpo", dpo, 3.0, (2, 4)), Kind(RLHF, rlhf, 6.0, (4, 8)))


PRESETS = MappingProxyType(
    {
        preset.name: preset
        for preset in (
            Preset("paper", "RLHF-heavy, fitted to the published figures", _mix(0.1, 0.1, 0.8)),
            Preset("mixed", "the three kinds in about equal parts (our choice)", _mix(0.4, 0.3, 0.3)),
            Preset("lora-heavy", "mostly LoRA (our choice)", _mix(0.8, 0.1, 0.1)),
            Preset(
                "gao",
                "shallow declines as Gao et al. 2023 measured them",
                _mix(0.1, 0.1, 0.8),
                gao_level,
                healthy_depth=(0.0, 1.0),
            ),
            Preset(
                "real",
                "eval counts, noise, peaks and falls from the quantiles of 626 real curves",
                _mix(0.1, 0.1, 0.8),
                real_level,
                noise=Noise((0.0, 0.0425, 0.1172, 0.2212, 0.33)),
                evals=(10, 20, 50, 100),
                peak=(0.01, 0.075, 0.2, 0.47, 0.8),
                depth=(0.25, 0.75, 1.0, 1.0),
            ),
        )
    }
)
