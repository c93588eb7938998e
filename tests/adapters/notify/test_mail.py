"""Mail against a real server on loopback: what arrives, over what, and what becomes of a server that misbehaves."""

import email
import socket
import time
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalstopd.adapters.notify.letter import address_of, letter
from evalstopd.adapters.notify.mail import MailChannel, Security
from evalstopd.adapters.notify.mail import MailServer as Where
from evalstopd.core.model import JobKey
from evalstopd.errors import EvalstopError, InDoubt, Rejected, Unavailable
from evalstopd.ports import Message
from tests.adapters.notify.certificate import loopback
from tests.fakes.mail_server import MailServer

MESSAGE = Message(
    JobKey("c", "7_1", 1001, 100), "alice", "your job is close to a stop", "it fell", "warning", "c:7:0:40"
)
SENDER, TO = "evalstopd@site.example", "{user}@site.example"
HOSTILE = "x\r\nBcc: all@site.example\r\n\r\n<script>\x1b[31m\x00\u202e\udcff=cmd|漢.\r\n.\r\nMAIL FROM:<me@evil>"


def channel(server: MailServer, **changes: object) -> MailChannel:
    where = {"host": "localhost", "port": server.port, "security": Security.NONE, "limit_s": 20.0} | changes
    return MailChannel(Where(**where), SENDER, TO)  # type: ignore[arg-type]


def taken(server: MailServer) -> EmailMessage:
    (mail,) = server.mails
    parsed = email.message_from_bytes(mail.text, policy=default)
    assert isinstance(parsed, EmailMessage)
    return parsed


def test_a_mail_reaches_the_owner_from_the_sites_address() -> None:
    with MailServer() as server:
        how = channel(server).send(MESSAGE)
    (mail,) = server.mails
    text = taken(server)

    assert how == "mail to alice@site.example by localhost"
    assert (mail.sender, mail.recipients) == ("<evalstopd@site.example>", ["<alice@site.example>"])
    assert (text["From"], text["To"], text["Auto-Submitted"]) == (SENDER, "alice@site.example", "auto-generated")
    assert text["Subject"] == "[evalstopd] job 7_1: your job is close to a stop"
    assert text.get_content().strip() == "it fell"
    assert server.commands[0] == "ehlo site.example"


def test_what_users_wrote_is_text_in_a_mail_and_nothing_else() -> None:
    hostile = Message(JobKey("c", HOSTILE, 1001, 100), "alice", HOSTILE, HOSTILE)
    with MailServer() as server:
        channel(server).send(hostile)
    text = taken(server)

    assert len(server.mails) == 1
    assert server.mails[0].recipients == ["<alice@site.example>"]
    assert sorted(set(text.keys())) == [
        "Auto-Submitted", "Content-Transfer-Encoding", "Content-Type", "Date", "From", "MIME-Version", "Message-ID",
        "Subject", "To",
    ]  # fmt: skip
    for shown in (text["Subject"], text.get_content().rstrip("\r\n")):
        assert r"x\r\nBcc: all@site.example\r\n" in shown
        assert shown.isprintable()


@given(st.text(st.characters(exclude_categories=())), st.text(st.characters(exclude_categories=())))
@example("\x1f\U0001166d\U0002ebe1", "\x1f\x1f\U0001166d\U0002ebe1")
def test_no_text_makes_a_header_or_a_second_line(job_id: str, text: str) -> None:
    mail = letter(Message(JobKey("c", job_id, 1, 1), "alice", text, text), SENDER, TO)
    again = email.message_from_bytes(mail.as_bytes(), policy=default)

    assert again.keys() == mail.keys()
    assert again["To"] == "alice@site.example"
    assert str(again["Subject"]).startswith("[evalstopd] job ")


@pytest.mark.parametrize(
    "user", ["", "a b", "a@evil.example", "a,b", "-oQ/tmp", "a\r\nBcc: x", "é", "a" * 65, '"a"', "a\udcff", "{user}"]
)
def test_a_user_name_that_makes_no_address_gets_no_mail(user: str) -> None:
    with pytest.raises(Rejected, match="makes no mail address"):
        address_of(user, TO)


@pytest.mark.parametrize("security", [Security.STARTTLS, Security.TLS])
def test_the_password_is_read_from_its_file_and_only_sent_over_tls(security: Security, tmp_path: Path) -> None:
    context, trusted = loopback(tmp_path)
    secret = tmp_path / "password"
    secret.write_text("s3cret\n")
    with MailServer(tls=context, at_once=security is Security.TLS, login="daemon:s3cret") as server:
        channel(
            server, security=security, ca_file=str(trusted), user="daemon", password_file=str(secret)
        ).send(MESSAGE)  # fmt: skip

    assert [(mail.secured, mail.login) for mail in server.mails] == [(True, "daemon:s3cret")]


def test_a_server_without_starttls_gets_no_mail_in_the_clear() -> None:
    with MailServer() as server, pytest.raises(Unavailable, match="STARTTLS extension not supported"):
        channel(server, security=Security.STARTTLS).send(MESSAGE)

    assert server.mails == []


@pytest.mark.parametrize("security", [Security.STARTTLS, Security.TLS])
def test_a_certificate_that_is_not_trusted_gets_no_mail(security: Security, tmp_path: Path) -> None:
    context, _ = loopback(tmp_path)
    with (
        MailServer(tls=context, at_once=security is Security.TLS) as server,
        pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        channel(server, security=security).send(MESSAGE)

    assert server.mails == []


def test_a_recipient_that_is_refused_is_said_without_the_servers_escapes() -> None:
    with MailServer(refuses=True) as server, pytest.raises(Unavailable, match="no such user") as caught:
        channel(server).send(MESSAGE)

    assert str(caught.value).isprintable()


def test_a_mail_that_was_taken_counts_as_sent_however_the_server_says_goodbye() -> None:
    with MailServer(rude=True) as server:
        assert channel(server).send(MESSAGE).startswith("mail to alice")


@pytest.mark.parametrize(
    ("ends", "why"),
    [
        ("", "SMTPServerDisconnected: Connection unexpectedly closed"),
        ("what?", "it answered -1"),
        ("251 perhaps", "it answered 251"),
        ("250" + "x" * 10_000, r"SMTPResponseException: \(500, 'Line too long.'\)"),
    ],
)
def test_a_mail_that_was_handed_over_without_a_plain_answer_is_in_doubt(ends: str, why: str) -> None:
    with MailServer(ends=ends) as server, pytest.raises(InDoubt, match=why) as caught:
        channel(server).send(MESSAGE)

    assert len(server.mails) == 1
    assert "the mail was handed over, and no answer tells whether it was taken" in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.timed
def test_a_server_that_says_nothing_after_the_mail_leaves_it_in_doubt_at_the_time_limit() -> None:
    with MailServer(mute=True) as server, pytest.raises(InDoubt, match="was handed over"):
        channel(server, limit_s=2.0).send(MESSAGE)

    assert len(server.mails) == 1


def test_over_tls_as_well_a_lost_answer_is_doubt(tmp_path: Path) -> None:
    context, trusted = loopback(tmp_path)
    with MailServer(tls=context, ends="") as server, pytest.raises(InDoubt, match="was handed over"):
        channel(server, security=Security.STARTTLS, ca_file=str(trusted)).send(MESSAGE)

    assert len(server.mails) == 1


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ({"ends": "554 spam"}, "554"),
        ({"ends": "451 later"}, "451"),
        ({"ends": "421 going down"}, "421"),
        ({"leaves": True}, "Connection unexpectedly closed"),
    ],
)
def test_a_mail_that_was_refused_or_never_left_is_not_sent(fault: dict[str, str | bool], why: str) -> None:
    with MailServer(**fault) as server, pytest.raises(Unavailable, match=why):  # type: ignore[arg-type]
        channel(server).send(MESSAGE)


def test_a_server_that_is_down_or_busy_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Unavailable, match="Connection refused"):
        MailChannel(Where("localhost", port, Security.NONE), SENDER, TO).send(MESSAGE)
    with MailServer(busy=True) as server, pytest.raises(Unavailable, match="421"):
        channel(server).send(MESSAGE)


@pytest.mark.timed
@pytest.mark.parametrize("fault", ["silent", "drip"])
def test_a_server_that_hangs_or_drips_is_left_at_the_time_limit(fault: str) -> None:
    """The drip says something ten times within each wait for the network: only a limit for the whole ends it."""
    with MailServer(**{fault: True}) as server:  # type: ignore[arg-type]
        before = time.monotonic()
        with pytest.raises(EvalstopError):
            channel(server, limit_s=0.5).send(MESSAGE)

        assert not server.let_go.is_set()
        assert time.monotonic() - before < 30


def test_the_check_greets_and_sends_nothing() -> None:
    with MailServer() as server:
        assert channel(server).check() == "the mail server localhost answers"

    assert [command.split()[0].lower() for command in server.commands] == ["noop", "quit"]
    assert server.mails == []


def test_a_password_file_that_is_not_there_is_said_by_name(tmp_path: Path) -> None:
    context, trusted = loopback(tmp_path)
    missing = tmp_path / "none"
    with MailServer(tls=context) as server, pytest.raises(Unavailable, match=r"No such file.*none"):
        channel(
            server, security=Security.STARTTLS, ca_file=str(trusted), user="daemon", password_file=str(missing)
        ).check()  # fmt: skip
