"""A part that is made when it is first asked for: what never needs it needs none of its settings."""

from collections.abc import Callable
from functools import cached_property
from typing import Any


class Late:
    """Stands for what `make` returns; what making it raises is raised where it is first used."""

    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> object:
        return self._make()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)
