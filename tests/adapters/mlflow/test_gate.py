"""The door of a tracking server: who gets in without a login, asked seldom, and never taken for granted."""

import base64
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evalstopd.adapters.mlflow.gate import AGAIN_S, ServerGate
from evalstopd.adapters.mlflow.http import Http
from evalstopd.adapters.mlflow.server import Server
from evalstopd.errors import Unavailable
from tests.adapters.mlflow import standin
from tests.adapters.mlflow.standin import Asked, Reply, Standin, plain
from tests.adapters.notify.certificate import loopback

OURS = f"Basic {base64.b64encode(b'daemon:secret').decode()}"
NO = plain({"error": "log in"}, 401)
YES = plain({"experiments": []})


def door(known: Reply = YES, stranger: Reply = NO) -> Callable[[Asked], Reply]:
    return lambda asked: known if asked.headers.get("authorization") == OURS else stranger


@contextmanager
def gate(
    server: Standin, now_s: Callable[[], float] = lambda: 0.0, address: str = "", limit_s: float = 60.0
) -> Iterator[ServerGate]:
    named = {} if address else {"username": "daemon", "password": "secret"}
    settings = Server(address or server.uri, timeout_s=limit_s, **named)
    http = Http(settings)
    made = ServerGate(http, settings, now_s)
    yield made
    made.close()
    http.close()


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_refuses_strangers(status: int):
    with Standin(door(stranger=plain({}, status))) as server, gate(server) as asked:
        assert not asked.admits_strangers()


def test_credentials_in_the_address_are_no_strangers_either():
    with Standin(door()) as server, gate(server, address=server.uri.replace("//", "//daemon:secret@")) as asked:
        assert not asked.admits_strangers()
        assert [each.headers.get("authorization") for each in server.asked] == [OURS, None]


@pytest.mark.parametrize("stranger", [YES, plain({}, 404), plain({}, 400), standin.raw(b"<html>log in</html>", 302)])
def test_any_answer_but_a_refusal_is_an_open_door(stranger: Reply):
    with Standin(door(stranger=stranger)) as server, gate(server) as asked:
        assert asked.admits_strangers()


@pytest.mark.parametrize("stranger", [plain({}, 500), plain({}, 503), plain({}, 429), standin.hang, standin.nothing])
def test_no_answer_tells_nothing(stranger: Reply):
    limit_s = 0.6 if stranger is standin.hang else 60.0
    with (
        Standin(door(stranger=stranger)) as server,
        gate(server, limit_s=limit_s) as asked,
        pytest.raises(Unavailable),
    ):
        asked.admits_strangers()


def test_a_server_that_refuses_us_as_well_tells_nothing():
    """Its host check, say, answers 403 to everyone."""
    refused = plain({}, 403)
    raised = pytest.raises(Unavailable, match="cannot be told")
    with Standin(door(known=refused, stranger=refused)) as server, gate(server) as asked, raised:
        asked.admits_strangers()


def test_it_is_asked_again_after_an_hour_and_a_change_is_seen():
    now = [0.0]
    with Standin(door()) as server, gate(server, lambda: now[0]) as asked:
        assert not asked.admits_strangers()
        server.script = door(stranger=YES)
        now[0] = AGAIN_S - 1
        assert not asked.admits_strangers()
        assert len(server.asked) == 2
        now[0] = AGAIN_S
        assert asked.admits_strangers()


def test_what_was_learned_holds_while_the_server_is_away():
    now = [0.0]
    with Standin(door()) as server, gate(server, lambda: now[0]) as asked:
        assert not asked.admits_strangers()
        server.script = door(known=plain({}, 500))
        now[0] = 2 * AGAIN_S
        assert not asked.admits_strangers()


@contextmanager
def certified(server: Standin, certificate: Path) -> Iterator[ServerGate]:
    """The gate of who is let in by a certificate."""
    own = certificate.with_name("own.pem")
    own.write_bytes(certificate.read_bytes() + certificate.with_name("key.pem").read_bytes())
    uri = server.uri.replace("127.0.0.1", "localhost")
    settings = Server(uri, timeout_s=60.0, ca_file=str(certificate), client_cert=str(own))
    http = Http(settings)
    made = ServerGate(http, settings, lambda: 0.0)
    yield made
    made.close()
    http.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_server_that_asks_for_a_certificate_refuses_strangers(tmp_path: Path, version: ssl.TLSVersion):
    """A stranger has none, and the handshake is refused: in it, or right after it (TLS 1.3)."""
    context, certificate = loopback(tmp_path)
    context.verify_mode, context.maximum_version = ssl.CERT_REQUIRED, version
    context.load_verify_locations(certificate)
    with Standin(lambda asked: YES, context) as server, certified(server, certificate) as asked:
        assert not asked.admits_strangers()


@pytest.mark.parametrize(("stranger", "admitted"), [(400, False), (496, False), (200, True), (404, True)])
def test_a_proxy_that_answers_who_shows_no_certificate(tmp_path: Path, stranger: int, admitted: bool):
    """It asks for one, takes the connection without, and says 400 (nginx): the first question is ours."""
    context, certificate = loopback(tmp_path)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(certificate)
    replies = iter([YES, plain({"experiments": []}, stranger)])
    with Standin(lambda asked: next(replies), context) as server, certified(server, certificate) as asked:
        assert asked.admits_strangers() is admitted


def test_a_certificate_that_nobody_asks_for_keeps_no_stranger_out(tmp_path: Path):
    context, certificate = loopback(tmp_path)
    with Standin(lambda asked: YES, context) as server, certified(server, certificate) as asked:
        assert asked.admits_strangers()


def test_a_handshake_that_breaks_without_a_word_tells_nothing(tmp_path: Path):
    context, certificate = loopback(tmp_path)
    replies = iter([YES, standin.nothing])
    with (
        Standin(lambda asked: next(replies), context) as server,
        certified(server, certificate) as asked,
        pytest.raises(Unavailable),
    ):
        asked.admits_strangers()
