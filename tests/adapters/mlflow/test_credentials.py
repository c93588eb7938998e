"""Where the login comes from: settings, MLflow's variables, MLflow's file; and nothing secret in any message."""

import json
import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from evalstopd.adapters.mlflow.credentials import check, completed
from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.server import Server, auth_of
from evalstopd.errors import Misconfigured, Unavailable
from tests.adapters.mlflow.standin import Standin, plain
from tests.adapters.notify.certificate import loopback
from tests.installed import NO_MLFLOW, need

URI = "https://tracker.example"
LOGIN = {"MLFLOW_TRACKING_USERNAME": "s3name", "MLFLOW_TRACKING_PASSWORD": "s3word"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a home with MLflow's file in it."""
    (tmp_path / ".mlflow").mkdir()
    file = tmp_path / ".mlflow" / "credentials"
    file.write_text("[mlflow]\nmlflow_tracking_username = filename\nmlflow_tracking_password = s3file\n")
    file.chmod(0o600)
    return tmp_path


def login(server: Server) -> tuple[str, str, str]:
    return server.username, server.password, server.token


def test_the_settings_win_whole(home: Path):
    for own in (
        Server(URI, username="me", password="mine"),
        Server(URI, token="t"),
        Server("https://me:mine@x.example"),
    ):
        found = completed(own, {"HOME": str(home), **LOGIN, "MLFLOW_TRACKING_TOKEN": "other"})
        assert login(found.server) == login(own)
        assert check(found) == "taken from the settings"


def test_of_two_logins_the_one_that_is_used_is_said(home: Path):
    for own in (
        Server(URI, token="t", username="me", password="mine"),
        Server("https://me:mine@x.example", token="t"),
    ):
        assert check(completed(own, {})) == "taken from the settings: the token, not the user name and password"
        assert auth_of(own) is None
    by_variables = completed(Server(URI), {**LOGIN, "MLFLOW_TRACKING_TOKEN": "t"})
    assert check(by_variables) == "taken from MLFLOW_TRACKING_USERNAME and _PASSWORD, not MLFLOW_TRACKING_TOKEN"
    by_file = completed(Server(URI), {"HOME": str(home), "MLFLOW_TRACKING_TOKEN": "t"})
    assert check(by_file) == f"taken from {home}/.mlflow/credentials, not MLFLOW_TRACKING_TOKEN"


def test_then_the_environment_then_the_file(home: Path):
    both = completed(Server(URI), {"HOME": str(home), **LOGIN, "MLFLOW_TRACKING_TOKEN": "t"})
    assert login(both.server) == ("s3name", "s3word", "")
    assert login(completed(Server(URI), {"HOME": str(home)}).server) == ("filename", "s3file", "")
    assert login(completed(Server(URI), {"MLFLOW_TRACKING_TOKEN": "t"}).server) == ("", "", "t")
    assert login(completed(Server(URI), {"HOME": str(home / "nowhere")}).server) == ("", "", "")


def test_address_workspace_and_certificates_come_from_the_environment_where_the_settings_are_silent():
    environment = {
        "MLFLOW_TRACKING_URI": "https://user:s3cret@other.example",
        "MLFLOW_WORKSPACE": "team",
        "MLFLOW_TRACKING_SERVER_CERT_PATH": "/ca",
        "MLFLOW_TRACKING_CLIENT_CERT_PATH": "/cert",
    }
    server = completed(Server(""), environment).server
    assert (server.uri, server.workspace) == (environment["MLFLOW_TRACKING_URI"], "team")
    assert (server.ca_file, server.client_cert) == ("/ca", "/cert")
    kept = completed(Server(URI, workspace="own", ca_file="/own", client_cert="/mine"), environment).server
    assert (kept.uri, kept.workspace, kept.ca_file, kept.client_cert) == (URI, "own", "/own", "/mine")


def test_a_file_that_others_can_read_is_said_by_the_check(home: Path):
    file = home / ".mlflow" / "credentials"
    file.chmod(0o640)
    found = completed(Server(URI), {"HOME": str(home)})
    with pytest.raises(Misconfigured, match="mode 0640") as caught:
        check(found)
    assert "s3" not in str(caught.value) + repr(found)
    file.chmod(0o600)
    assert check(found) == f"taken from {file}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MLFLOW_TRACKING_INSECURE_TLS", "true"),
        ("MLFLOW_TRACKING_INSECURE_TLS", "1"),
        ("MLFLOW_TRACKING_AWS_SIGV4", "true"),
        ("MLFLOW_TRACKING_AUTH", "plugin"),
    ],
)
def test_what_mlflow_would_do_and_the_daemon_does_not_is_refused_by_name(name: str, value: str):
    with pytest.raises(Misconfigured, match=name):
        completed(Server(URI), {name: value})


def test_without_any_address_both_places_are_named():
    with pytest.raises(Misconfigured, match=r"neither mlflow\.tracking_uri nor MLFLOW_TRACKING_URI"):
        completed(Server(""), {})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("s3cret without a section", "line 1 stands before any section; the file begins with a line [mlflow]"),
        ("[mlflow]\na = 1\ns3cret\ns3cret2\n", "not of the form name = value: line 3, 4"),
        ("[mlflow]\n" + "s3cret\n" * 40, "not of the form name = value: line 2, 3, 4, 5, 6, ..."),
        ("[mlflow]\ns3cret = 1\ns3cret = 2\n", "line 3 says anew what a line above it has said"),
        ("[mlflow]\n[mlflow]\n", "line 2 says anew what a line above it has said"),
        ("[mlflow]\nmlflow_tracking_password = s3cret%x", "a % in a value has to be written %%"),
        ("\udcff", "it is no text in UTF-8"),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong_and_not_shown(home: Path, text: str, words: str):
    file = home / ".mlflow" / "credentials"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(Misconfigured) as caught:
        completed(Server(URI), {"HOME": str(home)})
    assert str(caught.value) == f"{file}: cannot be read as MLflow's credentials file: {words}"
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("uri", "environment", "words"),
    [
        ("https://s3me@x.example", {}, "a user name and no password in the address in mlflow.tracking_uri: write both"),
        (
            "https://:s3word@x.example",
            {},
            "a password and no user name in the address in mlflow.tracking_uri: write both",
        ),
        (
            "",
            {"MLFLOW_TRACKING_URI": "https://s3me@x.example"},
            "a user name and no password in the address in MLFLOW_TRACKING_URI: write both",
        ),
        (URI, {"MLFLOW_TRACKING_USERNAME": "s3me"}, "a user name and no password in the environment: set both"),
        (URI, {"MLFLOW_TRACKING_PASSWORD": "s3word"}, "a password and no user name in the environment: set both"),
    ],
)
def test_half_a_login_is_refused_by_the_place_it_is_in(uri: str, environment: dict[str, str], words: str):
    with pytest.raises(Misconfigured, match="half a login") as caught:
        completed(Server(uri), environment)
    assert words in str(caught.value)
    assert "s3" not in str(caught.value)


def test_half_a_login_in_the_file_is_refused_and_a_token_beside_it_is_a_whole_one(home: Path):
    file = home / ".mlflow" / "credentials"
    file.write_text("[mlflow]\nmlflow_tracking_username = s3name\n")
    with pytest.raises(Misconfigured, match=f"a user name and no password in the environment and {file}: set both"):
        completed(Server(URI), {"HOME": str(home)})
    assert login(completed(Server(URI), {"HOME": str(home), "MLFLOW_TRACKING_TOKEN": "t"}).server) == ("", "", "t")


def test_a_server_that_asks_for_our_certificate_gets_it(tmp_path: Path):
    context, certificate = loopback(tmp_path)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(certificate)
    own = tmp_path / "own.pem"
    own.write_bytes(certificate.read_bytes() + (tmp_path / "key.pem").read_bytes())
    with Standin(lambda asked: plain({"well": "come"}), context) as server:
        uri = server.uri.replace("127.0.0.1", "localhost")
        known = Http(Server(uri, ca_file=str(certificate), client_cert=str(own)))
        assert known.get("/runs/get", {}).body == {"well": "come"}
        known.close()
        stranger = Http(Server(uri, ca_file=str(certificate)))
        with pytest.raises(Unavailable):
            stranger.get("/runs/get", {})
        stranger.close()


def test_a_certificate_without_its_key_is_named(tmp_path: Path):
    _, certificate = loopback(tmp_path)
    with pytest.raises(Misconfigured, match="client_cert"):
        Http(Server(URI, client_cert=str(certificate)))


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MLFLOW_TRACKING_URI", "no address"),
        ("MLFLOW_TRACKING_URI", "http://h?query=1"),
        ("MLFLOW_WORKSPACE", "n\u00f6"),
        ("MLFLOW_TRACKING_TOKEN", "n\u00f6"),
        ("MLFLOW_TRACKING_SERVER_CERT_PATH", "/nowhere/ca.pem"),
        ("MLFLOW_TRACKING_CLIENT_CERT_PATH", "/nowhere/own.pem"),
    ],
)
def test_what_a_variable_got_wrong_is_said_by_its_name(variable: str, value: str):
    """The site's settings say nothing of it: their names would send an admin to the wrong file."""
    with pytest.raises(Misconfigured, match=f"^{variable}: "):
        Http(completed(Server("" if variable == "MLFLOW_TRACKING_URI" else URI), {variable: value}).server)


def test_a_folder_of_authorities_is_taken_as_mlflow_takes_it(tmp_path: Path):
    """MLflow hands the path to requests, which takes a folder that OpenSSL's own tool has prepared."""
    context, certificate = loopback(tmp_path)
    folder = tmp_path / "authorities"
    folder.mkdir()
    shutil.copy(certificate, folder / "site.pem")
    variable = {"MLFLOW_TRACKING_SERVER_CERT_PATH": str(folder)}
    with pytest.raises(Misconfigured, match=r"^MLFLOW_TRACKING_SERVER_CERT_PATH: the folder .*`openssl rehash` it"):
        Http(completed(Server(URI), variable).server)
    subprocess.run(["openssl", "rehash", str(folder)], check=True, timeout=60, capture_output=True)
    with Standin(lambda asked: plain({"safe": True}), context) as server:
        http = Http(completed(Server(server.uri.replace("127.0.0.1", "localhost")), variable).server)
        assert http.get("/x", {}).body == {"safe": True}
        http.close()


_MLFLOWS = """
import json, os, sys
from mlflow.utils.credentials import get_default_host_creds
for line in sys.stdin:
    os.environ.clear()
    os.environ.update(json.loads(line))
    creds = get_default_host_creds("https://tracker.example")
    found = [creds.username, creds.password, creds.token, creds.client_cert_path, creds.server_cert_path]
    print(json.dumps(found), flush=True)
"""
Helper = Callable[[Mapping[str, str]], list[str]]


@pytest.fixture(scope="module")
def mlflows() -> Iterator[Helper]:
    """MLflow's private helper: it reads each environment anew, and is loaded once."""
    need("mlflow", NO_MLFLOW)
    command = [sys.executable, "-W", "ignore", "-c", _MLFLOWS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        asking, answers = process.stdin, process.stdout
        assert asking is not None
        assert answers is not None

        def ask(environment: Mapping[str, str]) -> list[str]:
            print(json.dumps(dict(environment)), file=asking, flush=True)
            return [value or "" for value in json.loads(answers.readline())]

        yield ask


@pytest.mark.mlflow
@pytest.mark.parametrize(
    "environment",
    [
        {},
        LOGIN,
        {"MLFLOW_TRACKING_USERNAME": "s3name"},
        {"MLFLOW_TRACKING_SERVER_CERT_PATH": "/ca", "MLFLOW_TRACKING_CLIENT_CERT_PATH": "/cert"},
    ],
)
def test_it_reads_what_mlflow_itself_reads(home: Path, environment: dict[str, str], mlflows: Helper):
    """The contract with MLflow's private helper, which is run here and never by the daemon."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    given = {**kept, "HOME": str(home), **environment}
    ours = completed(Server(URI), given).server
    theirs = mlflows(given)
    assert [*login(ours), ours.client_cert, ours.ca_file] == theirs
