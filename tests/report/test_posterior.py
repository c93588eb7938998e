"""The posterior label: what falls, what does not, and how far it agrees with the labels of the sample."""

import json
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("numpy")

from bench.label import agreed, agreement, labelled, read
from bench.posterior import Effort, chances_of_fall, label_of
from evalstopd.report.replay.history import LABELS

SAMPLE = Path(__file__).parent.parent / "data" / "eval_curves_sample.jsonl"
QUICK = Effort(chains=4, sweeps=150)


def noisy(levels: list[float]) -> list[float]:
    stream = Random(3)
    return [level + stream.gauss(0, 0.05) for level in levels]


def test_a_clear_fall_is_certain_and_a_rise_or_a_plateau_is_none() -> None:
    rise = [min(1.0, i / 8) for i in range(20)]
    fall = [*rise[:10], *(1 - 0.1 * i for i in range(10))]
    falling, rising = chances_of_fall([noisy(fall), noisy(rise)], 1, QUICK)
    assert label_of(falling) == "declining"
    assert label_of(rising) == "healthy"


def test_a_late_best_is_no_fall() -> None:
    """A fall after the first four fifths is too short to tell of."""
    late = [i / 18 for i in range(18)] + [0.6, 0.6]
    assert chances_of_fall([late], 1, QUICK)[0] < 0.5


def test_what_cannot_fall_has_not_fallen() -> None:
    assert chances_of_fall([[1.0] * 10, [3.0, 2.0, 1.0], []], 1, QUICK) == [0.0, 0.0, 0.0]


def test_chances_stand_at_the_places_of_their_curves() -> None:
    """Curves of several lengths are sampled apart and come back in their order, the same for the same seed."""
    fall, rise = [*map(float, range(8)), *(8.0 - i for i in range(8))], [*map(float, range(12))]
    found = chances_of_fall([rise, fall, rise], 5, QUICK)
    assert found[1] > 0.9 > 0.5 > max(found[0], found[2])
    assert found == chances_of_fall([rise, fall, rise], 5, QUICK)


def test_labels_meet_where_both_say_the_same() -> None:
    assert agreed("declining-from-start", "declining") == "declining"
    assert agreed("healthy", "healthy") == "healthy"
    assert agreed("declining", "healthy") == agreed("healthy", "ambiguous") == "ambiguous"


def test_the_sample_gets_its_own_posterior_labels_again() -> None:
    """Nine of ten curves of the collection get the same label (docs/rules.md); of the sample's shorter
    ones, chosen to be mixed, most, and hardly one is called healthy for declining or the other way round."""
    pairs = agreement([row for row in read(SAMPLE) if row.get("label_boot") and len(row["values"]) <= 30])
    same = sum(count for (theirs, ours), count in pairs.items() if theirs == ours)
    crossed = pairs["healthy", "declining"] + pairs["declining", "healthy"]
    assert same >= 0.8 * pairs.total()
    assert crossed <= 0.02 * pairs.total()


def test_the_true_label_hangs_on_the_truth_alone() -> None:
    rise, fall = [*map(float, range(12))], [*map(float, range(6)), *(6.0 - i for i in range(6))]
    row = {"steps": list(range(12)), "values": rise, "truth": fall, "higher_is_better": True}
    made = labelled([row, json.loads(json.dumps(row | {"truth": [-v for v in fall], "higher_is_better": False}))])
    assert [each["label_true"] for each in made] == ["declining", "declining"]
    assert made[0]["label"] == made[0]["label_boot"] == made[0]["label_agreed"] == "healthy"
    assert set(LABELS) <= set(made[0])
