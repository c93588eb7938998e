"""Where ended runs are read from; each kind in one file, told apart by what is on the disk."""

from collections.abc import Callable, Iterator
from pathlib import Path

from evalstopd.errors import Misconfigured
from evalstopd.report.replay.history import History
from evalstopd.report.replay.sources.jsonl import read_jsonl

Reader = Callable[[Path], Iterator[History]]
_BY_SUFFIX: dict[str, Reader] = {".jsonl": read_jsonl}


def read_source(path: Path) -> Iterator[History]:
    """Yield the histories of a source. Raises Misconfigured where there is nothing that can be read."""
    reader = _BY_SUFFIX.get(path.suffix)
    if reader is None or not path.is_file():
        raise Misconfigured(f"{path}: not a source of evaluation curves; known: {', '.join(_BY_SUFFIX)}")
    return reader(path)
