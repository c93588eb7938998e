"""Labels for curves: by their own shape, by the posterior, and by what each checkpoint was truly worth.

    python -m bench.label IN.jsonl OUT.jsonl        writes the curves with all labels
    python -m bench.label --agreement LABELLED.jsonl  how the posterior label here agrees with the one in a file

The true label is the rule of `label` (docs/rules.md) on the checkpoints' truth, which a curve has where the
experiment knows it: an end more than 4 noises and a tenth of the range below the peak, never to come back. The noise
there is the truth's own, from one checkpoint to the next. It is the one that counts; the others are for comparison.
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.posterior import chances_of_fall, label_of
from evalstopd.core.model import Mode
from evalstopd.report.replay.judge import upward
from evalstopd.report.replay.labels import by_noise, labels

_SEED = 1
_FALLEN = {"declining", "declining-from-start"}
_Row = dict[str, Any]


def labelled(rows: Sequence[_Row]) -> list[_Row]:
    """Return the curves with `label`, `label_sigma_free`, `label_boot`, `p_decline`, `label_agreed`, `label_true`."""
    chances = chances_of_fall([_ups(row, "values") for row in rows], _SEED)
    return [_with_labels(row, chance) for row, chance in zip(rows, chances, strict=True)]


def _with_labels(row: _Row, chance: float) -> _Row:
    made = labels(_scores(row), _mode(row)) | {"label_boot": label_of(chance)}
    made["label_agreed"] = agreed(made["label"], made["label_boot"])
    if "truth" in row:
        made["label_true"] = by_noise(_ups(row, "truth"))
    return row | made | {"p_decline": round(chance, 4)}


def agreed(by_sigma: str, by_posterior: str) -> str:
    """Return the label that both give, ambiguous where they differ; a fall from the start on is a fall."""
    plain = "declining" if by_sigma in _FALLEN else by_sigma
    return plain if plain == by_posterior else "ambiguous"


def agreement(rows: Sequence[_Row]) -> Counter[tuple[str, str]]:
    """Return how often each pair of posterior labels occurs: the file's, and the one made here."""
    chances = chances_of_fall([_ups(row, "values") for row in rows], _SEED)
    return Counter((row["label_boot"], label_of(chance)) for row, chance in zip(rows, chances, strict=True))


def _scores(row: _Row) -> list[float]:
    return [float(value) for value in row["values"] if value is not None]


def _ups(row: _Row, key: str) -> list[float]:
    return upward([value for value in row[key] if value is not None], _mode(row))


def _mode(row: _Row) -> Mode:
    return Mode.MAX if row.get("higher_is_better", True) else Mode.MIN


def read(path: Path) -> list[_Row]:
    """Return the curves of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def main() -> None:
    """Label a file, or tell the agreement with one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("curves", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--agreement", action="store_true")
    options = parser.parse_args()
    rows = read(options.curves)
    if options.agreement:
        pairs = agreement([row for row in rows if row.get("label_boot")])
        for (theirs, ours), count in sorted(pairs.items()):
            print(f"{count:5d} in the file {theirs:10s} here {ours}")
        print(f"the same: {sum(n for (a, b), n in pairs.items() if a == b)} of {pairs.total()}")
    elif options.out is None:
        parser.error("name a file to write to, or ask for --agreement")
    else:
        lines = (json.dumps(row, separators=(",", ":")) for row in labelled(rows))
        options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
