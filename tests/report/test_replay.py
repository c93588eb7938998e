"""Replay on a sample of real curves: what is counted, how, and what the harness must reproduce."""

import csv
import json
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalstopd.core.model import Mode
from evalstopd.errors import Misconfigured
from evalstopd.report.replay.commands import app
from evalstopd.report.replay.history import History, evals_of, thinned
from evalstopd.report.replay.judge import judge
from evalstopd.report.replay.sources import read_source

SAMPLE = Path(__file__).parent.parent / "data" / "eval_curves_sample.jsonl"


def history(scores: list[float], mode: Mode = Mode.MAX) -> History:
    return History("a", "s", "f", "m", mode, evals_of(range(len(scores)), scores))


def replayed(*arguments: str) -> dict[str, object]:
    done = CliRunner().invoke(app, ["replay", *arguments, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_k_2_stops_most_healthy_and_nearly_all_declining_real_runs() -> None:
    """The check on the harness: k = 2 has FPR about .7 and recall about .96 on real curves of 20 evals."""
    found = replayed(str(SAMPLE), "--primary", "--max-evals", "20", "--rule", "k-declines:k=2", "--label", "label_boot")
    (row,) = found["rows"]

    assert row["fpr"] == pytest.approx(0.62, abs=0.08)
    assert row["recall"] >= 0.9
    assert row["fpr_ci95"][0] < row["fpr"] < row["fpr_ci95"][1]


def test_json_has_the_agreed_keys_for_each_rule_and_label() -> None:
    found = replayed(
        str(SAMPLE), "--rule", "k-declines:k=2", "--rule", "never", "--label", "label", "--label", "label_agreed"
    )
    keys = {"rule", "label", "positives", "negatives", "recall", "fpr", "saved", "lost_over_5pct", "lost_over_10pct"}

    assert found["curves"] == len(SAMPLE.read_text().splitlines())
    assert [(row["rule"], row["label"]) for row in found["rows"]] == [
        (rule, label) for rule in ("k-declines:k=2", "never") for label in ("label", "label_agreed")
    ]
    assert all(keys <= set(row) for row in found["rows"])


def test_never_saves_and_loses_nothing() -> None:
    (row,) = replayed(str(SAMPLE), "--rule", "never")["rows"]

    assert (row["recall"], row["fpr"], row["saved"], row["lost_over_5pct"]) == (0, 0, 0, 0)


def test_primary_leaves_the_other_metrics_out() -> None:
    everything = replayed(str(SAMPLE), "--rule", "never")["curves"]

    assert replayed(str(SAMPLE), "--rule", "never", "--primary")["curves"] == everything - 3


def test_groups_add_up_to_the_whole() -> None:
    found = replayed(str(SAMPLE), "--rule", "never", "--by", "family", "--by", "evals")
    (whole,) = found["rows"]

    assert sum(row["runs"] for row in found["groups"]) == 2 * whole["runs"]


def test_a_trigger_on_the_last_eval_is_none() -> None:
    assert judge(history([1.0, 3.0, 2.0, 1.0]), "k-declines:k=2").stopped is None
    assert judge(history([1.0, 3.0, 2.0, 1.0, 0.0]), "k-declines:k=2").stopped == 3


def test_what_a_stop_saves_and_loses() -> None:
    """Stopped at eval 4 of 9 (half of the time left) at smoothed best 2 where the run would have reached 6."""
    found = judge(history([0, 2, 2, 1, 0, 3, 6, 6, 6]), "k-declines:k=2")

    assert (found.stopped, found.saved, found.kept) == (4, 0.5, 2)
    assert found.lost == pytest.approx(4 / 6)


def test_where_less_is_better_the_mirrored_run_is_judged_alike() -> None:
    scores = [0, 2, 2, 1, 0, 3, 6, 6, 6]
    up, down = (
        judge(history(scores), "k-declines:k=2"),
        judge(history([-s for s in scores], Mode.MIN), "k-declines:k=2"),
    )

    assert (up.stopped, up.saved, up.lost) == (down.stopped, down.saved, down.lost)
    assert down.kept == -up.kept


def test_scores_that_are_not_finite_count_nowhere() -> None:
    with_holes = judge(history([1, math.nan, 3, 2, math.inf, 1, 0, 0]), "k-declines:k=2")

    assert (with_holes.evals, with_holes.stopped) == (6, 3)


def test_thinning_keeps_both_ends_and_spaces_evenly() -> None:
    kept = thinned(history([float(i) for i in range(101)]), 5)

    assert [each.score for each in kept.evals] == [0, 25, 50, 75, 100]


@pytest.mark.parametrize(
    "line",
    [
        '{"steps": [1]}',
        "[1, 2]",
        "nonsense",
        '{"steps": [1, 2], "values": [1]}',
        '{"steps": [1, 2], "values": [1, 1' + "0" * 400 + "]}",
        '{"steps": [1, 2], "values": [1, 2], "stderrs": ["x", 1]}',
        "[" * 100_000,
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str) -> None:
    broken = tmp_path / "x.jsonl"
    broken.write_text(f'{{"steps": [1, 2], "values": [1, 2]}}\n{line}\n')

    with pytest.raises(Misconfigured, match="line 2"):
        list(read_source(broken))


@pytest.mark.parametrize(
    "arguments",
    [
        ["nowhere.jsonl"],
        [str(SAMPLE), "--rule", "no-such-rule"],
        [str(SAMPLE), "--label", "x"],
        [str(SAMPLE), "--by", "x"],
    ],
)
def test_what_cannot_be_asked_is_said_in_one_line(arguments: list[str]) -> None:
    done = CliRunner().invoke(app, ["replay", *arguments])

    assert done.exit_code == 2
    assert done.stderr.startswith("evalstopd: ")
    assert "Traceback" not in done.output


def test_hostile_names_come_out_harmless(tmp_path: Path) -> None:
    """A family that is a terminal escape and a run named like a spreadsheet formula stay text."""
    source, table = tmp_path / "x.jsonl", tmp_path / "out.csv"
    source.write_text(json.dumps({"id": "=HYPERLINK()", "family": "\x1b[2J", "steps": [1, 2], "values": [1, 2]}))
    done = CliRunner().invoke(app, ["replay", str(source), "--by", "family", "--csv", str(table)])

    assert done.exit_code == 0
    assert "\x1b" not in done.output
    assert "'=HYPERLINK()" in table.read_text()


def test_csv_has_one_line_a_rule_and_run_and_a_second_replay_replaces_it(tmp_path: Path) -> None:
    table = tmp_path / "out.csv"
    for _ in range(2):
        done = CliRunner().invoke(
            app, ["replay", str(SAMPLE), "--rule", "never", "--rule", "k-declines:k=2", "--csv", str(table)]
        )
        assert done.exit_code == 0
    with table.open(newline="") as file:
        lines = list(csv.DictReader(file))

    assert len(lines) == 2 * len(SAMPLE.read_text().splitlines())
    assert {line["stopped"] for line in lines if line["rule"] == "never"} == {""}
    assert any(line["stopped"] and float(line["saved"]) > 0 for line in lines)


def test_the_recommended_rule_finds_most_declines_and_lets_nearly_all_healthy_runs_go_on() -> None:
    """On the sample, both ways of labelling agreeing; the full collection's figures are in docs/rules.md."""
    found = replayed(str(SAMPLE), "--primary", "--max-evals", "20", "--rule", "recommended", "--label", "label_agreed")
    (row,) = found["rows"]

    assert row["recall"] >= 0.85
    assert row["fpr"] <= 0.05
    assert row["lost_over_10pct"] <= 0.05
    assert row["saved_declining"] >= 0.35
