"""The false-stop table: what it holds, that it is reproducible, and the rates it must show."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalstopd.report.replay.commands import app
from evalstopd.report.replay.nulls import CASES, LENGTHS, RESAMPLED, null_table

SAMPLE = Path(__file__).parent.parent / "data" / "eval_curves_sample.jsonl"


def shares(rule: str, runs: int = 200) -> dict[tuple[str, int], float]:
    return {(each.case, each.evals): each.share.value for each in null_table([rule], [], runs, 1)}


def test_k_2_stops_flat_runs_as_often_as_can_be_worked_out() -> None:
    """Exactly .966 within 20 evals; here the last one does not count, so as within 19."""
    found = shares("k-declines:k=2")

    assert found["flat, independent noise", 20] == pytest.approx(0.957, abs=0.03)
    assert found["flat, independent noise", 100] == 1.0


def test_the_recommended_rule_keeps_to_its_figures() -> None:
    """Flat runs within a tenth (and what 200 runs leave open), plateaus within two in a hundred, at each length."""
    found = shares("recommended", 200)

    for evals in LENGTHS:
        assert found["flat, independent noise", evals] <= 0.10 + 0.03
        assert found["plateau after a rise", evals] <= 0.02


def test_every_case_and_length_is_there_for_every_rule() -> None:
    done = CliRunner().invoke(app, ["replay", str(SAMPLE), "--null-table", "--runs", "5", "--json"])
    rows = json.loads(done.stdout)["false_stops"]

    assert {row["case"] for row in rows} == {*CASES, RESAMPLED}
    assert len(rows) == 3 * len(LENGTHS) * (len(CASES) + 1)
    assert all(row["share_ci95"][0] <= row["share"] <= row["share_ci95"][1] for row in rows)


def test_without_a_source_only_the_made_up_cases_are_tabled() -> None:
    done = CliRunner().invoke(app, ["replay", "--null-table", "--runs", "5", "--rule", "never"])

    assert done.exit_code == 0
    assert "flat, independent noise" in done.stdout
    assert RESAMPLED not in done.stdout


def test_the_same_seed_gives_the_same_table_and_another_seed_another() -> None:
    assert null_table(["blocks"], [], 40, 7) == null_table(["blocks"], [], 40, 7)
    assert null_table(["blocks"], [], 40, 7) != null_table(["blocks"], [], 40, 8)
