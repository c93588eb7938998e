"""Where the tracking server is and how to speak to it: checked once, so that nothing secret can reach a message."""

import ssl
from dataclasses import dataclass, field

import httpx

from evalstopd.adapters.mlflow.problems import one_line
from evalstopd.errors import Misconfigured

_SCHEMES = ("http", "https")


@dataclass(frozen=True, slots=True)
class Server:
    """A tracking server. `uri` and `proxy` may carry `user:password@`, so neither is ever shown whole.

    `timeout_s` is for one whole request, slow bodies included; `max_bytes` for the body of one answer.
    `ca_file` replaces the system's certificate authorities; `client_cert` is a PEM file with our own certificate and
    its key. Proxies of the environment are not used.
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


def checked_url(server: Server) -> httpx.URL:
    """Return the server's address without credentials or a slash at its end. Raises Misconfigured."""
    url = _url(server.uri, "mlflow.tracking_uri")
    if url.query or url.fragment:
        raise Misconfigured("mlflow.tracking_uri: must not have a query or a fragment")
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
        headers["Authorization"] = f"Bearer {_header(server.token, 'mlflow.token')}"
    if server.workspace:
        headers["X-MLFLOW-WORKSPACE"] = _header(server.workspace, "mlflow.workspace")
    return headers


def auth_of(server: Server) -> httpx.BasicAuth | None:
    """Return the name and password to log in with, the settings' own before those in the address."""
    if server.token:
        return None
    url = _url(server.uri, "mlflow.tracking_uri")
    name, password = (server.username, server.password) if server.username else (url.username, url.password)
    return httpx.BasicAuth(name, password) if name else None


def in_address(server: Server) -> tuple[bool, bool]:
    """Tell whether the address has a name, and whether it has a password. Raises Misconfigured."""
    url = _url(server.uri, "mlflow.tracking_uri")
    return bool(url.username), bool(url.password)


def has_login(server: Server) -> bool:
    """Tell whether a name or a token is known, in the address or beside it. Raises Misconfigured."""
    return bool(server.token or server.username) or (bool(server.uri) and any(in_address(server)))


def tls_of(server: Server) -> ssl.SSLContext:
    """Return how certificates are checked. Raises Misconfigured for a file that cannot be used."""
    try:
        context = ssl.create_default_context(cafile=server.ca_file or None)
    except OSError as error:
        raise Misconfigured(f"mlflow.ca_file: cannot be read as certificates: {one_line(error)}") from error
    if server.client_cert:
        try:
            # An empty password, for a question on the terminal would hold a daemon for ever.
            context.load_cert_chain(server.client_cert, password="")
        except OSError as error:
            raise Misconfigured(f"mlflow.client_cert: no certificate with its key: {one_line(error)}") from error
    return context


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
