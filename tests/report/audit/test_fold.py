"""Decisions folded again: what the loop decided is confirmed, and what was altered since is told."""

import json
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from evalstopd.core.model import Rung
from evalstopd.ports import Changes, Span
from evalstopd.report.audit.fold import Refolded, refold, sentences
from evalstopd.store import migrate
from evalstopd.store.sql import SqlStore
from tests.fakes.world import RISE_AND_FALL, RULES, World

ALL = Span(0.0, 1e10)


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """Return the database file of a new store."""
    migrate.upgrade(f"sqlite:///{tmp_path}/store.db")
    return tmp_path / "store.db"


def store_of(file: Path) -> SqlStore:
    return SqlStore(f"sqlite:///{file}")


def again(file: Path) -> Refolded:
    return refold(store_of(file), ALL, "test")


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Rung, Path]:
    """Play a job that rises and falls through the loop, on each rung: the third eval is the best, the fifth triggers.

    The clock ends at 1007 s.
    """
    folder, found = tmp_path_factory.mktemp("books"), {}
    for rung in (Rung.OBSERVE, Rung.WARN, Rung.ENFORCE):
        found[rung] = folder / f"{rung.word}.db"
        migrate.upgrade(f"sqlite:///{found[rung]}")
        world = World(replace(RULES, rung=rung), store=store_of(found[rung]))
        world.play(world.train(), "r1", RISE_AND_FALL)
    return found


@pytest.fixture
def file(books: Mapping[Rung, Path], tmp_path: Path) -> Path:
    """Return a copy of the enforce rung's book."""
    return Path(shutil.copy(books[Rung.ENFORCE], tmp_path / "store.db"))


def alter(file: Path, **changes: object) -> None:
    """Change the stored evidence past the program."""
    with closing(sqlite3.connect(file)) as sql, sql:
        for table in ("intents", "would_be_stops"):
            sql.execute("DROP TRIGGER IF EXISTS would_be_stops_no_update")
            for rowid, text in sql.execute(f"SELECT rowid, evidence FROM {table}").fetchall():
                evidence = json.dumps(json.loads(text) | changes)
                sql.execute(f"UPDATE {table} SET evidence = ? WHERE rowid = ?", (evidence, rowid))


def sql(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize("rung", [Rung.OBSERVE, Rung.WARN, Rung.ENFORCE])
def test_what_the_loop_decided_is_confirmed_on_every_rung(books: Mapping[Rung, Path], rung: Rung) -> None:
    assert again(books[rung]) == Refolded(good=True, decisions=1, other_versions=0, differences=(), notes=())


@pytest.mark.parametrize("rule", ["recommended", "blocks", "drop-test-safe", "patience:patience=2", "high-power"])
def test_the_rules_that_reckon_with_noise_are_confirmed_too(empty: Path, rule: str) -> None:
    world = World(replace(RULES, rule=rule), store=store_of(empty))
    curve = [0.1 + 0.1 * n for n in range(9)] + [0.8 - 0.1 * n for n in range(9)]
    world.play(world.train(), "r1", tuple(curve))

    assert (again(empty).decisions, again(empty).differences) == (1, ())


def test_a_stop_decided_in_the_midst_of_a_late_reading_is_confirmed(empty: Path) -> None:
    """All evals arrive at once: the decision was at the fifth, the points go on to the seventh."""
    world = World(store=store_of(empty))
    job = world.train()
    for number, score in enumerate(RISE_AND_FALL, 1):
        world.evaluate(job, "r1", number * 10, score)
    world.tick()

    assert (again(empty).decisions, again(empty).good) == (1, True)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"rule": "k-declines:k=3"}, "k-declines:k=3 says declining 2 of 3 at step 50, not stop"),
        ({"rule": "k-declines:k=2,min_delta=0.5"}, "says keep going at step 50, not stop"),
        ({"rule": "k-declines:k=2,min_delta=0.05"}, "reason is 'the eval score fell 2 times in a row, from"),
        ({"rule": "no-such-rule"}, "cannot be folded: ValueError: unknown rule 'no-such-rule'"),
        ({"rule": "k-declines:k=0"}, "cannot be folded: ValueError: k-declines: k must be at least 1"),
        ({"mode": "min"}, "says keep going at step 50, not stop"),
        ({"mode": "sideways"}, "cannot be folded: ValueError"),
        ({"declines": 3}, "declines is 3, folded again 2"),
        ({"reason": "a whim"}, "reason is 'a whim', folded again 'the eval score fell 2 times"),
        ({"trigger_step": 40}, "the stop is noted for step 40, its last eval is of step 50"),
        ({"best_step": 20}, "best step is 20, folded again 30"),
        ({"best_score": 9.0}, "best score is 9.0, folded again 0.8"),
        ({"k_before_step": 10}, "step k evals before is 10, folded again 30"),
        ({"steps": [10, 20, 30, 40]}, "cannot be folded: ValueError"),
        ({"steps": [10, 20, 40, 30, 50]}, "the steps are not in order"),
        ({"steps": "x"}, "cannot be folded: "),
        ({"scores": [0.1, 0.4, 0.8, 0.7, float("nan")]}, "its evals are not finite scores"),
        ({"scores": [0.1, 0.4, 0.8, 0.9, 0.95]}, "says keep going at step 50, not stop"),
        ({"steps": [], "scores": []}, "its evals are not finite scores"),
    ],
)
@pytest.mark.parametrize("rung", [Rung.OBSERVE, Rung.ENFORCE])
def test_evidence_that_was_altered_is_caught(
    books: Mapping[Rung, Path], tmp_path: Path, rung: Rung, changes: dict[str, object], text: str
) -> None:
    file = Path(shutil.copy(books[rung], tmp_path / "store.db"))
    alter(file, **changes)
    found = again(file)

    assert not found.good
    assert any(each.of == "evidence" and text in each.text for each in found.differences), found.differences
    assert {each.job for each in found.differences} == {"1"}


def test_a_rule_that_would_have_stopped_earlier_is_worth_a_note(file: Path) -> None:
    """k = 1 says the same at the fifth eval, but said it at the fourth: there may be innocent reasons."""
    alter(file, rule="k-declines:k=1")
    found = again(file)

    assert found.good
    assert "says stop at step 40, the decision came at step 50" in found.notes[0].text


def test_a_score_altered_in_the_evidence_disagrees_with_the_points(file: Path) -> None:
    """The verdict stays the same; the job's own points tell."""
    alter(file, scores=[0.1, 0.3, 0.8, 0.7, 0.6])
    (found,) = again(file).differences

    assert found.of == "points"
    assert found.text == (
        "step 20 has 0.3 in the evidence, 0.4 among the points; on the points the rule says stop at step 50"
    )


def test_an_eval_left_out_of_the_evidence_is_seen_among_the_points(file: Path) -> None:
    alter(file, steps=[20, 30, 40, 50], scores=[0.4, 0.8, 0.7, 0.6])

    assert "step 10 is only among the points" in again(file).differences[0].text


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("UPDATE points SET value = '0.75' WHERE step = 50", "on the points the rule says keep going at step 50"),
        ("DELETE FROM points WHERE step = 40", "step 40 is only among the evidence"),
        ("DELETE FROM points", "none of its evals is among the job's stored points"),
        ("UPDATE points SET arrived_s = arrived_s + 1e6 WHERE step = 50", "step 50 is only among the evidence"),
        ("UPDATE points SET metric = 'other'", "none of its evals is among the job's stored points"),
    ],
)
def test_points_altered_since_disagree_with_the_frozen_evidence(file: Path, statement: str, text: str) -> None:
    sql(file, statement)
    found = again(file)

    assert [each.of for each in found.differences] == ["points"]
    assert text in found.differences[0].text


def test_a_point_that_came_after_the_decision_changes_nothing(file: Path) -> None:
    """The points are taken as they stood: an earlier step that arrives late is not among them."""
    key = store_of(file).recent(1)[0].key
    points = store_of(file).points([key])[key]
    late = replace(points[0], step=15, value=9.9, arrived_s=1100.0)
    store_of(file).record(Changes(points=((key, late),)))

    assert again(file).good


def test_a_standard_error_that_came_later_is_no_difference_but_an_altered_one_is(file: Path) -> None:
    sql(file, "UPDATE points SET stderr = '0.01'")
    assert again(file).good

    alter(file, stderrs=[0.01, 0.01, 0.01, 0.01, 0.5])
    assert "step 50 has the error 0.5 in the evidence, 0.01 among the points" in again(file).differences[0].text


def test_only_decisions_of_the_span_are_folded(file: Path) -> None:
    (decided,) = store_of(file).intents_within(ALL)
    at_s = decided.created_s

    assert refold(store_of(file), Span(at_s, at_s + 1), "test").decisions == 1
    assert refold(store_of(file), Span(at_s + 1, 1e10), "test").decisions == 0
    assert refold(store_of(file), Span(0.0, at_s), "test").decisions == 0


def test_decisions_of_another_version_are_counted(file: Path) -> None:

    assert sentences(refold(store_of(file), ALL, "newer"))[0] == (
        "decisions folded again: 1 (1 of them made by another version); differences: 0"
    )
