"""One small client for MLflow's REST API: asks once, in limited time and size, and says plainly what went wrong."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol, TypeVar

import httpcore
import httpx

from evalstopd.adapters.mlflow import server as servers
from evalstopd.adapters.mlflow.deadline import Deadline, TimedTransport
from evalstopd.adapters.mlflow.problems import Silent, TooLong, Unreachable, one_line
from evalstopd.adapters.mlflow.refusals import AJAX, API, Refusals
from evalstopd.adapters.mlflow.server import Server
from evalstopd.errors import EvalstopError, Unavailable

ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"
Params = Mapping[str, str | Sequence[str]]
_PROBLEM_BYTES = 65_536
_NO_CONNECTION = (httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.ProxyError)
_BROKEN = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol, httpx.HTTPError, OSError)


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Answer:
    """A JSON object as MLflow sent it, nothing in it checked yet, and how many bytes it took."""

    body: Mapping[str, object]
    size: int


class Asks(Protocol):
    """Whatever can put a question to MLflow."""

    def get(self, path: str, params: Params) -> Answer:
        """Ask. Raises Unavailable or Rejected."""

    def post(self, path: str, body: Mapping[str, object]) -> Answer:
        """Ask what takes a body. Raises Unavailable or Rejected."""


class Http:
    """MLflow by plain HTTP; threads may share it. Raises Misconfigured where the server's settings are wrong.

    Unavailable: no connection, no whole answer in time, 401 (LockedOut), 429 and 5xx, redirects, anything but a JSON
    object, an answer beyond `max_bytes` (TooLong). Rejected: 403, an unknown run, another refusal of MLflow's.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._url = servers.checked_url(server)
        self._refusals = Refusals(server, self._url)
        self._deadline = Deadline()
        self._client = httpx.Client(
            transport=TimedTransport(self._deadline, servers.tls_of(server), servers.proxy_of(server)),
            headers=servers.headers_of(server),
            auth=servers.auth_of(server),
            trust_env=False,
            follow_redirects=False,
            timeout=server.timeout_s,
        )

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def get(self, path: str, params: Params) -> Answer:
        """Ask MLflow; `path` is below its REST API, e.g. `/runs/get`, or begins with AJAX for a page's own routes."""
        return self._exchange(self._client.build_request("GET", self._address(path), params=params), self._answer)

    def post(self, path: str, body: Mapping[str, object]) -> Answer:
        """Tell MLflow something. A 200 proves little: read back."""
        return self._exchange(self._client.build_request("POST", self._address(path), json=body), self._answer)

    def delete(self, path: str, body: Mapping[str, object]) -> Answer:
        """Delete something. Raises as `post` does."""
        return self._exchange(self._client.build_request("DELETE", self._address(path), json=body), self._answer)

    def put(self, path: str, parts: Iterable[bytes], size: int) -> None:
        """Send a file of this size, part by part; what is answered to it has no fixed form. Raises as `post` does."""
        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream"}
        request = self._client.build_request("PUT", self._address(path), content=parts, headers=headers)
        self._exchange(request, self._taken)

    def status(self, path: str, params: Mapping[str, str]) -> int:
        """Return the status of MLflow's answer to a question, whatever it is. Raises Unavailable where none comes."""
        request = self._client.build_request("GET", self._address(path), params=params)
        return self._exchange(request, lambda response: response.status_code)

    def date(self, path: str, params: Mapping[str, str]) -> str:
        """Return the Date header of MLflow's answer, whatever that is; empty without one. Raises Unavailable."""
        request = self._client.build_request("GET", self._address(path), params=params)
        return self._exchange(request, lambda response: str(response.headers.get("Date", "")))

    def _address(self, path: str) -> str:
        return f"{self._url}{path if path.startswith((AJAX, ARTIFACTS)) else API + path}"

    def _exchange(self, request: httpx.Request, take: Callable[[httpx.Response], _T]) -> _T:
        try:
            with self._deadline.within(self._server.timeout_s), closing(self._client.send(request, stream=True)) as got:
                return take(got)
        except _NO_CONNECTION as error:
            raise Unreachable(self._says(f"cannot connect: {one_line(error) or 'no reason given'}")) from error
        except httpcore.TimeoutException as error:
            raise Silent(self._says(f"no whole answer within {self._server.timeout_s:g} s")) from error
        except _BROKEN as error:
            raise Unavailable(self._says(f"broken answer: {one_line(error)}")) from error

    def _answer(self, response: httpx.Response) -> Answer:
        if response.status_code != 200:
            raise self._refusal(response)
        raw = self._whole(response, self._server.max_bytes)
        return Answer(self._parsed(raw), len(raw))

    def _taken(self, response: httpx.Response) -> None:
        if response.status_code != 200:
            raise self._refusal(response)

    def _whole(self, response: httpx.Response, limit: int) -> bytes:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise Unavailable(self._says("answers compressed, which was not asked for"))
        raw = bytearray()
        for chunk in response.iter_raw():
            raw += chunk
            if len(raw) > limit:
                raise TooLong(self._says(f"the answer is larger than {limit} bytes"))
        return bytes(raw)

    def _parsed(self, raw: bytes) -> Mapping[str, object]:
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError) as error:
            page = raw.lstrip().startswith(b"<")
            other = self._refusals.elsewhere("a page for people, a login's perhaps")
            raise Unavailable(self._says(other if page else "the answer is not JSON")) from error
        if not isinstance(body, dict):
            raise Unavailable(self._says("the answer is no JSON object"))
        return body

    def _refusal(self, response: httpx.Response) -> EvalstopError:
        status, path = response.status_code, response.url.path
        of_status = self._refusals.of_status(status, response.headers, path)
        return of_status or self._refusals.of_reason(status, path, *self._reason(response))

    def _reason(self, response: httpx.Response) -> tuple[str, str]:
        try:
            body = self._parsed(self._whole(response, _PROBLEM_BYTES))
        except Unavailable:
            return "", ""
        code, message = body.get("error_code"), body.get("message")
        return (code if isinstance(code, str) else "", message if isinstance(message, str) else "")

    def _says(self, what: str) -> str:
        return self._refusals.says(what)
