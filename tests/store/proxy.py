"""A wire between a daemon and its PostgreSQL that can be cut: nothing goes through any more, nothing is closed."""

import socket
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

_LOOK_S = 0.1


class Wire:
    """Listens in a folder as PostgreSQL does, and passes everything on until it is cut."""

    def __init__(self, folder: Path, server: Path) -> None:
        self.folder = folder
        self._there = server / ".s.PGSQL.5432"
        self._cut, self._over = threading.Event(), threading.Event()
        self._threads: list[threading.Thread] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        self._listener.settimeout(_LOOK_S)

    def cut(self) -> None:
        self._cut.set()

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                near, _ = self._listener.accept()
            except TimeoutError:
                continue
            far = socket.socket(socket.AF_UNIX)
            far.connect(str(self._there))
            self._start(self._pass_on, near, far)
            self._start(self._pass_on, far, near)

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        source.settimeout(_LOOK_S)
        with source:
            while not self._over.is_set():
                if self._cut.is_set():
                    self._over.wait(_LOOK_S)
                    continue
                try:
                    data = source.recv(65536)
                    if not data:
                        break
                    target.sendall(data)
                except TimeoutError:
                    continue
                except OSError:
                    break
            self._end(target)

    @staticmethod
    def _end(target: socket.socket) -> None:
        try:
            target.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def _start(self, what: object, *arguments: object) -> None:
        thread = threading.Thread(target=what, args=arguments)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()
