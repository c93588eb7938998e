"""A small SMTP server on loopback: takes mail, asks for TLS and a password, and can misbehave in stated ways."""

import base64
import socketserver
import ssl
import threading
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self


@dataclass(slots=True)
class Mail:
    """One mail as it was taken."""

    sender: str
    recipients: list[str]
    text: bytes
    secured: bool
    login: str


@dataclass(slots=True)
class MailServer:
    """Listens on a free port of loopback from entry to exit.

    `silent` accepts and says nothing; `drip` greets without end, a byte at a time; `refuses` answers RCPT with 550;
    `rude` drops the connection instead of answering QUIT; `busy` greets with 421. `leaves` closes the
    connection instead of answering DATA. `ends` is what it answers to the final dot: nothing, and it closes the
    connection there; with `mute` it says nothing and holds it.
    """

    tls: ssl.SSLContext | None = None
    at_once: bool = False
    login: str = ""
    silent: bool = False
    drip: bool = False
    refuses: bool = False
    rude: bool = False
    busy: bool = False
    ends: str = "250 taken"
    mute: bool = False
    leaves: bool = False
    mails: list[Mail] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    greeted: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)
    _server: socketserver.ThreadingTCPServer | None = None

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        mails = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                try:
                    _Conversation(mails, self).run()
                except OSError:
                    return

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self.let_go.set()
        self._server.shutdown()
        self._server.server_close()


class _Conversation:
    """One connection to the server."""

    def __init__(self, server: MailServer, handler: socketserver.StreamRequestHandler) -> None:
        self.server, self.sock, self.secured, self.login = server, handler.connection, False, ""
        self.sender, self.recipients = "", list[str]()
        if server.at_once and server.tls is not None:
            self._secure()
        else:
            self.file = self.sock.makefile("rb")

    def run(self) -> None:
        self.server.greeted.set()
        if self.server.silent:
            self.server.let_go.wait(60)
            return
        while self.server.drip and not self.server.let_go.wait(0.05):
            self.sock.sendall(b"2")
        self._say("421 too busy" if self.server.busy else "220 here")
        try:
            while line := self.file.readline():
                if not self._answer(line.decode().strip()):
                    return
        finally:
            self.file.close()
            self.sock.close()

    def _answer(self, line: str) -> bool:
        self.server.commands.append(line)
        word, _, rest = line.partition(" ")
        match word.upper():
            case "EHLO":
                offers = ["STARTTLS"] if self.server.tls is not None and not self.secured else []
                offers += ["AUTH PLAIN"] if self.server.login else []
                self._say("250-here", *(f"250-{each}" for each in offers), "250 HELP")
            case "STARTTLS":
                self._say("220 go")
                self._secure()
            case "AUTH":
                given = base64.b64decode(rest.split()[-1]).decode().strip("\0").replace("\0", ":")
                self.login = given if given == self.server.login else ""
                self._say("235 yes" if self.login else "535 no")
            case "MAIL":
                self.sender, self.recipients = _path(rest), []
                self._say("250 ok" if self.login == self.server.login else "530 log in first")
            case "RCPT":
                self.recipients.append(_path(rest))
                self._say("550 no such user \x1b[31m" if self.server.refuses else "250 ok")
            case "DATA":
                return self._take()
            case "QUIT":
                if not self.server.rude:
                    self._say("221 bye")
                return False
            case _:
                self._say("250 ok")
        return True

    def _take(self) -> bool:
        """Take a mail and tell whether the conversation goes on."""
        if self.server.leaves:
            return False
        self._say("354 go on")
        lines = []
        while (line := self.file.readline()) not in (b".\r\n", b""):
            lines.append(line)
        self.server.mails.append(Mail(self.sender, self.recipients, b"".join(lines), self.secured, self.login))
        if self.server.mute:
            self.server.let_go.wait(60)
        elif self.server.ends:
            self._say(self.server.ends)
        return bool(self.server.ends) and not self.server.mute

    def _say(self, *lines: str) -> None:
        self.sock.sendall("".join(f"{line}\r\n" for line in lines).encode())

    def _secure(self) -> None:
        assert self.server.tls is not None
        self.sock = self.server.tls.wrap_socket(self.sock, server_side=True)
        self.file, self.secured = self.sock.makefile("rb"), True


def _path(rest: str) -> str:
    """Return the address after `FROM:` or `TO:`, however its word is spelled: Pythons differ."""
    return rest.partition(":")[2]
