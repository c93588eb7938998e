"""Stands between the daemon and a real server: passes on what it is told to, and breaks the rest."""

import http.client
from urllib.parse import urlsplit

from tests.adapters.mlflow.standin import Asked, Reply, raw

_PASSED_ON = ("content-type", "authorization", "x-mlflow-workspace")


def passed_on(uri: str, asked: Asked) -> Reply:
    """Return the real server's answer to a request."""
    line = http.client.HTTPConnection(urlsplit(uri).netloc, timeout=60)
    headers = {name: value for name, value in asked.headers.items() if name in _PASSED_ON}
    try:
        line.request(asked.method, asked.target, asked.body or None, headers)
        answer = line.getresponse()
        return raw(answer.read(), answer.status, "Content-Type: application/json")
    finally:
        line.close()
