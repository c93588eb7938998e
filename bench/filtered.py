"""A rule of another kind: the posterior label's own model, asked after every eval whether the level has fallen.

    python -m bench.filtered CURVES.jsonl [--half open]

Stop when the probability of a fall (bench.posterior, on the scores so far) is above p on each of the last m evals, not
before 6. Far too slow for a daemon; it is here to tell what a rule that knows the label's model could reach.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.fresh import LABELS
from bench.posterior import USUAL, Effort, chances_of_fall
from evalstopd.report.replay.halves import Half
from evalstopd.report.replay.history import History
from evalstopd.report.replay.judge import Outcome, outcome_at, upward
from evalstopd.report.replay.run import Ask, load
from evalstopd.report.replay.score import Row, score

FIRST = 6
MOST_EVALS = 20
LIMITS = (0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995)
PATIENCES = (1, 2, 3, 4)
HINDSIGHT = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_SEED = 1


def chances(histories: Sequence[History], effort: Effort = USUAL) -> list[list[float]]:
    """Return of each run the probability of a fall after each eval from the sixth to the last but one."""
    ups = [upward([each.score for each in history.evals], history.mode) for history in histories]
    prefixes = [(place, scores[:count]) for place, scores in enumerate(ups) for count in range(FIRST, len(scores))]
    found: list[list[float]] = [[] for _ in histories]
    for (place, _), chance in zip(
        prefixes, chances_of_fall([scores for _, scores in prefixes], _SEED, effort), strict=True
    ):
        found[place].append(chance)
    return found


def stopped_at(chances_so_far: Sequence[float], limit: float, patience: int) -> int | None:
    """Return the index of the eval at which the run is stopped; None if it never is."""
    high = 0
    for index, chance in enumerate(chances_so_far, FIRST - 1):
        high = high + 1 if chance > limit else 0
        if high >= patience:
            return index
    return None


def outcomes(
    histories: Sequence[History], found: Sequence[Sequence[float]], limit: float, patience: int
) -> list[Outcome]:
    """Return what the rule does to each run."""
    pairs = zip(histories, found, strict=True)
    return [outcome_at(history, stopped_at(each, limit, patience)) for history, each in pairs]


def lines(histories: Sequence[History], found: Sequence[Sequence[float]]) -> Iterator[str]:
    """Yield a line for each pair of limit and patience: recall and false stops by label, saved, losing."""
    for patience in PATIENCES:
        for limit in LIMITS:
            rows = [score("", label, outcomes(histories, found, limit, patience), 0.5) for label in LABELS]
            yield f"p {limit:<5} m {patience}  {_shares(rows)}  {_costs(rows[-1])}"


def in_hindsight(histories: Sequence[History], effort: Effort = USUAL) -> Iterator[str]:
    """Yield what the model says of the whole runs at these evals: a bound on what it can say before their end."""
    ups = [upward([each.score for each in history.evals], history.mode) for history in histories]
    found = chances_of_fall(ups, _SEED, effort)
    for limit in HINDSIGHT:
        pairs = zip(histories, found, strict=True)
        done = [outcome_at(history, 0 if chance > limit else None) for history, chance in pairs]
        yield f"p {limit:<5} whole runs  {_shares([score('', label, done, 0.5) for label in LABELS])}"


def _shares(rows: Sequence[Row]) -> str:
    known = [(row.label, row.recall.value, row.fpr.value) for row in rows]
    return "  ".join(f"{label} {a:.3f}/{b:.3f}" for label, a, b in known if a is not None and b is not None)


def _costs(row: Row) -> str:
    return f"saved {row.saved.value or 0:.3f}  losing {row.lost_over_10pct.value or 0:.3f}"


def main() -> None:
    """Print the sweep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("curves", type=Path)
    parser.add_argument("--half", type=Half, default=Half.OPEN)
    options = parser.parse_args()
    histories = load(Ask((options.curves,), max_evals=MOST_EVALS, primary=True, half=options.half))
    print("\n".join([*lines(histories, chances(histories)), *in_hindsight(histories)]))


if __name__ == "__main__":
    main()
