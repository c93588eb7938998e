"""The SQL store, opened as the settings say."""

from evalstopd.settings import Settings
from evalstopd.store.migrate import check
from evalstopd.store.sql import SqlStore


def make_store(settings: Settings) -> SqlStore:
    """Return the store."""
    return SqlStore(settings.store.url)


def make_checked_store(settings: Settings) -> SqlStore:
    """Return the store after a look at its version. Raises Fatal where it is another one."""
    check(settings.store.url)
    return make_store(settings)
