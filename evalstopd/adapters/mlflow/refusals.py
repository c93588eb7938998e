"""What MLflow, or whatever stands in its place, means by an answer that is no good, and whom it concerns."""

from collections.abc import Mapping

import httpx

from evalstopd.adapters.mlflow import server as servers
from evalstopd.adapters.mlflow.later import retry_after_s
from evalstopd.adapters.mlflow.problems import (
    NO_PERMISSION,
    UNKNOWN_RUN,
    Busy,
    Forbidden,
    LockedOut,
    Silent,
    Unreachable,
    one_line,
)
from evalstopd.adapters.mlflow.server import Server
from evalstopd.errors import EvalstopError, Rejected, Unavailable

API = "/api/2.0/mlflow"
AJAX = "/ajax-api/2.0/mlflow"
_UNDOCUMENTED = "/get-history-bulk-interval"
_NO_LOGIN, _NO_RIGHT = 401, 403
_BUSY, _OVERLOADED = 429, 503
_TOO_SLOW = (408, 502, 504)
_NOT_THERE = 404
_ELSEWHERE = range(300, 400)
_NO_WORKSPACES = "FEATURE_DISABLED"


class Refusals:
    """Sorts the answers of one server at one address that are not 200."""

    def __init__(self, server: Server, url: httpx.URL) -> None:
        self._server = server
        self._prefix = url.path.rstrip("/")
        self._where = servers.place(url)

    def says(self, what: str) -> str:
        """Return a message with the server's address, which has no password in it."""
        return f"MLflow at {self._where}: {what}"

    def elsewhere(self, what: str) -> str:
        """Say that what answers is not MLflow's API."""
        return f"{what}: this is not MLflow's API, so look at {servers.named(self._server, 'uri')}"

    def of_status(self, status: int, headers: Mapping[str, str], path: str) -> EvalstopError | None:
        """Return what a status says by itself, whatever comes with it; None where the reason has to be read."""
        if status == _BUSY:
            return Busy(self.says(f"asks for patience (HTTP {status})"), retry_after_s(headers))
        if status == _OVERLOADED:
            return Unreachable(self.says(f"asks for patience (HTTP {status})"))
        if status in _TOO_SLOW:
            return Silent(self.says(f"no answer behind its gateway (HTTP {status})"))
        if status == _NO_RIGHT:
            return Forbidden(self.says(f"{NO_PERMISSION} (HTTP {status})"))
        return self._no_login(path) if status == _NO_LOGIN else None

    def of_reason(self, status: int, path: str, code: str, message: str) -> EvalstopError:
        """Return what is meant by MLflow's own reason for a status; empty where it gave none."""
        if self._server.workspace and (code == _NO_WORKSPACES or message.startswith("Workspace ")):
            return self._no_workspace(code, message)
        if not code:
            return Unavailable(self.says(self._without_reason(status, path)))
        return self._refusal_of_mlflow(status, code, message) or Unavailable(
            self.says(f"HTTP {status}: {one_line(code, 60)}: {one_line(message)}")
        )

    def _without_reason(self, status: int, path: str) -> str:
        """Say what an answer is that MLflow gave no reason for; a call that is not documented need not be there."""
        if status in _ELSEWHERE:
            return self.elsewhere(f"HTTP {status}, on to another address, as to a login page")
        if status == _NOT_THERE and self._is_below(API, path) and not path.endswith(_UNDOCUMENTED):
            return self.elsewhere(f"HTTP {status}, nothing is there")
        return f"HTTP {status}"

    def _no_login(self, path: str) -> Unavailable:
        """Say that we are not known: at all, or by a page's own route, which a gateway may guard apart."""
        said = self.says(f"our login is not taken (HTTP {_NO_LOGIN}): look at {self._logins()}")
        return Unavailable(said) if self._is_below(AJAX, path) else LockedOut(said)

    def _logins(self) -> str:
        """Name what we log in by; all ways to do so where we have none."""
        if self._server.token:
            return servers.named(self._server, "token")
        beside = "mlflow.username and mlflow.password"
        return beside if servers.has_login(self._server) else f"{beside}, or mlflow.token: none is set"

    def _is_below(self, routes: str, path: str) -> bool:
        return path.startswith(f"{self._prefix}{routes}/")

    def _no_workspace(self, code: str, message: str) -> Unreachable:
        """Say what is wrong with the workspace: every run would seem to be unknown, which is no run's fault."""
        if code == _NO_WORKSPACES:
            remedy = "this server has no workspaces, so leave mlflow.workspace (or MLFLOW_WORKSPACE) empty"
        else:
            remedy = f"name one that is there in mlflow.workspace (or MLFLOW_WORKSPACE): {one_line(message)}"
        return Unreachable(self.says(f"workspace {one_line(self._server.workspace, 60)!a}: {remedy}"))

    def _refusal_of_mlflow(self, status: int, code: str, message: str) -> Rejected | None:
        """Return the refusal if MLflow itself gives a reason: a gateway's error page says nothing of the run."""
        if not 400 <= status < 500:
            return None
        if code == "RESOURCE_DOES_NOT_EXIST":
            return Rejected(UNKNOWN_RUN)
        if status == _NOT_THERE:
            return None
        return Rejected(self.says(f"refused: {one_line(code, 60)}: {one_line(message)}"))
