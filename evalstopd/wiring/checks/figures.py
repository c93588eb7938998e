"""What `evalstopd check` asks of the address for Prometheus: could a daemon serve its figures there, or does one."""

import socket
from http.client import HTTPConnection, HTTPException

from evalstopd.errors import Misconfigured
from evalstopd.meters.port import not_to_be_had
from evalstopd.settings import Settings
from evalstopd.wiring.meters import require_prometheus

_LIMIT_S = 2.0
_OURS = b"evalstopd_"


def figures(settings: Settings) -> str:
    """Tell where Prometheus may scrape. Raises Misconfigured without the extra, or where a daemon could not listen."""
    asked = settings.metrics
    if not asked.port:
        return "no figures are served for Prometheus"
    require_prometheus()
    said = f"figures for Prometheus at http://{asked.host}:{asked.port}/metrics"
    try:
        _try(asked.host, asked.port)
    except OSError as error:
        if not _served(asked.host, asked.port):
            raise Misconfigured(not_to_be_had(asked.host, asked.port, error)) from error
        return f"{said}, where a daemon serves them now"
    return said


def _try(host: str, port: int) -> None:
    """Take the address as the daemon does, and give it back unused. Raises OSError where it cannot be had."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((host, port))


def _served(host: str, port: int) -> bool:
    """Tell whether figures of ours are served there: then it is a daemon of ours that has the address."""
    asking = HTTPConnection(host, port, timeout=_LIMIT_S)
    try:
        asking.request("GET", "/metrics")
        return _OURS in asking.getresponse().read1(4096)
    except (OSError, HTTPException):
        return False
    finally:
        asking.close()
