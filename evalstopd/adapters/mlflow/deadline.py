"""A time limit for a whole HTTP exchange: httpx limits each read alone, so a byte a second would hold us for ever.

Every blocking call on the network gets what is left of the exchange's time. Looking up a name is the one
thing left to the resolver's own limits.
"""

import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore
import httpx

_PIECE = 65_536
_CONNECTIONS = 32
# Much shorter than the 5 s of uvicorn, which it counts from when it has sent all, and than what firewalls forget: a
# connection idle for longer may be dead in silence.
_IDLE_S = 2.0


class Deadline(threading.local):
    """When the exchange that this thread is in must be over. Seconds."""

    def __init__(self) -> None:
        self._end_at = float("inf")

    @contextmanager
    def within(self, limit_s: float) -> Iterator[None]:
        """Give the exchange inside the block this long in all."""
        self._end_at = time.monotonic() + limit_s
        try:
            yield
        finally:
            self._end_at = float("inf")

    def left_s(self) -> float | None:
        """Return the seconds left, None outside any block. Raises httpcore.ReadTimeout where none are."""
        left = self._end_at - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("the time of the whole exchange is over")
        return None if left == float("inf") else left


class TimedStream(httpcore.NetworkStream):
    """A connection whose every call has what is left of the exchange's time; the callers' own limits are ignored."""

    def __init__(self, inner: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read what is there."""
        return self._inner.read(max_bytes, self._deadline.left_s())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write all of it, piece by piece: the limit of the stream below starts anew with each send."""
        for start in range(0, len(buffer), _PIECE):
            self._inner.write(buffer[start : start + _PIECE], self._deadline.left_s())

    def close(self) -> None:
        """Close the connection."""
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """Go on over TLS."""
        inner = self._inner.start_tls(ssl_context, server_hostname, self._deadline.left_s())
        return TimedStream(inner, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        """Return what the stream below knows."""
        return self._inner.get_extra_info(info)


class TimedNetwork(httpcore.NetworkBackend):
    """Makes connections that keep to a deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self._inner = httpcore.SyncBackend()
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect."""
        stream = self._inner.connect_tcp(host, port, self._deadline.left_s(), local_address, socket_options)
        return TimedStream(stream, self._deadline)


class TimedTransport(httpx.BaseTransport):
    """What httpx sends through: straight to the server, or through the one proxy that was asked for."""

    def __init__(self, deadline: Deadline, tls: ssl.SSLContext, proxy: httpx.Proxy | None) -> None:
        network = TimedNetwork(deadline)
        self._pool = (
            httpcore.ConnectionPool(
                tls, max_connections=_CONNECTIONS, keepalive_expiry=_IDLE_S, network_backend=network
            )
            if proxy is None
            else httpcore.HTTPProxy(
                _core_url(proxy.url),
                proxy.raw_auth,
                ssl_context=tls,
                max_connections=_CONNECTIONS,
                keepalive_expiry=_IDLE_S,
                network_backend=network,
            )
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; the body of the answer comes as it is read. Raises httpcore's errors."""
        answer = self._pool.handle_request(
            httpcore.Request(
                method=request.method,
                url=_core_url(request.url),
                headers=request.headers.raw,
                content=request.read(),
                extensions=request.extensions,
            )
        )
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer))

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        return self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


def _core_url(url: httpx.URL) -> httpcore.URL:
    return httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
