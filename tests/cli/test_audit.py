"""The audit's commands as an admin meets them: over a real file, with their exit codes."""

import csv
import io
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evalstopd.ports import Changes
from evalstopd.store.sql import SqlStore
from tests.cli.conftest import Run
from tests.cli.test_cli import one_line
from tests.contracts.store_builders import HOSTILE, remark, watch
from tests.report.audit import books


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return settings with a store whose book has nine links and one hostile remark."""
    url = books.write(tmp_path / "store.db")
    store = SqlStore(url)
    store.record(Changes(watches=(watch(name=HOSTILE, user=HOSTILE),), remarks=(remark(HOSTILE, HOSTILE),)))
    store.close()
    path = tmp_path / "evalstopd.toml"
    path.write_text(f'[store]\nurl = "{url}"\n')
    return path


def tamper(config: Path, statement: str) -> None:
    with books.attacker(config.parent / "store.db") as act:
        act(statement)


def test_a_whole_book_is_said_to_be_whole(run: Run, config: Path) -> None:
    head = run("audit", "head", "--config", str(config)).stdout.strip()
    done = run("audit", "verify", "--head", head, "--config", str(config))
    data = json.loads(run("audit", "verify", "--json", "--config", str(config)).stdout)

    assert head.startswith("11:")
    assert done.returncode == 0
    assert done.stdout.startswith("the book is whole: 11 links, each row as it was written; the head noted elsewhere")
    assert (data["good"], data["links"], data["first"]) == (True, 11, None)


def test_a_tampered_book_is_named_with_exit_code_1(run: Run, config: Path) -> None:
    tamper(config, "UPDATE remarks SET text = 'x' WHERE id = 8")
    done = run("audit", "verify", "--config", str(config))
    told = run("audit", "verify", "--json", "--config", str(config))

    assert (done.returncode, told.returncode) == (1, 1)
    assert (
        done.stdout == "the book is not what was written. First: changed at link 8: remark 8 is not what was written\n"
    )
    assert json.loads(told.stdout)["first"]["seq"] == 8


def test_a_head_that_is_none_is_one_line(run: Run, config: Path) -> None:
    done = run("audit", "verify", "--head", "abc", "--config", str(config))

    assert done.returncode == 2
    assert "neither LENGTH:HASH nor a hash" in one_line(done)


def test_folding_again_lists_the_differences_with_exit_code_1(run: Run, config: Path) -> None:
    """The book's evals are made up: no rule stops on them."""
    done = run("audit", "replay", "--config", str(config))
    told = run("audit", "replay", "--json", "--config", str(config))

    assert (done.returncode, told.returncode) == (1, 1)
    assert done.stdout.startswith("decisions folded again: 2 (2 of them made by another version); differences: 4")
    assert len(json.loads(told.stdout)["differences"]) == 4
    assert run("audit", "replay", "--until", "1970-01-01", "--config", str(config)).returncode == 2
    assert run("audit", "replay", "--since", "2026-01-01", "--config", str(config)).returncode == 0


@pytest.mark.parametrize("form", ["text", "csv", "json"])
def test_the_report_of_a_hostile_book_is_harmless_in_every_form(run: Run, config: Path, form: str) -> None:
    done = run("report", "--format", form, "--config", str(config))

    assert done.returncode == 0, done.stderr
    assert all(line.isprintable() for line in done.stdout.split("\n"))
    assert "alpha" in done.stdout


def test_the_reports_forms_say_the_same(run: Run, config: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run("report", "--format", "csv", "--config", str(config)).stdout)))
    data = json.loads(run("report", "--format", "json", "--config", str(config)).stdout)

    assert [row["what"] for row in rows] == ["stop", "would-be stop", *["noted"] * 4]
    assert [row["what"] for row in (*data["decisions"], *data["remarks"])] == [row["what"] for row in rows]
    assert data["format"] == "evalstopd-audit-1"


@pytest.mark.parametrize("options", [("--since", "yesterday"), ("--until", "x"), ("--since", "0d", "--until", "1d")])
def test_a_span_that_is_none_is_one_line(run: Run, config: Path, options: tuple[str, ...]) -> None:
    done = run("report", *options, "--config", str(config))

    assert done.returncode == 2
    assert one_line(done).startswith("evalstopd: --")


def test_a_day_that_is_yet_to_come_is_called_so(run: Run, config: Path) -> None:
    assert "lies in the future" in one_line(run("report", "--since", "9000-01-01", "--config", str(config)))


def test_a_value_that_no_program_of_ours_wrote_is_one_line(run: Run, config: Path) -> None:
    tamper(config, "UPDATE intents SET evidence = 'nonsense'")
    for command in (("report",), ("audit", "replay")):
        done = run(*command, "--config", str(config))

        assert done.returncode == 70
        assert "was changed by hand" in one_line(done)
    assert run("audit", "verify", "--config", str(config)).returncode == 1


def test_the_audit_changes_nothing(run: Run, config: Path) -> None:
    with closing(sqlite3.connect(config.parent / "store.db")) as sql:
        before = "\n".join(sql.iterdump())
    for command in (("report",), ("audit", "head"), ("audit", "verify"), ("audit", "replay")):
        run(*command, "--config", str(config))
    with closing(sqlite3.connect(config.parent / "store.db")) as sql:
        after = "\n".join(sql.iterdump())

    assert before == after
