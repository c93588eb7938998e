"""Savings in GPU-hours: which runs are joined to which jobs, what is counted, what is left out and said."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalstopd.report.replay.commands import app

HEAD = "JobID|JobIDRaw|Submit|Elapsed|State|AllocTRES|Account|User|Cluster"
HOUR_MS = 3_600_000
FALL = [0.1, 0.4, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]
RISE = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]


def run(store: Path, name: str, scores: list[float], **tags: str) -> None:
    """Write a run as MLflow's file store has it: an eval an hour, and the tags in files of their own."""
    folder = store / "0" / name
    for part in ("metrics/eval", "tags"):
        (folder / part).mkdir(parents=True)
    (folder / "meta.yaml").write_text("")
    lines = (f"{(i + 1) * HOUR_MS} {score} {i}\n" for i, score in enumerate(scores))
    (folder / "metrics" / "eval" / "score").write_text("".join(lines))
    for key, value in tags.items():
        (folder / "tags" / f"slurm.{key}").write_text(value)


def job(raw_id: str, hours: int, gpus: int = 4, **other: str) -> str:
    cell = {"state": "COMPLETED", "account": "ml", "user": "alice", "cluster": "red", "submit": "2026-01-05T10:00:00"}
    cell |= other
    shown = f"{raw_id}|{raw_id}|{cell['submit']}|{hours:02}:00:00|{cell['state']}|cpu=8,gres/gpu={gpus}"
    return f"{shown}|{cell['account']}|{cell['user']}|{cell['cluster']}"


def told(tmp_path: Path, *jobs: str) -> dict:  # type: ignore[type-arg]
    return json.loads(asked(tmp_path, *jobs, "--json"))["accounting"]  # type: ignore[no-any-return]


def asked(tmp_path: Path, *lines: str) -> str:
    options = [line for line in lines if line.startswith("--")]
    table = tmp_path / "sacct.txt"
    table.write_text("\n".join([HEAD, *(line for line in lines if line not in options)]) + "\n")
    rule = ["--rule", "k-declines:k=2"]
    done = CliRunner().invoke(app, ["replay", str(tmp_path / "runs"), "--sacct", str(table), *rule, *options])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def test_what_is_saved_is_the_gpus_times_the_hours_from_the_stop_to_the_last_eval(runs: Path, tmp_path: Path) -> None:
    """Two declines are seen at the fifth hourly eval of eight: three hours of four GPUs, of nine in all."""
    run(runs, "a", FALL, job_id="7")
    run(runs, "b", RISE, job_id="8")
    found = told(tmp_path, job("7", 9), job("8", 10, gpus=2, account="vision"))

    assert (found["joined"], found["missing"]) == (2, {})
    rows = {row["account"]: (row["jobs"], row["gpu_hours"], row["gpu_hours_saved"]) for row in found["rows"]}
    assert rows == {"": (2, 56.0, 12.0), "ml": (1, 36.0, 12.0), "vision": (1, 20.0, 0.0)}


def test_never_more_is_saved_than_the_job_had(runs: Path, tmp_path: Path) -> None:
    run(runs, "a", FALL, job_id="7")

    assert told(tmp_path, job("7", 1))["rows"][0]["gpu_hours_saved"] == 4.0


def test_hours_of_stops_that_lose_quality_are_told_apart(runs: Path, tmp_path: Path) -> None:
    run(runs, "a", [0.1, 0.4, 0.3, 0.2, 0.5, 0.8, 0.9, 0.9], job_id="7")
    row = told(tmp_path, job("7", 9))["rows"][0]

    assert row["gpu_hours_saved"] == row["gpu_hours_saved_losing"] == 16.0


def test_all_lives_of_a_requeued_job_count(runs: Path, tmp_path: Path) -> None:
    run(runs, "a", FALL, job_id="7")
    found = told(tmp_path, job("7", 2, gpus=2, state="REQUEUED"), job("7", 9, submit="2026-01-05T13:00:00"))

    assert found["rows"][0]["gpu_hours"] == 40.0


def test_runs_that_are_no_job_for_certain_are_counted_by_why(runs: Path, tmp_path: Path) -> None:
    run(runs, "untagged", FALL)
    run(runs, "unknown", FALL, job_id="1")
    run(runs, "other-cluster", FALL, job_id="2", cluster="blue")
    run(runs, "running", FALL, job_id="3")
    run(runs, "no-gpu", FALL, job_id="4")
    run(runs, "first", FALL, job_id="5")
    run(runs, "second", FALL, job_id="5")
    run(runs, "reused", FALL, job_id="6")
    run(runs, "good", FALL, job_id="7", cluster="red")
    jobs = (
        job("2", 9),
        job("3", 9, state="RUNNING"),
        job("4", 9, gpus=0),
        job("5", 9),
        job("6", 9),
        job("6", 9, user="bob"),
        job("7", 9),
    )
    found = told(tmp_path, *jobs)

    assert found["joined"] == 1
    assert found["missing"] == {
        "no slurm.job_id tag": 1,
        "job not in the accounting file": 2,
        "job had not ended": 1,
        "no GPU time": 1,
        "several runs name the job": 2,
        "several jobs of this id": 1,
    }


def test_people_are_told_in_words(runs: Path, tmp_path: Path) -> None:
    run(runs, "a", FALL, job_id="7")
    run(runs, "b", FALL)
    text = asked(tmp_path, job("7", 9, account="\x1b[2J"))

    assert "runs joined to a job: 1 of 2; left out of the GPU-hours: 1 (1 of them: no slurm.job_id tag)" in text
    assert "36.0" in text
    assert "\x1b" not in text


def test_further_metrics_of_a_run_do_not_count_its_job_again(runs: Path, tmp_path: Path) -> None:
    run(runs, "a", FALL, job_id="7")
    (runs / "0" / "a" / "metrics" / "eval" / "loss").write_text("1 1.0 1\n2 0.5 2\n")

    assert told(tmp_path, job("7", 9))["rows"][0]["gpu_hours"] == 36.0


def test_records_that_accounting_lost_are_counted_and_the_others_joined(runs: Path, tmp_path: Path) -> None:
    run(runs, "a", FALL, job_id="7")
    jobs = (job("7", 9), job("8", 9, submit="Unknown"))

    assert told(tmp_path, *jobs)["records_left_out"] == {"no submission time": 1}
    assert "records left out of the accounting: 1 (no submission time)" in asked(tmp_path, *jobs)


def test_a_table_without_raw_ids_is_refused(runs: Path, tmp_path: Path) -> None:
    """The raw id is what a run's tag has; an array's task shows another one."""
    run(runs, "a", FALL, job_id="7")
    table = tmp_path / "sacct.txt"
    table.write_text("JobID|Submit|Elapsed|State|AllocTRES|Account\n")
    done = CliRunner().invoke(app, ["replay", str(runs), "--sacct", str(table)])

    assert done.exit_code == 2
    assert "no field JobIDRaw" in done.stderr


def test_an_accounting_file_that_is_not_there_is_told_before_anything_is_read(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["replay", "mlflow:x", "--sacct", str(tmp_path / "none")])

    assert done.exit_code == 2
    assert "cannot be read as sacct's output" in done.stderr


def test_the_csv_has_each_runs_hours(runs: Path, tmp_path: Path) -> None:
    run(runs, "a", FALL, job_id="7")
    run(runs, "b", FALL)
    table, out = tmp_path / "sacct.txt", tmp_path / "out.csv"
    table.write_text(f"{HEAD}\n{job('7', 9, account='=ml')}\n")
    asked = ["replay", str(runs), "--sacct", str(table), "--rule", "k-declines:k=2", "--csv", str(out)]
    assert CliRunner().invoke(app, asked).exit_code == 0
    with out.open(newline="") as file:
        lines = {line["name"]: line for line in csv.DictReader(file)}

    assert (lines["a"]["account"], lines["a"]["gpu_hours"], lines["a"]["gpu_hours_saved"]) == ("'=ml", "36.0", "12.0")
    assert lines["b"]["gpu_hours"] == ""
