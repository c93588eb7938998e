"""The goals' table: what counts as within the limits, and that the family is measured on real curves."""

from dataclasses import replace
from pathlib import Path

from bench.goals import FACTORS, SHAPES, Member, draw, family, flat_shares, measured, table
from evalstopd.report.replay.run import Ask, load

SAMPLE = Path(__file__).parent.parent / "data" / "eval_curves_sample.jsonl"
GOOD = Member("x", (0.85, 0.80, 0.75), (0.02, 0.05, 0.02), 0.06, 0.35, 0.02, 0.10)


def test_each_goal_alone_decides() -> None:
    assert GOOD.harmless
    assert GOOD.useful
    for worse in (
        replace(GOOD, fpr=(0.021, 0.05, 0.02)),
        replace(GOOD, fpr=(0.02, 0.051, 0.02)),
        replace(GOOD, fpr=(0.02, 0.05, 0.021)),
        replace(GOOD, losing=0.021),
        replace(GOOD, flat=0.101),
    ):
        assert (worse.harmless, worse.useful) == (False, True)
    for worse in (
        replace(GOOD, recall=(0.84, 0.80, 0.75)),
        replace(GOOD, recall=(0.85, 0.79, 0.75)),
        replace(GOOD, recall=(0.85, 0.80, 0.74)),
        replace(GOOD, saved=0.059),
        replace(GOOD, declining=0.349),
    ):
        assert (worse.harmless, worse.useful) == (True, False)


def test_the_table_counts_who_meets_both() -> None:
    assert "both: 1" in table([GOOD, replace(GOOD, flat=0.2)])
    assert "both: 0" in table([replace(GOOD, flat=0.2)])


def test_the_family_goes_from_bold_to_careful(tmp_path: Path) -> None:
    """Within a shape a larger margin stops fewer flat runs and finds no more of the declining ones."""
    shapes, rules = zip(*family(), strict=True)
    line = rules[: len(FACTORS)]
    histories = load(Ask((SAMPLE,), max_evals=20, primary=True))
    shares = flat_shares(line[:: len(FACTORS) - 1])
    bold, careful = (measured(rule, histories, share) for rule, share in zip(line[::11], shares, strict=True))
    draw(tmp_path / "trade-off.svg", shapes[:2], [bold, careful])

    assert len(rules) == len(SHAPES) * len(FACTORS)
    assert bold.flat > careful.flat
    assert all(a >= b for a, b in zip(bold.recall, careful.recall, strict=True))
    assert (tmp_path / "trade-off.svg").read_text().startswith("<?xml")
