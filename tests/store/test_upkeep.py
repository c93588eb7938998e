"""The contract of upkeep over memory, a file of SQLite and a database of PostgreSQL."""

from collections.abc import Iterator

import pytest

from evalstopd.store.memory import MemoryStore
from evalstopd.store.sql import SqlStore
from tests.contracts.upkeep_contract import AnyStore, UpkeepContract


class TestMemoryUpkeep(UpkeepContract):
    @pytest.fixture
    def store(self) -> AnyStore:
        return MemoryStore()


class TestSqlUpkeep(UpkeepContract):
    @pytest.fixture
    def store(self, url: str) -> Iterator[AnyStore]:
        made = SqlStore(url)
        yield made
        made.close()
