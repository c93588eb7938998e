"""Whether the tracking server lets anyone in: asked without any credentials, right after it answered with ours."""

import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.problems import LockedOut
from evalstopd.adapters.mlflow.server import Server, checked_url
from evalstopd.errors import Rejected, Unavailable

AGAIN_S = 3_600.0
_ASKED = {"max_results": "1"}
_REFUSED = (401, 403)
# A proxy that asks for a certificate says 400 (nginx) where none comes, to the very question that it let us ask.
_REFUSED_BARE = (*_REFUSED, 400, 495, 496)
_LATER = (408, 429)


class ServerGate:
    """The Gate port. The answer is kept for an hour, and beyond that while the server cannot be asked."""

    def __init__(self, http: Http, server: Server, now_s: Callable[[], float] = time.monotonic) -> None:
        self._http = http
        # Not only the headers: an address may carry a name and a password too, and a certificate of ours is a login.
        bare = str(checked_url(server).copy_with(userinfo=b""))
        self._stranger = Http(replace(server, uri=bare, username="", password="", token="", client_cert=""))
        self._certified = bool(server.client_cert)
        self._now_s = now_s
        self._lock = threading.Lock()
        self._answer: tuple[float, bool] | None = None

    def close(self) -> None:
        """Close the connections of its own; the client with our credentials is not its own."""
        self._stranger.close()

    def admits_strangers(self) -> bool:
        """Tell whether the API answers who does not log in.

        401, 403 and a handshake that is refused for want of a certificate are refusals, any other answer is none.
        """
        with self._lock:
            now_s = self._now_s()
            if self._answer is not None and now_s < self._answer[0] + AGAIN_S:
                return self._answer[1]
            try:
                self._answer = (now_s, self._ask())
            except Unavailable:
                if self._answer is None:
                    raise
            return self._answer[1]

    def _ask(self) -> bool:
        # A server that refuses us as well (by its host check, say) shows nothing of strangers.
        try:
            self._http.get("/experiments/search", _ASKED)
        except (Rejected, LockedOut) as error:
            raise Unavailable(f"{error}: whether it lets strangers in cannot be told") from error
        try:
            status = self._stranger.status("/experiments/search", _ASKED)
        except Unavailable as error:
            if self._certified and _is_alert(error):
                return False
            raise
        if status >= 500 or status in _LATER:
            raise Unavailable(f"whether it lets strangers in cannot be told: HTTP {status}")
        return status not in (_REFUSED_BARE if self._certified else _REFUSED)


def _is_alert(error: BaseException) -> bool:
    """Tell whether the server broke off the handshake by an alert: ours, but for the certificate the same, it took."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    reason = (cause.reason or "") if isinstance(cause, ssl.SSLError) else ""
    return "ALERT" in reason and "INTERNAL" not in reason
