"""The store's contract over memory, a file of SQLite and a database of PostgreSQL."""

from collections.abc import Iterator

import pytest

from evalstopd.store.memory import MemoryStore
from evalstopd.store.sql import SqlStore
from tests.contracts.store_contract import AnyStore, StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> AnyStore:
        return MemoryStore()


class TestSqlStore(StoreContract):
    @pytest.fixture
    def store(self, url: str) -> Iterator[AnyStore]:
        made = SqlStore(url)
        yield made
        made.close()
