"""The contract of what is kept of past jobs, over memory, a file of SQLite and a database of PostgreSQL."""

from collections.abc import Iterator

import pytest

from evalstopd.ports import Histories
from evalstopd.store.memory import MemoryStore
from evalstopd.store.sql import SqlStore
from tests.contracts.histories_contract import HistoriesContract


class TestMemoryHistories(HistoriesContract):
    @pytest.fixture
    def store(self) -> Histories:
        return MemoryStore()


class TestSqlHistories(HistoriesContract):
    @pytest.fixture
    def store(self, url: str) -> Iterator[Histories]:
        made = SqlStore(url)
        yield made
        made.close()
