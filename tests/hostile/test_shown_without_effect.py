"""ESC, Rich markup, CRLF, `=cmd|`, `<script>` in names, "shown in every listing and report without effect"."""

import io
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from email import message_from_bytes
from email.policy import default
from pathlib import Path

import pytest

from evalstopd.adapters.notify.letter import letter
from evalstopd.adapters.notify.log import LogNotifier
from evalstopd.cli import main
from evalstopd.core.model import JobKey
from evalstopd.core.words import run_tags
from evalstopd.log import LogLines
from evalstopd.ports import Message
from evalstopd.priorities import Place
from evalstopd.report.render import priority_table, show, to_json
from tests.adapters.mlflow.standin import Standin, plain
from tests.hostile import hostile_site
from tests.hostile.texts import ALL, HOSTILE, acting, cells, is_formula, strict_json
from tests.report.audit import books

TEXT, JSON, CSV = "text", "json", "csv"


@dataclass(frozen=True)
class Said:
    """What one command answered."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    refusal = plain({"error_code": ALL, "message": ALL}, 400)
    with Standin(lambda asked: refusal) as tracker:
        yield hostile_site.build(tmp_path_factory.mktemp("hostile"), tracker.uri)


def say(*arguments: str, config: Path, monkeypatch: pytest.MonkeyPatch) -> Said:
    """Run a command as its program does; output is UTF-8 and strict, as on a terminal of today."""
    monkeypatch.setenv("PATH", str(config.parent / "bin"), prepend=":")
    monkeypatch.setenv("EVALSTOPD_CONFIG", str(config))
    monkeypatch.setattr(sys, "argv", ["evalstopd", *arguments])
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    code: object = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code
        finally:
            out.flush()
            err.flush()
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    return Said(int(str(code or 0)), *texts)


# The command, how it answers, its exit code, and whether it must show the users' texts.
COMMANDS: Mapping[str, tuple[str, int, bool]] = {
    "status": (TEXT, 0, True),
    "status --json": (JSON, 0, True),
    "explain 7": (TEXT, 0, True),
    "explain 7 --json": (JSON, 0, True),
    "explain 8": (TEXT, 0, True),
    "explain 9": (TEXT, 0, True),
    "explain HOSTILE": (TEXT, 2, True),
    "scorecard": (TEXT, 0, True),
    "scorecard --json": (JSON, 0, True),
    "report": (TEXT, 0, True),
    "report --format csv": (CSV, 0, True),
    "report --format json": (JSON, 0, True),
    "report --since HOSTILE": (TEXT, 2, True),
    "audit head": (TEXT, 0, False),
    "audit verify": (TEXT, 0, False),
    "audit verify --json": (JSON, 0, False),
    "audit verify --head HOSTILE": (TEXT, 2, False),
    "audit replay": (TEXT, 1, True),
    "audit replay --json": (JSON, 1, True),
    "breakers": (TEXT, 0, True),
    "breakers --json": (JSON, 0, True),
    "breakers reset HOSTILE --why x": (TEXT, 1, True),
    "estimates --sacct HOSTILE": (TEXT, 2, True),
    "replay CURVES --by family": (TEXT, 0, True),
    "replay CURVES --by family --json": (JSON, 0, True),
    "replay CURVES --csv TABLE": (TEXT, 0, False),
    "replay BROKEN": (TEXT, 2, True),
    "replay HOSTILE": (TEXT, 2, True),
    "replay CURVES --rule HOSTILE": (TEXT, 2, True),
    "replay mlflow:HOSTILE": (TEXT, 2, False),
    "tune CURVES": (TEXT, 2, False),
    "check": (TEXT, 1, True),
    "check --json": (JSON, 1, True),
    "tick": (TEXT, 1, True),
    "tick --json": (JSON, 1, True),
    "keep 7": (TEXT, 1, False),
    "keep HOSTILE": (TEXT, 2, True),
    "undo 7": (TEXT, 1, False),
    "priorities show": (TEXT, 1, False),
    "priorities show --json": (TEXT, 1, False),
    "priorities restore": (TEXT, 1, False),
    "undo HOSTILE": (TEXT, 2, True),
    "config": (TEXT, 0, False),
    "db check": (TEXT, 0, False),
}


def arguments_of(command: str, config: Path) -> list[str]:
    curves, broken = sorted(config.parent.glob("*.jsonl"), key=lambda path: "\r" in path.name)
    words = {"HOSTILE": hostile_site.MARKUP.replace("\0", ""), "CURVES": str(curves), "BROKEN": str(broken),
             "TABLE": str(config.parent / "table.csv")}  # fmt: skip
    return [words.get(word, word.replace("HOSTILE", words["HOSTILE"])) for word in command.split()]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_a_hostile_book_without_effect(
    config: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No control byte but newline reaches the terminal, no cell is a formula, JSON parses, no markup is interpreted."""
    form, code, shows = COMMANDS[command]
    done = say(*arguments_of(command, config), config=config, monkeypatch=monkeypatch)

    assert done.code == code, (done.out, done.err)
    assert acting(done.out + done.err) == set()
    assert "Traceback" not in done.err
    assert not shows or "[red]" in done.out + done.err
    if form is JSON:
        strict_json(done.out)
        assert done.out.isascii()
    if form is CSV:
        assert [cell for cell in cells(done.out) if is_formula(cell)] == []
    if "TABLE" in command:
        table = (config.parent / "table.csv").read_text()
        assert [cell for cell in cells(table) if is_formula(cell) or acting(cell)] == []


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_the_order_of_waiting_jobs_is_shown_without_effect(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a time limit a job's estimate is endless, which JSON has no number for."""
    row = Place("7", text, text, text, 1, 2, (float("inf"), 3.0), 5, 5, 5, 0, 0, text)
    show(priority_table([row]))

    assert acting(capsys.readouterr().out) == set()
    strict_json(to_json([row]))


def test_a_book_that_was_tampered_with_is_named_without_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who can write to the database can write what acts into the very rows that `audit verify` names."""
    config = hostile_site.build(tmp_path, "http://127.0.0.1:9")
    with books.attacker(tmp_path / "store.db") as act:
        text = hostile_site.MARKUP.encode("utf-8", "replace").decode()
        act("UPDATE remarks SET text = ?, code = ?, subject = ?", text, text, text)
        act("UPDATE links SET ref = ?, kind = ? WHERE seq IN (2, 5)", text, text)
        act("UPDATE chain_head SET hash = ?", text)
    for command in ("audit verify", "audit verify --json", "audit head", "report", "status"):
        done = say(*command.split(), config=config, monkeypatch=monkeypatch)

        assert acting(done.out + done.err) == set(), command
        assert "Traceback" not in done.err


def logged(write: Callable[[], object]) -> str:
    """Return what the daemon's log would hold of what is written meanwhile."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LogLines())
    logger = logging.getLogger("evalstopd")
    logger.addHandler(handler)
    try:
        write()
    finally:
        logger.removeHandler(handler)
    return stream.getvalue()


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_text_forges_a_line_of_the_log(text: str) -> None:
    log = logging.getLogger("evalstopd")
    lines = logged(lambda: log.warning("trouble: %s", text)).splitlines()

    assert len(lines) == 1
    assert acting(lines[0]) == set()


def test_a_traceback_in_the_log_cannot_be_taken_for_other_lines() -> None:
    def break_off() -> None:
        try:
            raise ValueError(ALL)
        except ValueError:
            logging.getLogger("evalstopd").exception("a tick broke off")

    first, *rest = logged(break_off).split("\n")[:-1]
    assert first.endswith("a tick broke off")
    assert all(line.startswith("  ") for line in rest)
    assert acting("\n".join(rest)) == set()
    assert any(line.startswith("  ValueError: ") for line in rest)


def message(text: str) -> Message:
    return Message(JobKey("c", text, 1001, 100), "alice", text, text)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_message_is_one_line_of_the_log_and_one_mail_of_plain_text(text: str) -> None:
    assert acting(logged(lambda: LogNotifier().tell(message(text)))) == set()
    mail = message_from_bytes(letter(message(text), "evalstopd@site.example", "{user}@site.example").as_bytes(),
                              policy=default)  # fmt: skip

    assert mail["To"] == "alice@site.example"
    assert sorted(mail.keys()) == [
        "Auto-Submitted", "Content-Transfer-Encoding", "Content-Type", "Date", "From", "MIME-Version", "Message-ID",
        "Subject", "To",
    ]  # fmt: skip
    assert mail.get_content_type() == "text/plain"
    assert acting(mail.get_content().replace("\r\n", "\n")) == set()
    assert acting(mail["Subject"]) == set()


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_text_stays_in_its_own_tag_of_the_run(text: str) -> None:
    """What a text says never becomes the name of a tag or the value of another."""
    tags = run_tags(hostile_site.stop("7", kept_path=text))
    calm = run_tags(hostile_site.stop("7", kept_path="/best"))

    assert tags.keys() == calm.keys()
    assert {key for key in tags if tags[key] != calm[key]} == {"evalstop.checkpoint"}
