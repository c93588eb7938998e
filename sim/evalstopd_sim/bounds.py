"""How much the command line may ask for: past these a run would fill the memory or never end, so it is refused."""

from evalstopd.errors import WrongUsage
from evalstopd_sim.presets import HOUR_S, Preset
from evalstopd_sim.workload import Outline

MOST_SEEDS = 10_000
MOST_JOBS = 1_000_000
MOST_GPUS = 100_000
MOST_PROCESSES = 256
MOST_SEED = 2**53
MOST_WAIT_S = 30 * 24 * HOUR_S
MOST_UNTIL_H = 1e6
MOST_EVALS = 10_000_000


def whole(option: str, value: int, most: int, least: int = 1) -> int:
    """Return a count within its bound. Raises WrongUsage naming the option."""
    if not least <= value <= most:
        raise WrongUsage(f"{option} must be at least {least} and at most {most}, not {short(value)}")
    return value


def within(option: str, value: float, most: float, least: float = 0.0) -> float:
    """Return a number within its bound, never NaN. Raises WrongUsage naming the option."""
    if not least <= value <= most:
        raise WrongUsage(f"{option} must be between {least:g} and {most:g}, not {value}")
    return value


def check_evals(preset: Preset, jobs: int, outlines: tuple[Outline, ...] | None) -> None:
    """Raise WrongUsage where one seed's jobs have more than MOST_EVALS evals, as far as the preset tells."""
    made: float = jobs * (sum(preset.evals) // len(preset.evals))
    if preset.every_s is not None:
        made = _running_s(preset, jobs, outlines) / preset.every_s
    if made > MOST_EVALS:
        raise WrongUsage(
            f"--evals and --jobs make {_about(made)} evals a seed, more than {MOST_EVALS}: ask for fewer of either"
        )


def _running_s(preset: Preset, jobs: int, outlines: tuple[Outline, ...] | None) -> float:
    drawn_s = sum(kind.share * kind.mean_h for kind in preset.kinds) * HOUR_S
    if outlines is None:
        return jobs * drawn_s
    return sum(drawn_s if each.duration_s is None else each.duration_s for each in outlines)


def _about(count: float) -> str:
    return short(count) if isinstance(count, int) else f"{count:.3g}"


def short(value: int) -> str:
    """Return a number that may have thousands of digits in a few."""
    return str(value) if abs(value) < 10**20 else "a number of more than 20 digits"
