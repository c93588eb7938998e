"""How fast the rules are: a verdict in runs of 100 evals, and replay of 1,000 curves. Exit code 1 beyond the limits.

Run from the root of the tree: python -m bench
"""

from collections.abc import Callable
from pathlib import Path
from random import Random
from time import perf_counter

from evalstopd.core.detectors import DETECTORS, detector
from evalstopd.core.detectors.verdict import Detector
from evalstopd.core.model import Eval, JobView
from evalstopd.report.replay.run import Ask, Places, replayed

SAMPLE = Path(__file__).parent.parent / "tests" / "data" / "eval_curves_sample.jsonl"
HISTORY = 100
NOISE = 0.03
# By the share of the run that is over: what the score is without its noise.
SHAPES: dict[str, Callable[[float], float]] = {
    "rising": lambda share: 0.2 + 0.6 * share,
    "flat": lambda share: 0.5,
    "up and down": lambda share: 0.2 + 2 * share * (1 - share),
}
MEAN_US, DEAREST_US = 6.0, 20.0
REPLAY_S = 5.0


def mean_us(rule: str, shape: str, repeats: int = 40) -> float:
    """Return the time of a verdict in microseconds, in the mean of a run: the best repeat, so that others' load is out.

    The run goes on where the rule would stop it.
    """
    stream, made = Random(2), detector(rule)
    evals = [Eval(i, SHAPES[shape](i / HISTORY) + stream.gauss(0.0, NOISE)) for i in range(HISTORY)]
    return min(_seconds(lambda: _judge(made, evals), 1) for _ in range(repeats)) / HISTORY * 1e6


def _judge(made: Detector, evals: list[Eval]) -> None:
    state = made.start(JobView("", 0.0, 0))
    for each in evals:
        state, _ = made.step(state, each)


def dearest_us(rule: str, batches: int = 40, each: int = 50) -> float:
    """Return the time of one verdict after 100 evals in microseconds: the best batch, so that others' load is out.

    The run has begun to decline, so that a rule has all of its work to do; a stop costs a few more for its words.
    """
    stream, made = Random(1), detector(rule)
    state = made.start(JobView("", 0.0, 0))
    for step in range(HISTORY):
        state, _ = made.step(state, Eval(step, stream.gauss(0.7, NOISE) - 0.4 * (step > 0.85 * HISTORY)))
    return min(_seconds(lambda: made.step(state, Eval(HISTORY, 0.3)), each) for _ in range(batches)) * 1e6


def replay_s(curves: int = 1000) -> float:
    """Return the time to replay the recommended rule and k = 2 over 1,000 curves of at most 20 evals, in seconds."""
    lines = len(SAMPLE.read_text(encoding="utf-8").splitlines())
    ask = Ask((SAMPLE,) * (-(-curves // lines)), max_evals=20)
    return _seconds(lambda: replayed(ask, Places(), json_out=True), 1)


def _seconds(call: Callable[[], object], times: int) -> float:
    start = perf_counter()
    for _ in range(times):
        call()
    return (perf_counter() - start) / times


def main() -> int:
    """Print every figure; return 1 if one that has a limit is beyond it."""
    print(f"microseconds a verdict: the mean of a run of {HISTORY} evals by its shape; the dearest after {HISTORY}")
    means: dict[str, list[float]] = {}
    dearest: dict[str, float] = {}
    for rule in sorted(DETECTORS):
        means[rule], dearest[rule] = [mean_us(rule, shape) for shape in SHAPES], dearest_us(rule)
        shapes = ", ".join(f"{shape} {spent:.1f}" for shape, spent in zip(SHAPES, means[rule], strict=True))
        print(f"{rule}: {shapes}; dearest {dearest[rule]:.1f}")
    spent_s = replay_s()
    print(f"replay of 1,000 curves, two rules: {spent_s:.2f} s (limit {REPLAY_S:g})")
    mean = sum(means["recommended"]) / len(SHAPES)
    print(f"recommended: {mean:.1f} in the mean of the shapes (limit {MEAN_US:g}), dearest limit {DEAREST_US:g}")
    return int(mean > MEAN_US or dearest["recommended"] > DEAREST_US or spent_s > REPLAY_S)
