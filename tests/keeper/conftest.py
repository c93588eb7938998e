"""The keeper's fixtures: two users with folders, and a keeper process."""

from collections.abc import Iterator

import pytest

from tests.keeper.owner import AsOwner, owners_program
from tests.keeper.world import Keeper, World, keeper, world


@pytest.fixture
def place() -> Iterator[World]:
    with world() as made:
        yield made


@pytest.fixture
def as_owner(place: World) -> Iterator[AsOwner]:
    with owners_program(place) as call:
        yield call


@pytest.fixture
def ask(place: World) -> Iterator[Keeper]:
    with keeper(place.root) as running:
        yield running
