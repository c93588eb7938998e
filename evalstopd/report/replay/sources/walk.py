"""Files below a folder, without following links; a size beyond reason is passed over."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

_LARGEST = 256 * 1024 * 1024


def files_below(folder: Path, wanted: Callable[[str], bool]) -> Iterator[Path]:
    """Yield the regular files whose name is wanted, in a fixed order; no link is followed.

    Raises PermissionError for a folder that is closed to us: a table with holes would look like a whole one.
    """
    for place, folders, names in os.walk(folder, onerror=_closed, followlinks=False):
        folders.sort()
        for name in sorted(filter(wanted, names)):
            path = Path(place, name)
            if path.is_file() and not path.is_symlink() and path.stat().st_size <= _LARGEST:
                yield path


def _closed(error: OSError) -> None:
    if isinstance(error, PermissionError):
        raise error
