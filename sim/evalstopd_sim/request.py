"""What the command line asks for, checked and turned into a setting and arms."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite

from evalstopd.core.detectors import DETECTORS
from evalstopd.core.spec import parse_spec
from evalstopd.errors import WrongUsage
from evalstopd_sim.arms import NONE, Arm, Setting
from evalstopd_sim.deal import read_curves
from evalstopd_sim.options import ClusterOptions, HeadOfLine
from evalstopd_sim.presets import PRESETS, Noise, Preset
from evalstopd_sim.traces import read_trace
from evalstopd_sim.traces.row import Trace
from evalstopd_sim.workload import Outline


@dataclass(frozen=True, slots=True)
class Request:
    """The options of `simulate`, as given."""

    gpus: int = 64
    preset: str = "paper"
    base: str = "srtf-est"
    detector: str = "k-declines"
    k: int | None = None
    jobs: int | None = None
    seeds: int = 20
    first_seed: int = 0
    noise: float | None = None
    hacking: float | None = None
    load: float | None = None
    evals: str | None = None
    trace: str | None = None
    curves: str | None = None
    estimates: str | None = None
    user_cancels: float = 0.0
    head_of_line: str = "skip"
    preemption_overhead_s: float = 120.0
    requeue_delay_s: float = 0.0
    gpus_per_node: int | None = None
    until_h: float | None = None
    drop_larger: bool = False
    poll_s: tuple[float, ...] = ()


DEFAULT_JOBS = 500


def setting(asked: Request) -> Setting:
    """Return the world that was asked for. Raises WrongUsage naming the option that makes no sense."""
    cluster = _cluster(asked)
    _check_count("--seeds", asked.seeds)
    if asked.jobs is not None:
        _check_count("--jobs", asked.jobs)
    trace = None if asked.trace is None else _trace(asked, cluster)
    jobs = len(trace.outlines) if trace else asked.jobs or DEFAULT_JOBS
    curves = read_curves(asked.curves) if asked.curves else None
    return Setting(_preset(asked), jobs, cluster, trace, curves)


def arms(asked: Request) -> tuple[Arm, ...]:
    """Return the base alone and, unless no rule was asked for, the base with the rule: at each eval, and polled."""
    rule = rule_text(asked.detector, asked.k, asked.preset)
    if rule == NONE:
        return (Arm(asked.base),)
    polls = dict.fromkeys(_poll(value) for value in asked.poll_s)
    return (Arm(asked.base), Arm(asked.base, rule), *(Arm(asked.base, rule, poll_s) for poll_s in polls))


def _poll(value: float) -> float:
    if not 0.2 <= value <= 86400:
        raise WrongUsage(f"--poll-s must be between 0.2 s and a day, not {value}")
    return value


def rule_text(name: str, k: int | None, preset: str = "paper") -> str:
    """Return the rule with `--k` put in; `drop-test` is the tuning that fits the preset.

    Raises WrongUsage where the rule has no k.
    """
    if name == "drop-test":
        name = "drop-test-safe" if preset == "real" else "drop-test-paper"
    if k is None or name == NONE:
        return name
    if parse_spec(name.rpartition("+")[2]).name != "k-declines":
        raise WrongUsage(f"--k belongs to the rule k-declines, not to {name!a}; rules: {', '.join(DETECTORS)}")
    return f"{name.partition(':')[0]}:k={k}"


def _cluster(asked: Request) -> ClusterOptions:
    try:
        head = HeadOfLine(asked.head_of_line)
    except ValueError:
        raise WrongUsage(f"--head-of-line is strict or skip, not {asked.head_of_line!a}") from None
    options = ClusterOptions(asked.gpus, head, asked.preemption_overhead_s, asked.requeue_delay_s, asked.gpus_per_node)
    return options if asked.until_h is None else replace(options, until_s=asked.until_h * 3600)


def _preset(asked: Request) -> Preset:
    chosen = PRESETS.get(asked.preset)
    if chosen is None:
        raise WrongUsage(f"unknown preset {asked.preset!a}; known: {', '.join(PRESETS)}")
    given: Mapping[str, object] = {
        **({} if asked.noise is None else {"noise": Noise((_within("--noise", asked.noise, 10.0),))}),
        **({} if asked.hacking is None else {"hacking": _within("--hacking", asked.hacking, 1.0)}),
        **({} if asked.load is None else {"load": _within("--load", asked.load, 10.0)}),
        **({} if asked.evals is None else _evals(asked.evals)),
        **({} if asked.estimates in (None, "trace") else {"estimate_sd": _estimate_sd(asked.estimates or "")}),
        "cancelled": _within("--user-cancels", asked.user_cancels, 0.99),
    }
    if asked.load is not None and asked.load <= 0:
        raise WrongUsage("--load must be above 0")
    return replace(chosen, **given)  # type: ignore[arg-type]


def _evals(text: str) -> dict[str, object]:
    """Read `8` (so many at equal fractions of a run) or `every:2700` (seconds of running)."""
    name, _, value = text.partition(":")
    try:
        if name == "every":
            return {"every_s": _positive(float(value))}
        return {"evals": (int(_positive(int(text))),), "every_s": None}
    except ValueError:
        raise WrongUsage(f"--evals is a number of evals or every:SECONDS, not {text!a}") from None


def _estimate_sd(text: str) -> float | None:
    """Read `exact` or `lognormal:SD`."""
    if text == "exact":
        return None
    name, _, value = text.partition(":")
    try:
        if name == "lognormal":
            return _positive(float(value))
    except ValueError:
        pass
    raise WrongUsage(f"--estimates is exact, lognormal:SD or trace, not {text!a}")


def _positive(value: float) -> float:
    if not (isfinite(value) and value > 0):
        raise ValueError
    return value


def _trace(asked: Request, cluster: ClusterOptions) -> Trace:
    trace = read_trace(asked.trace or "")
    if asked.drop_larger:
        trace = trace.fitting(cluster.gpus)
    if asked.jobs is not None:
        trace = trace.first(asked.jobs)
    trace.check_fits(cluster.gpus)
    if asked.estimates == "trace":
        return trace
    blind = tuple(Outline(o.job_id, o.submit_s, o.gpus, o.duration_s) for o in trace.outlines)
    return replace(trace, outlines=blind)


def _within(option: str, value: float, most: float) -> float:
    if not 0 <= value <= most:
        raise WrongUsage(f"{option} must be between 0 and {most:g}, not {value}")
    return value


def _check_count(option: str, value: int) -> None:
    if value < 1:
        raise WrongUsage(f"{option} must be at least 1, not {value}")
