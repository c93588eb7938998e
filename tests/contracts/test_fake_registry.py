"""The stand-in registry keeps the contract, so that tests of the loop mean something."""

from collections.abc import Sequence

import pytest

from evalstopd.ports import Promoted, Registered
from tests.contracts.registry_contract import RegistryContract
from tests.fakes.registry import FakeRegistry


class FakeWorld:
    def __init__(self) -> None:
        self.registry = FakeRegistry()

    def make_run(self) -> str:
        return "r1"

    def ask(self, checkpoints: Sequence[Promoted]) -> dict[str, Registered]:
        self.registry.register(checkpoints)
        return {each.intent_id: each for each in self.registry.registered()}

    def restart(self) -> None:
        self.registry.die()

    def versions(self, name: str) -> list[str]:
        return [each.run_id for each in self.registry.versions[name]]

    def alias(self, name: str) -> int:
        return self.registry.aliases[name]


class TestFakeRegistry(RegistryContract):
    @pytest.fixture
    def world(self) -> FakeWorld:
        return FakeWorld()
