"""A source of curves: one recipe, trained several times over."""

from dataclasses import dataclass

from .checkpoint import Recipe


@dataclass(frozen=True, slots=True)
class Source:
    """`pushed`: the recipe invites a decline (no penalty, wrong labels, a careless reward); it promises none."""

    name: str
    recipe: Recipe
    pushed: bool
    metric: str
    higher_is_better: bool = True
