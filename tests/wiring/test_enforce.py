"""What the daemon's start asks before it may enforce: a passed scorecard, or a reason that the store notes."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evalstopd.cli import app
from evalstopd.core.model import Ending, JobKey, Life, Mode, Point, Rung
from evalstopd.core.watch import Terms, Watch
from evalstopd.errors import Misconfigured
from evalstopd.loop import Loop
from evalstopd.ports import Changes
from evalstopd.settings import Settings, load_settings, make_rules
from evalstopd.store import migrate
from evalstopd.store.sql import SqlStore
from evalstopd.wiring import make_checks, make_loop
from tests.contracts import store_builders as make

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
    parts: Any = loop.ports
    parts.store.close()
    parts.metrics._http.close()


def quiet(number: int, day: float, rule: str = RULE) -> Changes:
    """A job that was watched, rose over six evals and ended on a day."""
    key = JobKey("c", str(number), 1001, 1000 + number)
    terms = Terms(Rung.OBSERVE, rule, "score", Mode.MAX)
    watch = Watch(key, Life(0, 1000 + number), (day - 0.5) * DAY_S, terms, ending=Ending("COMPLETED", day * DAY_S))
    return Changes(watches=(watch,), points=tuple((key, Point("r", n, n / 10, n)) for n in range(6)))


def fill(store: SqlStore, jobs: int = 100, rule: str = RULE) -> None:
    every = [quiet(number, 10 + number * 30.0 / jobs, rule) for number in range(jobs)]
    store.record(
        Changes(
            watches=tuple(watch for each in every for watch in each.watches),
            points=tuple(point for each in every for point in each.points),
        )
    )


def noted(store: SqlStore) -> list[str]:
    return [each.text for each in store.remarks_of(["site"]) if each.code == "enforce-override"]


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
