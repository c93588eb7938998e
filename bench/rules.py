"""How fast the rules are: one verdict after 100 evals, and replay of 1,000 curves. Exit code 1 beyond the limits.

Run from the root of the tree: python -m bench
"""

from collections.abc import Callable
from pathlib import Path
from random import Random
from time import perf_counter

from evalstopd.core.detectors import DETECTORS, detector
from evalstopd.core.model import Eval, JobView
from evalstopd.report.replay.run import Ask, Places, replayed

SAMPLE = Path(__file__).parent.parent / "tests" / "data" / "eval_curves_sample.jsonl"
HISTORY = 100
VERDICT_US = 20.0
REPLAY_S = 5.0


def verdict_us(rule: str, batches: int = 40, each: int = 50) -> float:
    """Return the time of one verdict after 100 evals in microseconds: the best batch, so that others' load is out.

    The run has begun to decline, so that a rule has all of its work to do; a stop costs a few more for its words.
    """
    stream, made = Random(1), detector(rule)
    state = made.start(JobView("", 0.0, 0))
    for step in range(HISTORY):
        state, _ = made.step(state, Eval(step, stream.gauss(0.7, 0.03) - 0.4 * (step > 0.85 * HISTORY)))
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
    verdicts = {rule: verdict_us(rule) for rule in sorted(DETECTORS)}
    for rule, spent in verdicts.items():
        print(f"{rule}: {spent:.1f} us a verdict after {HISTORY} evals")
    spent_s = replay_s()
    print(f"replay of 1,000 curves, two rules: {spent_s:.2f} s (limit {REPLAY_S:g})")
    print(f"limit of recommended: {VERDICT_US:g} us")
    return int(verdicts["recommended"] > VERDICT_US or spent_s > REPLAY_S)
