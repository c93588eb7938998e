"""Copies a published checkpoint among its run's artifacts, through the tracking server.

The files are their owner's, who may change them at any moment: folders and files are opened without following links,
only the owner's own plain files are taken, and no more bytes than the site allows.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote

from evalstopd.adapters.mlflow import fields
from evalstopd.adapters.mlflow.http import ARTIFACTS, Http
from evalstopd.errors import Rejected, Unavailable
from evalstopd.ports import Promoted

_SCHEME = "mlflow-artifacts:/"
_MOST_FILES = 1_000
_DEEPEST = 8
_PART = 2**20
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class File:
    """One file of a checkpoint: its folder's names below the checkpoint, its own last; bytes."""

    names: tuple[str, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Copier:
    """Copies checkpoints of at most `most_bytes` in; `http` has a time limit that is long enough for one file."""

    http: Http
    most_bytes: int

    def copied(self, checkpoint: Promoted, artifacts: str) -> str:
        """Return where the copy is, once the server shows every file at its size. Raises Rejected or Unavailable."""
        if not artifacts.startswith(_SCHEME):
            raise Rejected("the run's artifacts are not kept by the tracking server: nothing can be copied in")
        below = f"evalstop/checkpoint-{checkpoint.step}"
        try:
            with _Tree(checkpoint.path, checkpoint.key.uid) as tree:
                files = tree.files(self.most_bytes)
                held = self._held(checkpoint.run_id, below, {file.names[:-1] for file in files})
                for file in files:
                    if held.get(file.names) != file.size:
                        self._send(f"{artifacts.removeprefix(_SCHEME)}/{below}", file, tree)
        except OSError as error:
            raise Rejected(
                f"the checkpoint cannot be read to be copied: {error.strerror or 'unknown error'}"
            ) from error
        shown = self._held(checkpoint.run_id, below, {file.names[:-1] for file in files})
        if any(shown.get(file.names) != file.size for file in files):
            raise Unavailable("MLflow took the checkpoint's files and does not show them all")
        return f"{artifacts}/{below}"

    def _send(self, place: str, file: File, tree: "_Tree") -> None:
        path = "/".join(quote(name, safe="") for name in (*place.strip("/").split("/"), *file.names))
        self.http.put(f"{ARTIFACTS}/{path}", tree.parts(file), file.size)

    def _held(self, run_id: str, below: str, folders: set[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
        """Return the sizes of the files that the server has in these folders."""
        found: dict[tuple[str, ...], int] = {}
        for folder in folders:
            path = "/".join((below, *folder))
            listed = self.http.get("/artifacts/list", {"run_id": run_id, "path": path}).body.get("files")
            for each in (fields.mapping(item, "artifact") for item in fields.items(listed, "artifacts")):
                name = fields.text(each.get("path"), "artifact's path").removeprefix(f"{path}/")
                if not each.get("is_dir"):
                    found[(*folder, name)] = fields.int64(each.get("file_size", 0), "file size")
        return found


class _Tree:
    """A folder that is another user's, opened once; everything is reached from it step by step."""

    def __init__(self, path: str, uid: int) -> None:
        self._path, self._uid, self._fd = path, uid, -1

    def __enter__(self) -> Self:
        self._fd = os.open(self._path, _FOLDER)
        if os.fstat(self._fd).st_uid != self._uid:
            os.close(self._fd)
            raise Rejected("the published checkpoint is not its job's owner's")
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._fd)

    def files(self, most_bytes: int) -> list[File]:
        """Return all files. Raises Rejected where they are too many or too large."""
        found: list[File] = []
        for file in self._walk(self._fd, ()):
            found.append(file)
            if len(found) > _MOST_FILES or sum(each.size for each in found) > most_bytes:
                raise Rejected(
                    f"the checkpoint is larger than {_MOST_FILES} files or {most_bytes} bytes (promotion.copy_mb)"
                )
        return found

    def _walk(self, folder: int, names: tuple[str, ...]) -> Iterator[File]:
        for name in sorted(os.listdir(folder)):
            seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if seen.st_uid != self._uid or not (stat.S_ISREG(seen.st_mode) or stat.S_ISDIR(seen.st_mode)):
                raise Rejected("the checkpoint has something else than plain files of its job's owner")
            if stat.S_ISREG(seen.st_mode):
                yield File((*names, name), seen.st_size)
            elif len(names) < _DEEPEST:
                with closing(_Opened(name, folder, _FOLDER)) as below:
                    yield from self._walk(below.fd, (*names, name))

    def parts(self, file: File) -> Iterator[bytes]:
        """Yield a file's bytes. Raises Rejected where it is another file, or of another size, than was seen."""
        *folders, name = file.names
        opened = [_Opened(".", self._fd, _FOLDER)]
        try:
            for folder in folders:
                opened.append(_Opened(folder, opened[-1].fd, _FOLDER))
            opened.append(_Opened(name, opened[-1].fd, _FILE))
            yield from self._bytes(opened[-1].fd, file.size)
        finally:
            for each in opened:
                each.close()

    def _bytes(self, fd: int, size: int) -> Iterator[bytes]:
        seen = os.fstat(fd)
        if seen.st_uid != self._uid or not stat.S_ISREG(seen.st_mode) or seen.st_size != size:
            raise Rejected("the checkpoint changed while it was copied")
        left = size
        while left and (part := os.read(fd, min(_PART, left))):
            left -= len(part)
            yield part
        if left:
            raise Rejected("the checkpoint changed while it was copied")


class _Opened:
    """An open file or folder."""

    def __init__(self, name: str, folder: int, flags: int) -> None:
        self.fd = os.open(name, flags, dir_fd=folder)

    def close(self) -> None:
        """Close it."""
        os.close(self.fd)
