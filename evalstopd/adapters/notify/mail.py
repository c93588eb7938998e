"""Mail over SMTP: the connection secured as the site says, never less, and held to one time limit as a whole."""

import smtplib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from evalstopd.adapters.notify.letter import letter
from evalstopd.adapters.notify.text import harmless
from evalstopd.errors import EvalstopError, InDoubt, Unavailable
from evalstopd.ports import Message

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_READY = 220
_TAKEN = 250
_REFUSED = range(400, 600)
_NO_ANSWER = "the mail was handed over, and no answer tells whether it was taken"
_SHOWN = 300
_PASSWORD_MOST = 4096


class Security(StrEnum):
    """How the connection to the mail server is secured."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


PORTS = {Security.STARTTLS: 587, Security.TLS: 465, Security.NONE: 25}


@dataclass(frozen=True, slots=True)
class MailServer:
    """Where mail goes. `port` 0 is the usual one of `security`; `limit_s` bounds one message's whole conversation.

    With `user`, the password is read from `password_file` each time, so that it may change. `ca_file` has the
    certificate authorities, if not the system's.
    """

    host: str
    port: int = 0
    security: Security = Security.STARTTLS
    user: str = ""
    password_file: str = ""
    ca_file: str = ""
    limit_s: float = 20.0


@dataclass(frozen=True, slots=True)
class MailChannel:
    """Sends messages as mail from `sender` to what `to`, a template with `{user}` in it, makes of the owner's name.

    What is for the site's admin goes to `admin`.
    """

    server: MailServer
    sender: str
    to: str
    admin: str = ""

    def send(self, message: Message) -> str:
        """Send one mail.

        Raises Unavailable or Rejected where the server did not take it, InDoubt where it may have.
        """
        mail = letter(message, self.sender, self.to, self.admin)
        with self._session() as smtp:
            smtp.send_message(mail, self.sender, [str(mail["To"])])
        return f"mail to {mail['To']} by {self.server.host}"

    def check(self) -> str:
        """Greet the mail server, log in where that is asked for, and leave. Raises Unavailable."""
        with self._session() as smtp:
            smtp.noop()
        return f"the mail server {self.server.host} answers"

    @contextmanager
    def _session(self) -> Iterator[smtplib.SMTP]:
        """Give a greeted, secured session; whatever goes wrong with it is Unavailable."""
        server = self.server
        try:
            with _Session(server, self.sender.rpartition("@")[2]) as smtp:
                smtp.greet(server.port or PORTS[server.security])
                if server.security is Security.STARTTLS:
                    smtp.starttls(context=smtp.context)
                if server.user:
                    smtp.login(server.user, _password(server.password_file))
                yield smtp
        except EvalstopError:
            raise
        # smtplib lets ValueError and the like through where a server's answer makes no sense.
        except (OSError, ValueError) as error:
            text = harmless(f"{type(error).__name__}: {error}", _SHOWN)
            raise Unavailable(f"mail server {server.host}: {text}") from error


class _Session(smtplib.SMTP):
    """smtplib's client, cut off at one time limit for the whole conversation.

    smtplib's own limit is for each wait for the network: a server that says a byte now and then holds it for ever.
    """

    def __init__(self, server: MailServer, name: str) -> None:
        # Without a name smtplib asks the resolver for ours, with no time limit.
        super().__init__(local_hostname=name, timeout=server.limit_s)
        # The name that STARTTLS holds the certificate to; smtplib sets it only where it connects at once.
        self._host = server.host
        self.context = None if server.security is Security.NONE else _context(server.ca_file)
        self._at_once = server.security is Security.TLS
        self._left_whole = False
        self._guard: socket.socket | None = None
        self._timer = threading.Timer(server.limit_s, self._cut)
        self._timer.daemon = True

    def greet(self, port: int) -> None:
        """Connect, and raise SMTPConnectError unless the server is ready."""
        code, text = self.connect(self._host, port)
        if code != _READY:
            raise smtplib.SMTPConnectError(code, text)

    def send(self, s: "ReadableBuffer | str") -> None:
        """Send something. Only a mail is sent as bytes; without its last ones, the final dot, no server takes it."""
        super().send(s)
        self._left_whole = not isinstance(s, str)

    def data(self, msg: "ReadableBuffer | str") -> tuple[int, bytes]:
        """Hand over the mail. Raises InDoubt where all of it has left, and no answer says what became of it."""
        try:
            code, text = super().data(msg)
        except (OSError, ValueError) as error:
            if not self._left_whole:
                raise
            raise self._doubt(f"{type(error).__name__}: {error}") from error
        if code != _TAKEN and code not in _REFUSED:
            raise self._doubt(f"it answered {code} {text!r}")
        return code, text

    def _doubt(self, why: str) -> InDoubt:
        return InDoubt(f"mail server {self._host}: {_NO_ANSWER}: {harmless(why, _SHOWN)}")

    def __exit__(self, *raised: object) -> None:
        """Take leave; a mail that the server has taken is sent, however it answers now."""
        with suppress(OSError, ValueError):
            self.quit()
        self.close()

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        """Connect as smtplib's own classes do, with the guard in place before a word is exchanged."""
        raw = socket.create_connection((host, port), timeout)
        self._guard = raw.dup()
        self._timer.start()
        if self._at_once and self.context is not None:
            return self.context.wrap_socket(raw, server_hostname=host)
        return raw

    def _cut(self) -> None:
        if self._guard is not None:
            with suppress(OSError):
                self._guard.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection and the guard."""
        super().close()
        self._timer.cancel()
        if self._guard is not None:
            self._guard.close()


def _context(ca_file: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file or None)


def _password(path: str) -> str:
    with Path(path).open(encoding="utf-8") as file:
        return file.read(_PASSWORD_MOST).rstrip("\r\n")
