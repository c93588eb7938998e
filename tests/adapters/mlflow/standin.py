"""A web server on loopback that answers as badly as it is told to; stdlib only."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import pytest


@dataclass(frozen=True)
class Asked:
    """One request as it came in."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    target: str = ""

    def several(self, name: str) -> list[str]:
        """Return all values of a field of the query that may come more than once."""
        return [value for key, value in parse_qsl(urlsplit(self.target).query) if key == name]


class Line:
    """The connection to the client; `hold` waits until the test is over or the time is."""

    def __init__(self, out: Any, over: threading.Event) -> None:
        self._out = out
        self._over = over

    def send(self, raw: bytes) -> None:
        self._out.write(raw)
        self._out.flush()

    def hold(self, seconds: float = 60) -> bool:
        return self._over.wait(seconds)


Reply = Callable[[Line], None]
Script = Callable[[Asked], Reply]


def raw(body: bytes, status: int = 200, *headers: str) -> Reply:
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return lambda line: line.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def plain(value: object, status: int = 200) -> Reply:
    return raw(json.dumps(value).encode(), status)


def hang(line: Line) -> None:
    line.hold()


def each(faults: Iterable[Any]) -> list[Any]:
    """Return faults as parameters: a short limit ends what hangs, and good answers beside it have to keep it, too."""
    return [pytest.param(each, marks=pytest.mark.timed) if each in ("hang", hang) else each for each in faults]


def half(line: Line) -> None:
    line.send(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"run": {"info"')


def half_without_length(line: Line) -> None:
    line.send(b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{"run": {"info"')


def nothing(line: Line) -> None:
    """Close without a word."""


def garbage(line: Line) -> None:
    line.send(b"\x00\xff SSH-2.0-nobody\r\n\r\n")


def drip(head: bytes, letter: bytes, gap_s: float = 0.05) -> Reply:
    def reply(line: Line) -> None:
        line.send(head)
        while not line.hold(gap_s):
            line.send(letter)

    return reply


slow_body = drip(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{", b" ")
slow_head = drip(b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x")


def large(size: int) -> Reply:
    def reply(line: Line) -> None:
        line.send(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n".encode())
        for _ in range(size // 65_536):
            line.send(b" " * 65_536)

    return reply


class Standin:
    """The server; `script` decides each answer, `asked` keeps what came in."""

    def __init__(self, script: Script, tls: ssl.SSLContext | None = None) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.over = threading.Event()
        self._server = _Server(self)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self.uri = f"{'https' if tls else 'http'}://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, standin: Standin) -> None:
        self.standin = standin
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up in the middle is what these tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def answer(self) -> None:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = Asked(
            self.command,
            parts.path,
            dict(parse_qsl(parts.query)),
            {name.lower(): value for name, value in self.headers.items()},
            body,
            self.path,
        )
        self.server.standin.asked.append(asked)
        self.close_connection = True
        self.server.standin.script(asked)(Line(self.wfile, self.server.standin.over))

    do_GET = do_POST = answer  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Keep the test's output clean."""


def closed_port() -> int:
    """Return a port of loopback where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run_json(run_id: str, **info: object) -> dict[str, object]:
    """What MLflow says of a run that is all right."""
    good = {"run_id": run_id, "status": "RUNNING", "lifecycle_stage": "active", "user_id": ""}
    return {"run": {"info": {**good, **info}, "data": {"tags": [], "params": []}}}


def point_json(key: str, step: object = 1, value: object = 0.5, timestamp: object = 1) -> dict[str, object]:
    return {"key": key, "step": step, "value": value, "timestamp": timestamp}
