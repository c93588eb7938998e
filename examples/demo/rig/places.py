"""A fresh private folder that other users may nevertheless walk through, as jobs of theirs must."""

import tempfile
from pathlib import Path

from .errors import RigError


def new_reachable_directory(prefix: str) -> Path:
    """Make a folder (0755) in the first temporary place that lets others through; the caller removes it."""
    for place in (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")):
        if is_reachable(place):
            directory = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
            directory.chmod(0o755)
            return directory
    raise RigError("no temporary folder lets other users through: set TMPDIR to one that does")


def is_reachable(directory: Path) -> bool:
    """Tell whether any user may enter the folder and each one above it."""
    directory = directory.resolve()
    return all(folder.stat().st_mode & 0o001 for folder in (directory, *directory.parents))
