"""What the database's failures mean to the daemon: later, not this, or never."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.engine import URL
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from evalstopd.errors import Fatal, Rejected, Unavailable
from evalstopd.store.columns import GarbledValue
from evalstopd.store.engine import shown

_LONGEST_REASON = 200


@contextmanager
def translated(url: URL) -> Iterator[None]:
    """Raise Rejected for what the database refuses to hold, Unavailable for every other failure of it.

    Raises Fatal for a value that this program cannot have written.
    """
    try:
        yield
    except (IntegrityError, DataError, OverflowError) as error:
        raise Rejected(f"the store cannot hold this: {_reason(error)}") from error
    except (DBAPIError, PoolTimeout) as error:
        raise Unavailable(f"the store at {shown(url)} failed: {_reason(error)}") from error
    except GarbledValue as error:
        raise Fatal(f"the store at {shown(url)} was changed by hand: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Return the driver's own words, the first line only: what follows may quote users' texts at length."""
    original = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    lines = str(original).splitlines() or [""]
    return ascii(f"{type(original).__name__}: {lines[0][:_LONGEST_REASON]}")[1:-1]
