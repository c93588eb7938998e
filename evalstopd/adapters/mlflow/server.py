"""Where the tracking server is and how to speak to it: checked once, so that nothing secret can reach a message."""

import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from evalstopd.adapters.mlflow.problems import one_line
from evalstopd.errors import Misconfigured

_SCHEMES = ("http", "https")
_REHASHED = re.compile(r"[0-9a-f]{8}\.[0-9]+")
VARIABLES = {
    "uri": "MLFLOW_TRACKING_URI",
    "token": "MLFLOW_TRACKING_TOKEN",
    "workspace": "MLFLOW_WORKSPACE",
    "ca_file": "MLFLOW_TRACKING_SERVER_CERT_PATH",
    "client_cert": "MLFLOW_TRACKING_CLIENT_CERT_PATH",
}
"""MLflow's variables for what a server's fields leave open."""


@dataclass(frozen=True, slots=True)
class Server:
    """A tracking server. `uri` and `proxy` may carry `user:password@`, so neither is ever shown whole.

    `timeout_s` is for one whole request, slow bodies included; `max_bytes` for the body of one answer.
    `ca_file` replaces the system's certificate authorities, a file or a folder as `openssl rehash` leaves it;
    `client_cert` is a PEM file with our own certificate and its key. Proxies of the environment are not used.
    `from_variables` are the fields that MLflow's variables gave: messages name those.
    """

    uri: str = field(repr=False)
    timeout_s: float = 5.0
    max_bytes: int = 32 * 2**20
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    workspace: str = ""
    proxy: str = field(default="", repr=False)
    ca_file: str = ""
    client_cert: str = ""
    from_variables: tuple[str, ...] = ()


def named(server: Server, name: str) -> str:
    """Return what gave a field its value, for messages: a setting, or one of MLflow's variables."""
    return VARIABLES[name] if name in server.from_variables else f"mlflow.{'tracking_uri' if name == 'uri' else name}"


def checked_url(server: Server) -> httpx.URL:
    """Return the server's address without credentials or a slash at its end. Raises Misconfigured."""
    url = _address(server)
    if url.query or url.fragment:
        raise Misconfigured(f"{named(server, 'uri')}: must not have a query or a fragment")
    return url.copy_with(userinfo=b"", raw_path=url.raw_path.rstrip(b"/"))


def place(url: httpx.URL) -> str:
    """Return the address for messages."""
    return one_line(url.copy_with(userinfo=b""), 80)


def proxy_of(server: Server) -> httpx.Proxy | None:
    """Return the proxy that was asked for, if any. Raises Misconfigured."""
    return httpx.Proxy(_url(server.proxy, "mlflow.proxy")) if server.proxy else None


def headers_of(server: Server) -> dict[str, str]:
    """Return the headers of every request. Raises Misconfigured, without the value, for one that cannot be a header."""
    # A body that is not compressed cannot be a bomb.
    headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "evalstopd"}
    if server.token:
        headers["Authorization"] = f"Bearer {_header(server.token, named(server, 'token'))}"
    if server.workspace:
        headers["X-MLFLOW-WORKSPACE"] = _header(server.workspace, named(server, "workspace"))
    return headers


def auth_of(server: Server) -> httpx.BasicAuth | None:
    """Return the name and password to log in with, the settings' own before those in the address."""
    if server.token:
        return None
    url = _address(server)
    name, password = (server.username, server.password) if server.username else (url.username, url.password)
    return httpx.BasicAuth(name, password) if name else None


def in_address(server: Server) -> tuple[bool, bool]:
    """Tell whether the address has a name, and whether it has a password. Raises Misconfigured."""
    url = _address(server)
    return bool(url.username), bool(url.password)


def has_login(server: Server) -> bool:
    """Tell whether a name or a token is known, in the address or beside it. Raises Misconfigured."""
    return bool(server.token or server.username) or (bool(server.uri) and any(in_address(server)))


def tls_of(server: Server) -> ssl.SSLContext:
    """Return how certificates are checked. Raises Misconfigured for a file that cannot be used."""
    context = _authorities(server)
    if server.client_cert:
        try:
            # An empty password, for a question on the terminal would hold a daemon for ever.
            context.load_cert_chain(server.client_cert, password="")
        except OSError as error:
            where = named(server, "client_cert")
            raise Misconfigured(f"{where}: no certificate with its key: {one_line(error)}") from error
    return context


def _authorities(server: Server) -> ssl.SSLContext:
    where, path = named(server, "ca_file"), Path(server.ca_file)
    try:
        if not server.ca_file or not path.is_dir():
            return ssl.create_default_context(cafile=server.ca_file or None)
        if not any(_REHASHED.fullmatch(each.name) for each in path.iterdir()):
            raise Misconfigured(f"{where}: the folder has no certificates that OpenSSL finds: `openssl rehash` it")
        return ssl.create_default_context(capath=server.ca_file)
    except OSError as error:
        raise Misconfigured(f"{where}: cannot be read as certificates: {one_line(error)}") from error


def _address(server: Server) -> httpx.URL:
    return _url(server.uri, named(server, "uri"))


def _url(text: str, setting: str) -> httpx.URL:
    # The cause is left out on purpose: it repeats the address, which may hold a password.
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError):
        raise Misconfigured(f"{setting}: not an address") from None
    if url.scheme not in _SCHEMES or not url.host:
        raise Misconfigured(f"{setting}: must be http://host[:port] or https://host[:port]")
    if url.port is not None and not 0 < url.port < 65_536:
        raise Misconfigured(f"{setting}: there is no such port")
    return url


def _header(value: str, setting: str) -> str:
    if not (value.isascii() and value.isprintable() and value == value.strip()):
        raise Misconfigured(f"{setting}: must be printable ASCII without spaces around it")
    return value
