"""Train the runs of the plan and write their curves, one a line, with labels by what each checkpoint was worth.

    PYTHONPATH=examples python -m curves.collect --family supervised supervised.jsonl

Needs torch and scikit-learn; one thread. Minutes of one core a family; the same curves on one machine each time.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import torch

from .checkpoint import Checkpoint
from .plan import FAMILIES, RUNS
from .source import Source

_DIGITS = 5  # significant ones that are written


def curves(family: str, source: Source) -> Iterator[dict[str, Any]]:
    """Train all runs of a source; the seed hangs on its name alone, so that sources may come and go."""
    seed = crc32(f"{family} {source.name}".encode()) % 1_000_000 * 100
    runs = zip(*source.recipe.train(seed, RUNS[family]), strict=True)
    for number, checkpoints in enumerate(runs):
        yield _line(family, source, number, checkpoints)


def _line(family: str, source: Source, number: int, checkpoints: Sequence[Checkpoint]) -> dict[str, Any]:
    return {
        "id": f"{family}/{source.name}/{number}",
        "repo": "generated-here/curves",
        "family": family,
        "kind": "eval",
        "algorithm": f"{family} {source.name}",
        "metric": source.metric,
        "higher_is_better": source.higher_is_better,
        "primary": True,
        "pushed": source.pushed,
        "steps": [each.step for each in checkpoints],
        "values": _short(each.score for each in checkpoints),
        "eval_stderrs": _short(each.stderr for each in checkpoints),
        "truth": _short(each.truth for each in checkpoints),
        "truth_stderrs": _short(each.truth_stderr for each in checkpoints),
    }


def _short(values: Iterator[float]) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in values]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--family", choices=FAMILIES, action="append", help="default: all")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with options.out.open("w") as out:
        for family in options.family or FAMILIES:
            for source in FAMILIES[family]():
                begun = time.process_time()
                for line in curves(family, source):
                    out.write(json.dumps(line, separators=(",", ":")) + "\n")
                out.flush()
                print(f"{family}: {source.name}: {time.process_time() - begun:.0f} s of one core", flush=True)


if __name__ == "__main__":
    main()
