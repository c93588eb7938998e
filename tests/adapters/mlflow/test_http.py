"""The client against servers that misbehave: it always ends in time, in one plain line, without secrets."""

import base64
import time

import pytest

from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.problems import Busy, Forbidden, LockedOut, Silent, TooLong, Unreachable
from evalstopd.adapters.mlflow.refusals import AJAX
from evalstopd.adapters.mlflow.server import Server
from evalstopd.errors import EvalstopError, Rejected, Unavailable
from tests.adapters.mlflow import standin
from tests.adapters.mlflow.standin import Reply, Standin, closed_port, plain, raw
from tests.contracts.metrics_contract import is_one_line

# For servers that are slow on purpose; a slow machine must not take a bad answer for silence.
LIMIT_S = 0.6
PATIENT_S = 60.0
HTML = b"<html><body>Welcome to \x1b[31m<script>nginx</script></body></html>"
DEEP = b"[" * 200_000


def failure(uri: str, limit_s: float = PATIENT_S, max_bytes: int = 2**20, **settings: str) -> EvalstopError:
    http = Http(Server(uri, timeout_s=limit_s, max_bytes=max_bytes, **settings))
    try:
        with pytest.raises(EvalstopError) as caught:
            http.get("/runs/get", {"run_id": "r"})
    finally:
        http.close()
    assert is_one_line(caught.value)
    return caught.value


def failure_of(reply: Reply, limit_s: float = PATIENT_S) -> EvalstopError:
    with Standin(lambda asked: reply) as server:
        return failure(server.uri, limit_s)


@pytest.mark.timed
@pytest.mark.parametrize("reply", [standin.hang, standin.slow_body, standin.slow_head])
def test_whatever_is_slow_ends_at_the_limit_of_the_whole_request(reply: Reply):
    """A byte now and then resets the limits of httpx itself, in the head of an answer as in its body."""
    began = time.monotonic()
    assert isinstance(failure_of(reply, LIMIT_S), Silent)
    assert time.monotonic() - began < LIMIT_S + 0.5


def test_a_body_that_never_pauses_ends_at_the_limit_too():
    with Standin(lambda asked: standin.drip(b"HTTP/1.1 200 OK\r\n\r\n", b" " * 50, 0)) as server:
        assert isinstance(failure(server.uri, LIMIT_S, max_bytes=2**30), Silent)


@pytest.mark.parametrize(
    "reply",
    [
        standin.half,
        standin.half_without_length,
        standin.nothing,
        standin.garbage,
        raw(b""),
        raw(HTML),
        raw(b"[1]"),
        raw(b"null"),
        raw(b'"{}"'),
        raw(b"\xff\xfe\xff"),
        raw(DEEP),
        raw(b'{"a": ' + b"9" * 10_000 + b"}"),
        raw(b"{}", 204),
        raw(b"{}", 201),
        raw(HTML, 400),
        raw(HTML, 404),
        raw(b'{"error_code": 5, "message": []}', 400),
        raw(b'{"error_code": "ENDPOINT_NOT_FOUND"}', 404),
        raw(HTML, 500),
        raw(b"\x1f\x8b\x08", 200, "Content-Encoding: gzip"),
        raw(b"{}", 302, "Location: http://127.0.0.1:9/elsewhere"),
        raw(b"{}", 307, "Location: //other.example/api"),
        raw(b"{}", 999),
    ],
)
def test_an_answer_that_is_not_mlflows_is_unavailable(reply: Reply):
    assert isinstance(failure_of(reply), Unavailable)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, LockedOut), (403, Forbidden), (408, Silent), (429, Busy), (502, Silent), (503, Unreachable),
     (504, Silent)],
)  # fmt: skip
def test_each_status_has_its_kind(status: int, kind: type[EvalstopError]):
    assert type(failure_of(raw(HTML, status))) is kind


def test_a_login_that_only_a_pages_own_route_does_not_take_is_no_trouble_of_the_whole_server():
    with Standin(lambda asked: raw(HTML, 401)) as server, pytest.raises(Unavailable, match="HTTP 401") as caught:
        Http(Server(server.uri)).get(f"{AJAX}/metrics/get-history-bulk", {})
    assert type(caught.value) is Unavailable


def test_no_permission_is_said_although_the_server_is_healthy():
    """A host name that the server does not list gives 403 on the API while /health stays 200."""
    with Standin(lambda asked: raw(b"OK") if asked.path == "/health" else raw(b"no", 403)) as server:
        assert "no permission" in str(failure(server.uri))


def test_an_unknown_run_is_rejected():
    error = failure_of(plain({"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "Run 'x' not found"}, 404))
    assert (type(error), str(error)) == (Rejected, "unknown run")


@pytest.mark.parametrize(
    ("reply", "what"),
    [
        (raw(b"not found", 404), "HTTP 404, nothing is there"),
        (raw(HTML, 404), "HTTP 404, nothing is there"),
        (raw(b"", 302, "Location: https://login/?secret=s3cret"), "HTTP 302, on to another address"),
        (raw(b"", 307, "Location: /login"), "HTTP 307, on to another address"),
        (raw(HTML), "a page for people, a login's perhaps"),
        (raw(b" \n<!doctype html>"), "a page for people, a login's perhaps"),
    ],
)
def test_what_is_not_mlflows_api_is_said_with_the_setting_and_the_address(reply: Reply, what: str):
    with Standin(lambda asked: reply) as server:
        where = server.uri.replace("://", "://ada:s3cret@") + "/mlflwo"
        said = str(failure(where))
    assert said.startswith(f"MLflow at {server.uri}/mlflwo: {what}")
    assert said.endswith(": this is not MLflow's API, so look at mlflow.tracking_uri")
    assert "s3cret" not in said


@pytest.mark.parametrize("path", [f"{AJAX}/metrics/get-history-bulk", "/metrics/get-history-bulk-interval"])
def test_a_call_that_is_not_documented_and_not_there_says_nothing_of_the_address(path: str):
    with Standin(lambda asked: raw(HTML, 404)) as server, pytest.raises(Unavailable, match=r"HTTP 404$"):
        Http(Server(server.uri)).get(path, {})


def test_what_is_half_an_answer_is_no_page():
    assert str(failure_of(raw(b'{"run": '))).endswith(": the answer is not JSON")


def test_mlflows_own_reason_is_told_escaped_and_cut():
    hostile = {"error_code": "INVALID_PARAMETER_VALUE", "message": "bad\n\x1b[31m é " + "x" * 9_000}
    error = failure_of(plain(hostile, 400))
    assert type(error) is Rejected
    assert "INVALID_PARAMETER_VALUE: bad\\n\\x1b[31m \\xe9 xxx" in str(error)


def test_what_went_wrong_within_mlflow_is_told_with_the_status():
    error = failure_of(plain({"error_code": "INTERNAL_ERROR", "message": "disk full"}, 500))
    assert type(error) is Unavailable
    assert str(error).endswith(": HTTP 500: INTERNAL_ERROR: disk full")


def in_workspace(body: dict[str, str], status: int, workspace: str = "team-b") -> EvalstopError:
    with Standin(lambda asked: plain(body, status)) as server:
        return failure(server.uri, workspace=workspace)


def test_a_workspace_that_is_not_there_is_the_settings_fault_and_no_runs():
    gone = {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "Workspace 'team-b' not found"}
    error = in_workspace(gone, 404)
    assert type(error) is Unreachable
    assert "workspace 'team-b': name one that is there in mlflow.workspace (or MLFLOW_WORKSPACE)" in str(error)
    assert str(in_workspace(gone, 404, workspace="")) == "unknown run"
    run = {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "Run with id=r not found"}
    assert str(in_workspace(run, 404)) == "unknown run"


def test_a_server_without_workspaces_says_what_to_leave_empty():
    off = {"error_code": "FEATURE_DISABLED", "message": "Workspace APIs are not available"}
    error = in_workspace(off, 500)
    assert type(error) is Unreachable
    assert "this server has no workspaces, so leave mlflow.workspace (or MLFLOW_WORKSPACE) empty" in str(error)


@pytest.mark.parametrize("declared", [True, False])
def test_a_huge_body_is_left_after_its_cap(declared: bool):
    endless = standin.drip(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b" " * 65_536, 0)
    with Standin(lambda asked: standin.large(100 * 2**20) if declared else endless) as server:
        assert isinstance(failure(server.uri, max_bytes=2**20), TooLong)


def test_a_refused_connection_is_unreachable():
    error = failure(f"http://127.0.0.1:{closed_port()}")
    assert isinstance(error, Unreachable)
    assert "Connection refused" in str(error)


def test_a_redirect_is_not_followed_and_no_secret_travels():
    with Standin(lambda asked: plain({})) as elsewhere:
        away = raw(b"", 302, f"Location: {elsewhere.uri}/api")
        with Standin(lambda asked: away) as server:
            assert "HTTP 302" in str(failure(server.uri, token="s3cret"))
        assert elsewhere.asked == []


def test_proxies_and_credentials_of_the_environment_are_not_used(monkeypatch, tmp_path):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login eve password evil\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port()}")
    with Standin(lambda asked: plain({})) as server:
        Http(Server(server.uri)).get("/runs/get", {})
    assert "authorization" not in server.asked[0].headers


def test_a_proxy_that_was_asked_for_is_used_and_keeps_to_the_limit():
    with Standin(lambda asked: plain({"by": "proxy"})) as proxy:
        server = Server("http://tracker.invalid:5000", proxy=proxy.uri)
        assert Http(server).get("/runs/get", {}).body == {"by": "proxy"}
    with Standin(lambda asked: standin.slow_head) as proxy:
        assert isinstance(failure("http://tracker.invalid", LIMIT_S, proxy=proxy.uri), Silent)


BASIC = "Basic " + base64.b64encode("dæmon:p:ss".encode()).decode()


@pytest.mark.parametrize(
    ("prefix", "settings", "header"),
    [
        ("", {"username": "dæmon", "password": "p:ss"}, BASIC),
        ("d%C3%A6mon:p%3Ass@", {}, BASIC),
        ("other:one@", {"username": "dæmon", "password": "p:ss"}, BASIC),
        ("", {"token": "abc.def"}, "Bearer abc.def"),
        ("other:one@", {"token": "abc.def"}, "Bearer abc.def"),
    ],
)
def test_the_given_credentials_are_sent(prefix: str, settings: dict[str, str], header: str):
    with Standin(lambda asked: plain({})) as server:
        uri = server.uri.replace("//", f"//{prefix}") + "/below/"
        Http(Server(uri, workspace="team-a", **settings)).get("/runs/get", {"run_id": "a&b=c/../#"})
    asked = server.asked[0]
    assert (asked.path, asked.query) == ("/below/api/2.0/mlflow/runs/get", {"run_id": "a&b=c/../#"})
    assert (asked.headers["authorization"], asked.headers["x-mlflow-workspace"]) == (header, "team-a")


@pytest.mark.parametrize("status", [200, 302, 400, 401, 404, 500, None])
def test_no_failure_shows_a_credential(status: int | None):
    with Standin(lambda asked: raw(b"<no>", status) if status else standin.hang) as server:
        uri = server.uri.replace("//", "//s3name:s3cret@")
        shown = str(failure(uri, PATIENT_S if status else LIMIT_S)) + repr(
            Server(uri, token="s3token", password="s3word")
        )
    assert "s3" not in shown
