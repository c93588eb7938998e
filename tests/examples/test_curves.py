"""Curves by real training: every family trains, each run is its own, the same seed gives the same run."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.examples.needs import needs

FILE = Path(__file__).parents[2] / "examples" / "curves" / "curves.jsonl"


def small(family: str) -> Any:
    """Return a recipe of the family that takes a moment."""
    torch = needs("torch", "torch")
    needs("sklearn", "curves.supervised")
    torch.set_num_threads(1)
    plan = needs("torch", "curves.plan")
    recipe = plan.FAMILIES[family]()[-1].recipe
    if family == "rlhf":
        return replace(recipe, recipe=replace(recipe.recipe, steps=4, eval_every=2, batch=16, pairs=20))
    if family == "supervised":
        return replace(recipe, evals=2, items=64, total=400, seen=50)
    if family == "online-rl":
        return replace(recipe, evals=2, updates=4)
    return replace(recipe, evals=2, updates=4, taught=4, logged=64, imitated=2)


@pytest.mark.parametrize("family", ["rlhf", "supervised", "online-rl", "offline-rl"])
def test_a_family_trains(family: str) -> None:
    """Two evals of two runs that differ from each other and not from themselves; the truth is surer than the score."""
    recipe = small(family)
    first, again = (list(recipe.train(7, 2)) for _ in range(2))
    assert first == again
    assert len(first) == 2
    one, other = first[-1]
    assert one.truth != other.truth
    assert 0 < one.truth_stderr < one.stderr
    assert first[0][0].step < one.step


def test_policy_gradients_learn() -> None:
    """On the pole a few updates are worth more than none."""
    gradient, worlds = needs("torch", "curves.gradient"), needs("torch", "curves.worlds")
    first, *_, last = gradient.PolicyGradient(worlds.CartPole(), 6, 2, 8).train(3, 2)
    assert min(each.truth for each in last) > 1.2 * min(each.truth for each in first)


def test_a_careful_gradient_cut_is_a_runs_own() -> None:
    """One run's steep loss does not shorten another's step."""
    torch, agents = needs("torch", "torch"), needs("torch", "curves.agents")

    def stepped(steep: float) -> Any:
        torch.manual_seed(0)
        nets = agents.Networks(2, 3, 1)
        losses = nets(torch.ones(2, 4, 3)).mean((1, 2)) * torch.tensor([1.0, steep])
        agents.descend(losses, torch.optim.SGD(nets.parameters(), 0.1), nets, 0.5)
        return nets(torch.ones(2, 4, 3)).detach()[0]

    assert torch.equal(stepped(1.0), stepped(1e6))


def test_the_file_is_what_the_plan_says() -> None:
    """Every source with all its runs, each score with its truth and both errors, no seed used twice."""
    plan = needs("torch", "curves.plan")
    rows = [json.loads(line) for line in FILE.read_text().splitlines()]
    planned = {
        f"{family}/{source.name}/{number}": source
        for family, sources in plan.FAMILIES.items()
        for source in sources()
        for number in range(plan.RUNS[family])
    }
    assert [row["id"] for row in rows] == list(planned)
    assert all(row["pushed"] == planned[row["id"]].pushed for row in rows)
    for row in rows:
        sizes = {len(row[key]) for key in ("steps", "values", "eval_stderrs", "truth", "truth_stderrs")}
        assert sizes == {len(row["steps"])}
        assert 12 <= len(row["steps"]) <= 40
    assert len({json.dumps(row["truth"]) for row in rows}) == len(rows)
