"""The site's choice of notifiers, and the whole loop beside a mail server that hangs, refuses, or is down."""

import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from evalstopd.adapters.notify.log import LogNotifier
from evalstopd.adapters.notify.outbox import Outbox
from evalstopd.adapters.notify.several import AlsoLogged
from evalstopd.checks import CheckResult
from evalstopd.core.intent import State
from evalstopd.core.model import Rung
from evalstopd.errors import Misconfigured
from evalstopd.loop import Loop, Stance
from evalstopd.settings import RuleSettings, Settings, load_settings
from evalstopd.wiring.checks.every import make_checks
from evalstopd.wiring.notify import make_notifier
from tests.fakes.mail_server import MailServer
from tests.fakes.world import RISE_AND_FALL, RULES, World
from tests.loop.told import events, intents

MAIL = {"smtp_from": "evalstopd@site.example", "smtp_to": "{user}@site.example", "smtp_security": "none"}
PATIENCE_S = 60


def settings(**notify: object) -> Settings:
    return Settings(notify=notify)  # type: ignore[arg-type]


def by_mail(port: int, **notify: object) -> Settings:
    return settings(**{"kinds": ("smtp",), "smtp_port": port, **MAIL, **notify})


@contextmanager
def world_with(chosen: Settings, drain_s: float = 0.1) -> Iterator[tuple[World, Loop]]:
    """Give a world whose loop tells people as the site chose, and close it."""
    world = World(replace(RULES, rule="k-declines:k=1"))
    notifier = make_notifier(chosen)
    assert isinstance(notifier, Outbox)
    notifier._drain_s = drain_s
    loop = Loop(replace(world.ports(), notifier=notifier), Stance(world.rules))
    yield world, loop
    loop.close()


def play(world: World, loop: Loop) -> str:
    job = world.train("r1")
    world.play(job, "r1", RISE_AND_FALL, loop.ports)
    return job


def wait_for(world: World, loop: Loop, kind: str) -> list[str]:
    """Make passes until the history has an event of a kind; return those events' texts."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := [text for each, text in events(world) if each == kind]):
        assert time.monotonic() < deadline, events(world)
        time.sleep(0.02)
        loop.tick()
    return found


def test_a_mail_server_that_hangs_holds_up_no_pass() -> None:
    """The stop is done and confirmed while the first mail is still waiting for the server's greeting."""
    with MailServer(silent=True) as server:
        with world_with(by_mail(server.port, smtp_time_limit_s=PATIENCE_S)) as (world, loop):
            job = play(world, loop)

            assert server.greeted.wait(PATIENCE_S)
            assert not server.let_go.is_set()
            assert world.cluster.cancelled == [(job, 0)]
            assert intents(world) == [(job, State.CONFIRMED)]
            assert not any(kind in ("told", "not-told") for kind, _ in events(world))
        (late,) = [text for kind, text in events(world) if kind == "not-told"]

    assert late == "the owner could not be told (stopped): the daemon ended before it was sent"


def test_mails_that_arrive_are_booked_as_told() -> None:
    with MailServer() as server, world_with(by_mail(server.port), drain_s=PATIENCE_S) as (world, loop):
        play(world, loop)
        told = wait_for(world, loop, "told")

    assert told[0] == "the owner was told (warning): mail to alice@site.example by localhost"
    assert len(server.mails) == 2


@pytest.mark.parametrize("fault", ["refuses", "down"])
def test_a_mail_server_that_refuses_or_is_down_is_booked_and_costs_nothing_else(fault: str) -> None:
    with MailServer(refuses=True) as server:
        with socket.create_server(("127.0.0.1", 0)) as free:
            closed = free.getsockname()[1]
        port = server.port if fault == "refuses" else closed
        with world_with(by_mail(port), drain_s=PATIENCE_S) as (world, loop):
            job = play(world, loop)
            wait_for(world, loop, "not-told")

    assert world.cluster.cancelled == [(job, 0)]
    assert server.mails == []


def test_a_mail_that_was_taken_without_an_answer_is_booked_as_unknown_and_not_sent_again() -> None:
    with MailServer(ends="") as server, world_with(by_mail(server.port), drain_s=PATIENCE_S) as (world, loop):
        job = play(world, loop)
        (warning, *_) = wait_for(world, loop, "perhaps-told")
        for _ in range(3):
            loop.tick()

    assert warning.startswith("whether the owner was told is unknown (warning): mail server localhost: the mail was")
    assert world.cluster.cancelled == [(job, 0)]
    assert len(server.mails) == 2  # of the warning and of the stop
    assert not any(kind in ("told", "not-told") for kind, _ in events(world))


def test_a_program_that_is_killed_is_booked_as_unknown(tmp_path: Path) -> None:
    path = tmp_path / "tell"
    path.write_text(f"#!{sys.executable}\nimport os; os.kill(os.getpid(), 9)\n")
    path.chmod(0o755)
    chosen = settings(kinds=("command",), command=(str(path),), command_time_limit_s=PATIENCE_S)
    with world_with(chosen, drain_s=PATIENCE_S) as (world, loop):
        play(world, loop)
        (warning, *_) = wait_for(world, loop, "perhaps-told")

    assert warning == (f"whether the owner was told is unknown (warning): {path} was killed by signal 9: no message")
    assert not any(kind in ("told", "not-told") for kind, _ in events(world))


@pytest.mark.parametrize(
    ("kinds", "made"), [(("log",), LogNotifier), (("smtp",), Outbox), (("log", "smtp", "command"), AlsoLogged)]
)
def test_the_site_chooses_the_kinds(kinds: tuple[str, ...], made: type) -> None:
    assert type(make_notifier(settings(kinds=kinds, command=("/bin/true",), **MAIL))) is made


def test_without_a_choice_the_log_is_told() -> None:
    assert type(make_notifier(Settings())) is LogNotifier


def answer(chosen: Settings) -> CheckResult:
    (found,) = [each for each in (ask() for ask in make_checks(chosen)) if each.what == "notify"]
    return found


def test_the_check_asks_the_mail_server_and_looks_for_the_program_and_sends_nothing() -> None:
    with MailServer() as server:
        found = answer(by_mail(server.port, kinds=("log", "smtp", "command"), command=(sys.executable,)))
    gone = answer(by_mail(server.port))

    assert (found.good, found.text) == (True, f"the mail server localhost answers; {sys.executable} can be run")
    assert server.mails == []
    assert not gone.good
    assert "Connection refused" in gone.text
    assert answer(Settings()).text == "messages go to the daemon's log"


def test_that_mail_to_every_owner_goes_to_one_address_is_said() -> None:
    with MailServer() as server:
        found = answer(by_mail(server.port, smtp_to="list@b"))

    assert found.good
    assert found.text.endswith("; mail to every owner goes to list@b: notify.smtp_to has no {user} in it")


@pytest.mark.parametrize("rung", [Rung.WARN, Rung.ENFORCE])
def test_the_log_alone_is_not_well_where_owners_are_to_be_told(rung: Rung) -> None:
    found = answer(Settings(rules=RuleSettings(rung=rung)))

    assert not found.good
    assert f"on the {rung.word} rung messages go to the daemon's log alone" in found.text
    assert 'add "smtp" or "command" to notify.kinds' in found.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kinds = []", "kinds is empty"),
        ('kinds = ["pigeon"]', "notify.kinds, entry 1: one of log, command, smtp"),
        ('kinds = ["command"]', "command names no program"),
        ('kinds = ["command"]\ncommand = ["mail"]', "an absolute path is needed"),
        ('kinds = ["smtp"]', "needs smtp_from and smtp_to"),
        ('smtp_from = "a@b.example\\nBcc: c@d.example"', "notify.smtp_from"),
        ('smtp_to = "{user}@b.example, all@b.example"', "notify.smtp_to"),
        ('smtp_to = "{job}@b.example"', "notify.smtp_to"),
        ('smtp_user = "daemon"', "smtp_user and smtp_password_file go together"),
        ('smtp_user = "d"\nsmtp_password_file = "/p"\nsmtp_security = "none"', "no password is sent without"),
    ],
)
def test_a_notifier_that_could_not_work_is_refused_at_the_start(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "evalstopd.toml"
    path.write_text(f"[notify]\n{text}\n")
    with pytest.raises(Misconfigured, match=words):
        load_settings(path, {})
