"""The keeper's fixtures: two users with folders, and a keeper process."""

from collections.abc import Iterator

import pytest

from tests.keeper.world import Keeper, World, keeper, world


@pytest.fixture
def place() -> Iterator[World]:
    with world() as made:
        yield made


@pytest.fixture
def ask(place: World) -> Iterator[Keeper]:
    with keeper(place.root) as running:
        yield running
