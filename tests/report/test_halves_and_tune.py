"""Nothing is chosen on the runs it is judged on: halves, folds, and the proposal of `tune`."""

import json
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

from evalstopd.core.model import Mode
from evalstopd.errors import Misconfigured
from evalstopd.report.replay.commands import app
from evalstopd.report.replay.halves import Half, folds, half_of
from evalstopd.report.replay.history import History, evals_of
from evalstopd.report.tune import tune

SAMPLE = Path(__file__).parent.parent / "data" / "eval_curves_sample.jsonl"


def made(source: str, declining: bool, seed: int) -> History:
    stream = Random(f"{source} {declining} {seed}")
    rise = [i / 8 for i in range(8)]
    rest = [1 - i / 14 for i in range(12)] if declining else [1.0] * 12
    scores = [level + stream.gauss(0, 0.03) for level in rise + rest]
    label = {"label": "declining" if declining else "healthy"}
    return History(f"{seed}", source, "f", "m", Mode.MAX, evals_of(range(20), scores), label)


def site(sources: int) -> list[History]:
    return [made(f"s{s}", i % 3 == 0, i) for s in range(sources) for i in range(15)]


def test_the_halves_are_whole_sources_and_stay_what_they_are() -> None:
    halves = {name: half_of(name) for name in map(str, range(200))}

    assert 70 < sum(half is Half.BLIND for half in halves.values()) < 130
    assert half_of("tinkoff-ai/CORL | CQL") is Half.OPEN
    assert half_of("tinkoff-ai/CORL | SPOT") is Half.BLIND


def test_replay_of_the_halves_adds_up_to_the_whole() -> None:
    def curves(half: str) -> int:
        done = CliRunner().invoke(app, ["replay", str(SAMPLE), "--rule", "never", "--half", half, "--json"])
        return json.loads(done.stdout)["curves"]

    assert curves("open") + curves("blind") == curves("all")
    assert min(curves("open"), curves("blind")) > 0


def test_folds_keep_sources_together_and_are_about_even() -> None:
    groups = folds(site(7))

    assert len(groups) == 5
    assert sorted(name for group in groups for name in group) == [f"s{i}" for i in range(7)]
    assert max(map(len, groups)) <= 2


def test_tune_finds_a_rule_that_keeps_the_budget_on_sources_it_has_not_seen() -> None:
    found = tune(site(6), "label", 0.02, 0.48)

    assert found.row.runs == 90
    assert found.row.fpr.value <= 0.05
    assert found.row.recall.value >= 0.9
    assert len(found.chosen) == 5


def test_a_source_of_another_kind_shows_in_the_expected_cost() -> None:
    """What was chosen without a source is judged on it: here its flat runs are called declining and never stop."""
    odd = [
        History(str(i), "odd", "f", "m", Mode.MAX, evals_of(range(20), [1.0] * 20), {"label": "declining"})
        for i in range(30)
    ]
    alone, with_odd = tune(site(6), "label", 0.02, 0.48), tune([*site(6), *odd], "label", 0.02, 0.48)

    assert with_odd.row.recall.value < alone.row.recall.value - 0.3


def test_the_rule_for_a_source_is_chosen_without_it() -> None:
    """One source's healthy runs dip: all folds but its own have seen that and choose a more careful rule."""
    level = [1.0 + 0.01 * (-1) ** i for i in range(12)]
    dip = [0.9, 0.91, 0.9, 0.91, 0.9]
    dippy = [
        History(
            str(i), "dippy", "f", "m", Mode.MAX, evals_of(range(20), [*level, *dip, *level[:3]]), {"label": "healthy"}
        )
        for i in range(30)
    ]
    chosen = tune([*site(6), *dippy], "label", 0.02, 0.48).chosen

    assert len(set(chosen)) == 2
    assert min(map(chosen.count, chosen)) == 1


def test_a_budget_that_the_history_is_too_small_to_prove_is_said_so() -> None:
    found = tune(site(4), "label", 0.001, 0.48)

    assert found.row.fpr.high > 0.001
    assert not found.within


def test_too_few_sources_or_healthy_runs_are_refused() -> None:
    with pytest.raises(Misconfigured, match="2 sources"):
        tune(site(2), "label", 0.02, 0.48)
    with pytest.raises(Misconfigured, match="0 healthy"):
        tune(site(5), "label_boot", 0.02, 0.48)


def test_the_command_says_what_is_proposed_and_what_to_expect() -> None:
    arguments = ["tune", str(SAMPLE), "--primary", "--max-evals", "20", "--alpha", "0.05"]
    text = CliRunner().invoke(app, arguments)
    answer = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)

    assert text.exit_code == 0
    assert f"proposed: {answer['rule']}" in text.stdout
    assert answer["expected"]["recall"] is not None
    assert answer["within_budget"] is False
