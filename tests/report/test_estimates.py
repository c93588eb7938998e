"""`evalstopd estimates`: judged in the order of time, errors as defined, and no name does anything."""

import csv
import io
import json
import subprocess
import sys
from math import log
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from bench.estimates import site
from evalstopd.cli import app
from evalstopd.core.estimates import PastLife
from evalstopd.errors import Misconfigured
from evalstopd.report.estimates.files import read_file
from evalstopd.report.estimates.judge import Judged, judge
from evalstopd.report.estimates.score import by_users, dice, in_order, row
from evalstopd.report.estimates.show import as_csv, as_view, figures
from tests.hostile.texts import HOSTILE

LIMIT_S = 36000.0
HEADER = "JobID|JobName|User|Account|Submit|End|ElapsedRaw|TimelimitRaw|State"


def life(submitted_s: float, elapsed_s: float = 9000.0, state: str = "COMPLETED", **fields: object) -> PastLife:
    made = PastLife("alice", "ml", "train", LIMIT_S, elapsed_s, state, submitted_s + elapsed_s, submitted_s)
    return made._replace(**fields)  # type: ignore[arg-type]


def judged(actual_s: float, limit_s: float, estimate_s: float, user: str = "alice") -> Judged:
    return Judged(user, "ml", "train", actual_s, limit_s, estimate_s, "")


def one_after_another(count: int) -> list[PastLife]:
    return [life(10_000.0 * place) for place in range(count)]


def test_a_job_is_estimated_from_what_had_ended_before_it_was_submitted() -> None:
    together = judge([life(0.0) for _ in range(20)])
    in_turn = judge(one_after_another(20))

    assert {each.estimate_s for each in together.judged} == {LIMIT_S}
    assert in_turn.judged[0].estimate_s == LIMIT_S
    assert in_turn.judged[-1].estimate_s == 9000.0


@pytest.mark.properties
@given(st.permutations(range(12)), st.integers(0, 11), st.floats(1.0, 1e6))
def test_no_estimate_knows_what_came_later(order: list[int], place: int, other_s: float) -> None:
    """Two pasts that differ in the length of one job alone tell the same of all that were submitted before it ended."""
    lives = one_after_another(12)
    changed = [*lives[:place], life(lives[place].submitted_s, other_s), *lives[place + 1 :]]
    first = judge(lives[at] for at in order).judged
    second = judge(changed).judged

    assert [each.estimate_s for each in first[: place + 1]] == [each.estimate_s for each in second[: place + 1]]


def test_what_cannot_judge_an_estimate_is_counted_by_why_but_may_teach() -> None:
    cut = [life(100_000.0 * n, 30_000.0, "CANCELLED") for n in range(20)]
    lives = [*cut, life(1.0, 5.0, "FAILED"), life(1.0, limit_s=None), life(3_000_000.0)]
    found = judge(lives)

    assert found.left_out == {
        "cut short (cancelled, preempted, requeued, node lost)": 20,
        "failed within a minute, or never ran": 1,
        "without a time limit": 1,
    }
    assert len(found.judged) == 1


def test_errors_are_those_of_the_definition() -> None:
    found = row(
        [judged(100.0, 400.0, 200.0, "a"), judged(100.0, 100.0, 25.0, "b"), judged(3600.0, 7200.0, 3600.0, "c")]
    )

    assert found.limit.median_off == pytest.approx(log(2))
    assert found.estimate.median_off == pytest.approx(log(2))
    assert found.estimate.hours.value == pytest.approx((100 + 75) / 3 / 3600)
    assert [each.value for each in (found.limit.over, found.estimate.under, found.estimate.within_twice)] == [
        pytest.approx(1 / 3),
        pytest.approx(1 / 3),
        pytest.approx(2 / 3),
    ]
    assert (found.nearer.value, found.nearer.of) == (pytest.approx(2 / 3), 3)
    assert found.gain.value == pytest.approx((log(2) - log(4) + log(2)) / 3)


def test_a_single_users_jobs_give_no_interval_and_alike_users_a_narrow_one() -> None:
    alone = by_users([judged(1.0, 2.0, 1.0)] * 50, lambda each: each.limit_s)
    alike = by_users([judged(1.0, 2.0, 1.0, f"u{n}") for n in range(50)], lambda each: each.limit_s)
    apart = by_users([judged(1.0, n, 1.0, f"u{n}") for n in range(50)], lambda each: each.limit_s)

    assert (alone.value, alone.low, alone.high) == (2.0, None, None)
    assert (alike.low, alike.high) == (2.0, 2.0)
    assert apart.low is not None
    assert apart.high is not None
    # The standard error of the mean of 0..49 is 2.06.
    assert (apart.low, apart.high) == (pytest.approx(24.5 - 4.0, abs=0.7), pytest.approx(24.5 + 4.0, abs=0.7))


def test_pairs_in_order() -> None:
    jobs = [judged(float(n + 1), 100.0, float(n + 1)) for n in range(50)]

    assert in_order(jobs, lambda each: each.estimate_s) == 1.0
    assert in_order(jobs, lambda each: -each.estimate_s) == 0.0
    assert in_order(jobs, lambda each: each.limit_s) == 0.5
    assert in_order(jobs[:1], lambda each: each.limit_s) is None


def test_dice_are_the_same_everywhere_and_even() -> None:
    draw, again = dice("x"), dice("x")
    thrown = [draw(6) for _ in range(60_000)]

    assert thrown[:5] == [again(6) for _ in range(5)]
    assert all(9500 < thrown.count(face) < 10_500 for face in range(6))


def test_on_a_site_with_habits_estimates_beat_limits_and_the_file_is_the_same_for_a_seed(tmp_path: Path) -> None:
    file = tmp_path / "sacct.txt"
    file.write_text("\n".join(site(1, 20, 12)) + "\n")
    found = figures(judge(read_file(file).lives))

    assert list(site(1, 20, 12)) == file.read_text().splitlines()
    assert found.everything is not None
    assert found.everything.gain.low is not None
    assert found.everything.gain.low > 0.3
    assert found.everything.estimate.in_order > found.everything.limit.in_order  # type: ignore[operator]
    assert sum(each.jobs for each in found.names) == found.everything.jobs == len(found.judged)


def test_names_do_nothing_wherever_they_are_shown() -> None:
    trial = judge([replace_name(each, text) for text in HOSTILE.values() for each in one_after_another(2)])
    found = figures(trial)
    console = Console(file=io.StringIO(), width=400, force_terminal=False)
    console.print(as_view(found), markup=False)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    cells = list(csv.reader(io.StringIO(as_csv(found))))

    assert all(char.isprintable() or char == "\n" for char in shown)
    assert len(cells) == 2 + len(found.names)
    assert not any(cell.startswith(("=", "+", "-", "@")) for line in cells for cell in line[:3])
    assert all(char.isprintable() for line in cells for cell in line for char in cell)


def replace_name(each: PastLife, text: str) -> PastLife:
    return each._replace(name=text, user=text, account=text)


def test_nothing_to_judge_is_said() -> None:
    console = Console(file=io.StringIO(), width=200)
    console.print(as_view(figures(judge([]))))

    assert "no job of the past can judge an estimate" in console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("form", ["--json", "--csv", ""])
def test_the_command_reads_a_file_without_settings(tmp_path: Path, form: str) -> None:
    file = tmp_path / "sacct.txt"
    file.write_text("\n".join(site(1, 5, 5)) + "\n")
    done = CliRunner().invoke(app, ["estimates", "--sacct", str(file), *([form] if form else [])])

    assert done.exit_code == 0
    if form == "--json":
        data = json.loads(done.stdout)
        assert data["all"]["jobs"] > 50
        assert data["all"]["jobs"] == sum(each["jobs"] for each in data["names"])
    else:
        assert "user0" in done.stdout


def test_both_forms_of_a_file_tell_the_same_lives(tmp_path: Path) -> None:
    table, data = tmp_path / "t", tmp_path / "j"
    table.write_text(
        f"{HEADER}\n7|train|alice|ml|1767607200|1767610800|3600|90|COMPLETED\n8|x|a|b|1767607200|Unknown|0|9|RUNNING\n"
    )
    job = {
        "job_id": 7, "name": "train", "user": "alice", "account": "ml", "state": {"current": "COMPLETED"},
        "time": {"submission": 1767607200, "end": 1767610800, "elapsed": 3600, "limit": 90}, "tres": {"allocated": []},
    }  # fmt: skip
    data.write_text(json.dumps({"jobs": [job]}))

    expected = PastLife("alice", "ml", "train", 5400.0, 3600.0, "COMPLETED", 1767610800.0, 1767607200.0)
    assert read_file(table).lives == read_file(data).lives == (expected,)


ROW = "|train|alice|ml|2026-01-{day}T00:00:00|2026-01-{day}T01:00:00|3600|90|COMPLETED"


def past_file(tmp_path: Path, *more: str) -> Path:
    """Write jobs of the 5th, the 10th and the 20th of January."""
    path = tmp_path / "sacct.txt"
    rows = [f"{day}{ROW.format(day=day)}" for day in ("05", "10", "20")]
    path.write_text("\n".join([HEADER, *rows, *more]) + "\n")
    return path


@pytest.mark.parametrize(("since", "lives"), [("", 3), ("2026-01-06", 2), ("10d", 2), ("9d", 1), ("2027-01-01", 0)])
def test_since_holds_for_a_file_too_its_days_counted_from_the_newest_end(
    tmp_path: Path, since: str, lives: int
) -> None:
    assert len(read_file(past_file(tmp_path), since).lives) == lives


def test_a_since_that_is_none_is_refused_for_a_file_too(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="--since 'banana'"):
        read_file(past_file(tmp_path), "banana")


def test_records_that_accounting_lost_are_counted(tmp_path: Path) -> None:
    lost = "9|t|a|m|Unknown|Unknown|0|9|CANCELLED"
    file = past_file(tmp_path, lost, lost.replace("Unknown|0", "Unknown|").replace("Unknown", "1767607200", 1))
    done = CliRunner().invoke(app, ["estimates", "--sacct", str(file), "--json"])

    assert json.loads(done.stdout)["left_out"] == {"no running time told": 1, "no submission time": 1}


def test_two_forms_at_once_are_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["estimates", "--sacct", str(past_file(tmp_path)), "--json", "--csv"])

    assert isinstance(done.exception, Misconfigured)
    assert "give one of them" in str(done.exception)


def test_a_file_that_is_none_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="cannot be read"):
        read_file(tmp_path / "missing")
    done = subprocess.run(
        [sys.executable, "-m", "evalstopd", "estimates", "--sacct", str(tmp_path / "missing")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
