"""What the daemon's start asks before it may enforce: a passed scorecard, or a reason that the store notes."""

import email
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evalstopd.cli import app
from evalstopd.core.model import Ending, JobKey, Life, Mode, Point, Rung
from evalstopd.core.watch import Terms, Watch
from evalstopd.errors import Misconfigured, Unavailable
from evalstopd.loop import Loop
from evalstopd.ports import Changes, Span
from evalstopd.report.audit.gather import audit_report
from evalstopd.report.audit.page import as_text
from evalstopd.settings import Settings, load_settings, make_rules
from evalstopd.store import migrate
from evalstopd.store.lock import lock_alone
from evalstopd.store.sql import SqlStore
from evalstopd.wiring.checks.every import make_checks
from evalstopd.wiring.loop import make_loop
from evalstopd.wiring.seat import tick_alone
from tests.contracts import store_builders as make
from tests.fakes.mail_server import MailServer

DAY_S = 86400.0
RULE = "recommended:c=1.8,growth=1.5"


@pytest.fixture
def url(tmp_path: Path) -> str:
    made = f"sqlite:///{tmp_path}/store.db"
    migrate.upgrade(made)
    return made


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    made = SqlStore(url)
    yield made
    made.close()


def config(tmp_path: Path, url: str, override: str = "", rung: str = "enforce") -> Path:
    path = tmp_path / "evalstopd.toml"
    path.write_text(
        f'[store]\nurl = "{url}"\n[mlflow]\ntracking_uri = "http://127.0.0.1:9"\n[rules]\nrung = "{rung}"\n'
        f'[enforce]\noverride = "{override}"\n[slurm]\npath = "{tmp_path}"\n'
    )
    return path


def start(settings: Settings, *, dry_run: bool = False) -> None:
    loop = make_loop(settings, threading.Event(), dry_run=dry_run)
    close(loop)


def close(loop: Loop) -> None:
    loop.close()
    parts: Any = loop.ports
    parts.store.close()
    parts.metrics._http.close()


def quiet(number: int, day: float, rule: str = RULE) -> Changes:
    """A job that was watched, rose over six evals and ended on a day."""
    key = JobKey("c", str(number), 1001, 1000 + number)
    terms = Terms(Rung.OBSERVE, rule, "score", Mode.MAX)
    watch = Watch(key, Life(0, 1000 + number), (day - 0.5) * DAY_S, terms, ending=Ending("COMPLETED", day * DAY_S))
    return Changes(watches=(watch,), points=tuple((key, Point("r", n, n / 10, n, metric="score")) for n in range(6)))


def fill(store: SqlStore, jobs: int = 100, rule: str = RULE) -> None:
    every = [quiet(number, 10 + number * 30.0 / jobs, rule) for number in range(jobs)]
    store.record(
        Changes(
            watches=tuple(watch for each in every for watch in each.watches),
            points=tuple(point for each in every for point in each.points),
        )
    )


def noted(store: SqlStore, code: str = "enforce-override") -> list[str]:
    return [each.text for each in store.remarks_of(["site"]) if each.code == code]


def test_a_new_installation_observes_by_the_recommended_rule_with_all_its_numbers() -> None:
    assert load_settings(None, {}).rules.rule == "recommended"
    assert make_rules(load_settings(None, {})).rule == RULE
    assert make_rules(load_settings(None, {})).rung is Rung.OBSERVE


def test_enforce_without_card_and_reason_does_not_start_and_says_what_is_missing(tmp_path: Path, url: str) -> None:
    settings = load_settings(config(tmp_path, url), {})
    with pytest.raises(Misconfigured, match=r"0 of 100 jobs; 0\.0 of 28 days.*enforce\.override"):
        make_loop(settings, threading.Event())


def test_a_passed_card_lets_the_daemon_start_and_nothing_is_noted(tmp_path: Path, url: str, store: SqlStore) -> None:
    fill(store)
    start(load_settings(config(tmp_path, url), {}))

    assert noted(store) == []


def test_a_card_of_another_rule_does_not_count(tmp_path: Path, url: str, store: SqlStore) -> None:
    fill(store, rule="never")
    with pytest.raises(Misconfigured, match="0 of 100 jobs"):
        make_loop(load_settings(config(tmp_path, url), {}), threading.Event())


def test_a_written_reason_is_noted_once_for_each_digest_of_the_settings(
    tmp_path: Path, url: str, store: SqlStore
) -> None:
    settings = load_settings(config(tmp_path, url, "a trial with three users"), {})
    start(settings, dry_run=True)
    assert noted(store) == []
    start(settings)
    start(settings)
    assert len(noted(store)) == 1
    assert "a trial with three users" in noted(store)[0]
    assert settings.digest in noted(store)[0]
    start(load_settings(config(tmp_path, url, "it goes on"), {}))
    assert len(noted(store)) == 2


WRITTEN = ("enforce-override", "open-mlflow-accepted")


def lifted(tmp_path: Path, url: str, notify: str, **changes: str) -> Settings:
    """Return settings in which an admin lifted both limits in writing."""
    path = config(tmp_path, url, "a \\u001b[31mtrial", **changes)
    path.write_text(f'{path.read_text()}[trust]\nopen_mlflow = "all users are friends"\n[notify]\n{notify}\n')
    return load_settings(path, {})


def test_what_was_lifted_in_writing_is_in_the_report_and_the_admin_gets_one_mail_of_each(
    tmp_path: Path, url: str, store: SqlStore
) -> None:
    with MailServer() as server:
        smtp = f'kinds = ["smtp"]\nsmtp_port = {server.port}\nsmtp_security = "none"\nsmtp_from = "e@s.example"\n'
        smtp += 'smtp_to = "{user}@s.example"\nsmtp_admin = "admin@s.example"'
        for _ in range(2):
            start(lifted(tmp_path, url, smtp))
        start(lifted(tmp_path, url, smtp), dry_run=True)
    mails = [email.message_from_bytes(mail.text, policy=default) for mail in server.mails]
    text = as_text(audit_report(store, Span(0, 1e12), "test"))

    assert [len(noted(store, code)) for code in WRITTEN] == [1, 1]
    assert [mail.recipients for mail in server.mails] == [["<admin@s.example>"]] * 2
    assert {mail["Subject"] for mail in mails} == {"[evalstopd] the site: a limit was lifted in writing"}
    for code, mail, reason in zip(WRITTEN, mails, ("[31mtrial", "all users are friends"), strict=True):
        assert reason in noted(store, code)[0]
        assert reason in mail.get_content().replace("\n", " ")  # type: ignore[attr-defined]
        assert [each.startswith("the admin was told") for each in noted(store, f"{code}-told")] == [True]
        assert f"noted, site, {code}: settings" in text
    assert "\x1b" not in text + "".join(mail.get_content() for mail in mails)  # type: ignore[attr-defined]


def test_without_an_address_of_the_admin_the_book_says_that_nobody_was_told(
    tmp_path: Path, url: str, store: SqlStore
) -> None:
    with MailServer() as server:
        smtp = f'kinds = ["smtp"]\nsmtp_port = {server.port}\nsmtp_security = "none"\nsmtp_from = "e@s.example"\n'
        start(lifted(tmp_path, url, smtp + 'smtp_to = "{user}@s.example"'))

    assert server.mails == []
    for code in WRITTEN:
        (said,) = noted(store, f"{code}-not-told")
        assert "notify.smtp_admin" in said


def test_the_sites_own_program_and_the_log_are_told_too(
    tmp_path: Path, url: str, store: SqlStore, caplog: pytest.LogCaptureFixture
) -> None:
    program, heard = tmp_path / "tell", tmp_path / "heard"
    program.write_text(f"#!/bin/sh\ncat >>{heard}\necho >>{heard}\n")
    program.chmod(0o755)
    start(lifted(tmp_path, url, f'kinds = ["log", "command"]\ncommand = ["{program}"]\ncommand_time_limit_s = 60.0'))
    messages = [json.loads(line) for line in heard.read_text().splitlines()]

    assert [each["kind"] for each in messages] == list(WRITTEN)
    assert {(each["user"], each["key"]["job_id"]) for each in messages} == {("", "")}
    lines = [each.getMessage() for each in caplog.records if each.name == "evalstopd.notice"]
    assert len([each for each in lines if each.startswith("to the admin about the site: a limit was lifted")]) == 2


@pytest.mark.parametrize("daemon", [True, False])
def test_a_single_pass_tells_the_admin_also_where_a_daemon_keeps_it_from_being_made(
    tmp_path: Path, url: str, store: SqlStore, daemon: bool
) -> None:
    lock = lock_alone(url) if daemon else None
    with MailServer() as server:
        smtp = f'kinds = ["smtp"]\nsmtp_port = {server.port}\nsmtp_security = "none"\nsmtp_from = "e@s.example"\n'
        settings = lifted(tmp_path, url, smtp + 'smtp_to = "{user}@s.example"\nsmtp_admin = "admin@s.example"')
        loop = make_loop(settings, threading.Event())
        if lock is not None:
            with pytest.raises(Unavailable):
                tick_alone(loop, settings)
            lock.release()
        else:
            assert not tick_alone(loop, settings).good
    close(loop)

    assert [mail.recipients for mail in server.mails] == [["<admin@s.example>"]] * 2
    assert [len(noted(store, f"{code}-told")) for code in WRITTEN] == [1, 1]


def test_a_card_that_is_passed_leaves_the_open_server_to_be_told_of(tmp_path: Path, url: str, store: SqlStore) -> None:
    fill(store)
    start(lifted(tmp_path, url, ""))

    assert [len(noted(store, code)) for code in WRITTEN] == [0, 1]


def test_below_enforce_nothing_is_lifted(tmp_path: Path, url: str, store: SqlStore) -> None:
    start(lifted(tmp_path, url, "", rung="warn"))

    assert [noted(store, code) for code in WRITTEN] == [[], []]


@pytest.mark.parametrize("rung", ["observe", "warn"])
def test_lower_rungs_need_neither(tmp_path: Path, url: str, store: SqlStore, rung: str) -> None:
    start(load_settings(config(tmp_path, url, rung=rung), {}))

    assert noted(store) == []


def test_check_says_how_the_card_stands(tmp_path: Path, url: str, store: SqlStore) -> None:
    def answer(**changes: str) -> tuple[bool, str]:
        results = [probe() for probe in make_checks(load_settings(config(tmp_path, url, **changes), {}))]
        return next((each.good, each.text) for each in results if each.what == "scorecard")

    assert answer(rung="observe") == (True, f"{RULE} has not passed for enforce: {MISSING}")
    good, text = answer()
    assert not good
    assert MISSING in text
    assert answer(override="a trial")[0]
    fill(store)
    assert answer(rung="observe") == (True, f"{RULE} has passed for enforce")


MISSING = "0 of 100 jobs; 0.0 of 28 days; the share of wronged jobs is unknown, 5.0% allowed"


def test_the_scorecard_command_shows_the_book(tmp_path: Path, url: str, store: SqlStore) -> None:
    fill(store, 40)
    start(load_settings(config(tmp_path, url, "a trial"), {}))
    asked = ["scorecard", "--config", str(config(tmp_path, url, "a trial"))]
    text = CliRunner().invoke(app, asked, env={"COLUMNS": "200"})
    data = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)

    assert text.exit_code == 0, text.output
    assert f"rule {RULE}: 40 jobs can tell" in text.stdout
    assert "warn: passed" in text.stdout
    assert "enforce: not passed: 40 of 100 jobs" in text.stdout
    assert "a trial" in text.stdout
    assert data["cards"][0]["card"]["wronged_share"]["high"] == pytest.approx(0.0881, abs=1e-4)
    met = {each["rung"]: each["met"] for each in data["cards"][0]["verdicts"]}
    assert met == {"warn": True, "enforce": False}
    empty = json.loads(CliRunner().invoke(app, [*asked, "--since", "2020-01-01", "--json"]).stdout)
    assert empty["cards"][0]["card"]["judged"] == 0


def test_users_text_in_the_scorecard_is_harmless(tmp_path: Path, url: str, store: SqlStore) -> None:
    changes = quiet(1, 1.0)
    hostile = replace(changes.watches[0], user="\x1b[31m[red]", ending=None)
    booked = make.would_be(hostile.key, evidence=make.evidence(rule="\x1b]0;x\x07"))
    store.record(Changes(watches=(hostile,), would_be=(booked,)))
    asked = ["scorecard", "--config", str(config(tmp_path, url, rung="observe"))]
    result = CliRunner().invoke(app, asked, env={"COLUMNS": "200"})

    assert result.exit_code == 0, result.output
    assert "\\x1b[31m[red]" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize("command", ["replay", "tune"])
def test_replay_and_tune_are_commands_of_evalstopd(command: str) -> None:
    sample = Path(__file__).parent.parent / "data" / "eval_curves_sample.jsonl"
    result = CliRunner().invoke(app, [command, str(sample), "--primary", "--max-evals", "20", "--json"])

    assert json.loads(result.stdout)


def test_replay_of_an_experiment_asks_the_server_of_the_settings(tmp_path: Path, url: str) -> None:
    """Nobody listens at its address: the answer is one line that says so."""
    asked = ["replay", "mlflow:past", "--config", str(config(tmp_path, url, rung="observe"))]
    result = CliRunner().invoke(app, asked)

    assert result.exit_code != 0
    assert "127.0.0.1:9" in f"{result.output}{result.exception}"
