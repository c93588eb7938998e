"""What the command line asks for, checked and turned into a setting and arms."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from sys import float_info

from evalstopd.core.detectors import DETECTORS
from evalstopd.core.spec import parse_spec
from evalstopd.errors import WrongUsage
from evalstopd_sim import bounds
from evalstopd_sim.arms import NONE, Arm, Setting
from evalstopd_sim.bounds import whole, within
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
    _check_counts(asked)
    cluster, preset = _cluster(asked), _preset(asked)
    trace = None if asked.trace is None else _trace(asked, cluster)
    jobs = len(trace.outlines) if trace else asked.jobs or DEFAULT_JOBS
    bounds.check_evals(preset, jobs, trace.outlines if trace else None)
    curves = read_curves(asked.curves) if asked.curves else None
    return Setting(preset, jobs, cluster, trace, curves)


def arms(asked: Request) -> tuple[Arm, ...]:
    """Return the base alone and, unless no rule was asked for, the base with the rule: at each eval, and polled."""
    rule = rule_text(asked.detector, asked.k, asked.preset)
    if rule == NONE:
        return (Arm(asked.base),)
    polls = dict.fromkeys(_poll(value) for value in asked.poll_s)
    return (Arm(asked.base), Arm(asked.base, rule), *(Arm(asked.base, rule, poll_s) for poll_s in polls))


def _poll(value: float) -> float:
    return within("--poll-s", value, 86400.0, 0.2)


def rule_text(name: str, k: int | None, preset: str = "paper") -> str:
    """Return the rule with `--k` put in; `drop-test` is the tuning that fits the preset.

    Raises WrongUsage where the rule has no k.
    """
    if name == "drop-test":
        name = "drop-test-safe" if preset == "real" else "drop-test-paper"
    if k is None:
        return name
    if parse_spec(name.rpartition("+")[2]).name != "k-declines":
        raise WrongUsage(f"--k belongs to the rule k-declines, not to {name!a}; rules: {', '.join(DETECTORS)}")
    if ":" in name:
        raise WrongUsage(f"the rule's parameters are given both by --detector and by --k: {name!a}, {bounds.short(k)}")
    return f"{name}:k={k}"


def _cluster(asked: Request) -> ClusterOptions:
    try:
        head = HeadOfLine(asked.head_of_line)
    except ValueError:
        raise WrongUsage(f"--head-of-line is strict or skip, not {asked.head_of_line!a}") from None
    options = ClusterOptions(asked.gpus, head, asked.preemption_overhead_s, asked.requeue_delay_s, asked.gpus_per_node)
    if asked.until_h is None:
        return options
    return replace(options, until_s=within("--until-h", asked.until_h, bounds.MOST_UNTIL_H) * 3600)


def _preset(asked: Request) -> Preset:
    chosen = PRESETS.get(asked.preset)
    if chosen is None:
        raise WrongUsage(f"unknown preset {asked.preset!a}; known: {', '.join(PRESETS)}")
    given: Mapping[str, object] = {
        **({} if asked.noise is None else {"noise": Noise((within("--noise", asked.noise, 10.0),))}),
        **({} if asked.hacking is None else {"hacking": within("--hacking", asked.hacking, 1.0)}),
        **({} if asked.load is None else {"load": within("--load", asked.load, 10.0, 0.001)}),
        **({} if asked.evals is None else _evals(asked.evals)),
        **({} if asked.estimates in (None, "trace") else {"estimate_sd": _estimate_sd(asked.estimates or "")}),
        "cancelled": within("--user-cancels", asked.user_cancels, 0.99),
    }
    return replace(chosen, **given)  # type: ignore[arg-type]


def _evals(text: str) -> dict[str, object]:
    """Read `8` (so many at equal fractions of a run) or `every:2700` (seconds of running)."""
    name, _, value = text.partition(":")
    try:
        if name == "every":
            return {"every_s": _positive(float(value))}
        return {"evals": (int(_positive(int(text))),), "every_s": None}
    except ValueError:
        raise WrongUsage(f"--evals is a number of evals or every:SECONDS, not {text[:40]!a}") from None


def _estimate_sd(text: str) -> float | None:
    """Read `exact` or `lognormal:SD`."""
    if text == "exact":
        return None
    name, _, value = text.partition(":")
    try:
        if name == "lognormal":
            return _positive(float(value), most=10.0)
    except ValueError:
        pass
    raise WrongUsage(f"--estimates is exact, lognormal:SD (above 0, up to 10) or trace, not {text[:40]!a}")


def _positive(value: float, most: float = float_info.max) -> float:
    if not 0 < value <= most:
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


def _check_counts(asked: Request) -> None:
    whole("--gpus", asked.gpus, bounds.MOST_GPUS)
    whole("--seeds", asked.seeds, bounds.MOST_SEEDS)
    whole("--first-seed", asked.first_seed, bounds.MOST_SEED, -bounds.MOST_SEED)
    whole("--jobs", DEFAULT_JOBS if asked.jobs is None else asked.jobs, bounds.MOST_JOBS)
    within("--preemption-overhead-s", asked.preemption_overhead_s, bounds.MOST_WAIT_S)
    within("--requeue-delay-s", asked.requeue_delay_s, bounds.MOST_WAIT_S)
