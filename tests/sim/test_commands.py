"""The commands as a user meets them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from evalstopd_sim.arms import Arm, run_seed
from evalstopd_sim.commands import app
from evalstopd_sim.request import Request, setting
from evalstopd_sim.traces import BUNDLED
from typer.testing import CliRunner, Result

QUICK = ["--seeds", "2", "--jobs", "60"]


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def rows(*arguments: str) -> list[dict]:
    result = call("simulate", *QUICK, "--json", *arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["rows"]


def test_simulate_shows_base_and_rule_side_by_side_with_what_they_rest_on() -> None:
    shown = call("simulate", "--gpus", "64", *QUICK).stdout

    for words in (
        "srtf-est  + k-declines(2)",
        "FPR of all jobs that do not hack",
        "FPR of healthy RLHF jobs",
        "head of line: skip",
        "preemption overhead 120 s",
        "fitted by us",
        "unfinished jobs",
    ):
        assert words in shown


def test_the_json_has_the_documented_shape() -> None:
    result = json.loads(call("simulate", *QUICK, "--json").stdout)

    base, treated = result["rows"]
    assert (base["base"], base["detector"], treated["detector"]) == ("srtf-est", "none", "k-declines(2)")
    assert (treated["jobs"], treated["seeds"], treated["unfinished"]) == (60, 2, 0)
    assert base["precision"] is None
    for name in (
        "jct_mean_s", "jct_p95_s", "preemptions", "w1_gpu_h", "w2_gpu_h", "w3_gpu_h", "w4_gpu_h",
        "precision", "recall", "fpr", "fpr_healthy_rlhf",
    ):  # fmt: skip
        assert isinstance(treated[name], float | int), name
    assert result["settings"]["preset"] == "paper"


def test_no_rule_gives_the_base_alone() -> None:
    assert [row["detector"] for row in rows("--detector", "none")] == ["none"]


@pytest.mark.parametrize(
    ("arguments", "label"),
    [
        (["--k", "3"], "k-declines(3)"),
        (["--detector", "k-declines:k=1"], "k-declines(1)"),
        (["--detector", "patience"], "patience(3)"),
        (["--detector", "drop-test"], "drop-test-paper"),
        (["--detector", "drop-test", "--preset", "real"], "drop-test-safe"),
        (["--detector", "loss-plateau"], "loss-plateau(2,0.0105)"),
        (["--detector", "elapsed-fraction"], "elapsed-fraction(0.65)"),
        (["--detector", "stop-at-oracle:share=0.5"], "stop-at-oracle(0.5)"),
        (["--detector", "peak-oracle"], "peak-oracle"),
        (["--detector", "put-last+k-declines", "--k", "2"], "put-last(k-declines(2))"),
    ],
)
def test_every_rule_can_be_asked_for(arguments: list[str], label: str) -> None:
    assert rows(*arguments)[1]["detector"] == label


@pytest.mark.parametrize(
    "arguments",
    [
        ["--preset", "gao"],
        ["--preset", "real", "--evals", "10"],
        ["--base", "las"],
        ["--base", "goodput"],
        ["--evals", "every:2700"],
        ["--curves", "curves"],
        ["--noise", "0.1", "--hacking", "0.2", "--load", "0.5"],
        ["--user-cancels", "0.64"],
        ["--gpus-per-node", "8"],
        ["--trace", "philly", "--drop-larger"],
        ["--requeue-delay-s", "60", "--preemption-overhead-s", "0"],
    ],
)
def test_every_option_runs_and_changes_the_figures(arguments: list[str]) -> None:
    assert [row["jct_mean_s"] for row in rows(*arguments)] != [row["jct_mean_s"] for row in rows()]


def test_the_golden_trace_can_be_simulated_from_the_command_line() -> None:
    result = call(
        "simulate", "--trace", "golden", "--base", "fifo", "--head-of-line", "strict", "--detector", "none",
        "--estimates", "exact", "--seeds", "1", "--json",
    )  # fmt: skip

    assert json.loads(result.stdout)["rows"][0]["jct_mean_s"] == pytest.approx(3304.0, abs=0.05)


def test_a_horizon_leaves_jobs_unfinished_and_says_so() -> None:
    assert rows("--until-h", "10")[0]["unfinished"] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--gpus", "-8"], "--gpus must be at least 1 and at most 100000, not -8"),
        (["--gpus", "4"], "preset paper has jobs of 8 GPUs"),
        (["--preset", "nice"], "unknown preset 'nice'"),
        (["--base", "lottery"], "unknown policy 'lottery'; known: fifo, goodput"),
        (["--detector", "hunch"], "unknown rule 'hunch'"),
        (["--detector", "k-declines:q=2"], "no parameter 'q'"),
        (["--detector", "patience", "--k", "2"], "--k belongs to the rule k-declines"),
        (["--detector", "k-declines:k=3", "--k", "2"], "both by --detector and by --k"),
        (["--detector", "none", "--k", "2"], "--k belongs to the rule k-declines"),
        (["--k", "0"], "k must be at least 1"),
        (["--noise", "nan"], "--noise must be between 0 and 10"),
        (["--hacking", "1.5"], "--hacking must be between"),
        (["--load", "0"], "--load must be between 0.001 and 10"),
        (["--evals", "none"], "--evals is a number of evals or every:SECONDS"),
        (["--evals", "every:0"], "--evals is a number of evals or every:SECONDS"),
        (["--evals", "every:1e-9"], "evals a seed, more than 10000000"),
        (["--evals", "every:0.01"], "evals a seed, more than 10000000"),
        (["--evals", "100000000"], "evals a seed, more than 10000000"),
        (["--evals", "100000000", "--trace", "golden"], "evals a seed, more than 10000000"),
        (["--evals", "every:1e-6", "--trace", "golden", "--gpus", "1000"], "evals a seed, more than 10000000"),
        (["--evals", "9" * 400], "--evals is a number of evals or every:SECONDS"),
        (["--jobs", "1000000", "--preset", "real"], "evals a seed, more than 10000000"),
        (["--jobs", "1000001"], "--jobs must be at least 1 and at most 1000000"),
        (["--seeds", "10001"], "--seeds must be at least 1 and at most 10000"),
        (["--first-seed", "9" * 400], "not a number of more than 20 digits"),
        (["--gpus", "100001"], "--gpus must be at least 1 and at most 100000"),
        (["--processes", "257"], "--processes must be at least 1 and at most 256"),
        (["--processes", "0"], "--processes must be at least 1"),
        (["--estimates", "lognormal:1000"], "--estimates is exact, lognormal:SD (above 0, up to 10)"),
        (["--preemption-overhead-s", "1e300"], "--preemption-overhead-s must be between 0 and"),
        (["--requeue-delay-s", "inf"], "--requeue-delay-s must be between 0 and"),
        (["--until-h", "nan"], "--until-h must be between 0 and"),
        (["--base", "goodput:round_s=1e-9"], "round_s must be between 1 s and a day"),
        (["--base", "slaq:round_s=nan"], "round_s must be between 1 s and a day"),
        (["--estimates", "guess"], "--estimates is exact, lognormal:SD"),
        (["--head-of-line", "fair"], "--head-of-line is strict or skip"),
        (["--seeds", "0"], "--seeds must be at least 1"),
        (["--jobs", "0"], "--jobs must be at least 1"),
        (["--trace", "no/such/file"], "no/such/file: cannot be read"),
        (["--trace", "kalos", "--jobs", "300"], "acme_kalos_completed.csv:"),
        (["--curves", "no/such/file"], "no/such/file: cannot be read"),
        (["--base", "slaq", "--gpus-per-node", "8"], "node placement"),
    ],
)
def test_what_makes_no_sense_is_one_line_on_standard_error(arguments: list[str], words: str) -> None:
    result = call("simulate", *QUICK, *arguments)

    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_the_figures_do_not_depend_on_the_number_of_processes() -> None:
    one, two = (call("simulate", *QUICK, "--processes", n).stdout for n in ("1", "2"))

    assert one == two


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("experiment", ["gao"])
def test_reproduce_writes_the_same_bytes_whatever_the_number_of_processes(tmp_path: Path, experiment: str) -> None:
    outs = [tmp_path / n for n in ("1", "2")]
    for out in outs:
        result = call("reproduce", "--experiment", experiment, "--seeds", "2", "--jobs", out.name, "--out", str(out))
        assert result.exit_code == 0, result.output

    found = files(outs[0])
    assert found == files(outs[1])
    assert set(found) >= {"report.md", "report.html", f"{experiment}/table.csv", f"{experiment}/table.json"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--experiment", "magic"], "unknown experiment 'magic'; known: main, composability"),
        (["--seeds", "1"], "--seeds must be at least 2"),
        (["--seeds", "10001"], "--seeds must be at least 2 and at most 10000"),
        (["--jobs", "100000"], "--jobs must be at least 1 and at most 256"),
        (["--executor", "cloud"], "--executor is processes or slurm, not 'cloud'"),
        (["--executor", "slurm", "--slurm", "partition"], "--slurm is NAME=VALUE, not 'partition'"),
    ],
)
def test_reproduce_refuses_in_words_and_writes_nothing(tmp_path: Path, arguments: list[str], words: str) -> None:
    result = call("reproduce", *arguments, "--out", str(tmp_path / "out"))

    assert result.exit_code == 2
    assert words in result.stderr
    assert not (tmp_path / "out").exists()


def test_an_array_without_submitit_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "submitit", None)

    result = call("reproduce", "--experiment", "gao", "--executor", "slurm", "--out", str(tmp_path))

    assert result.exit_code == 78
    assert "pip install 'evalstopd[slurm]'" in result.stderr


def test_reproduce_refuses_a_place_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")

    result = call("reproduce", "--out", str(tmp_path / "out"))

    assert result.exit_code == 2
    assert (tmp_path / "out").read_text() == "mine"


def test_files_are_replaced_whole_and_never_written_into(tmp_path: Path) -> None:
    """Whoever still reads an earlier table keeps all of it."""
    (tmp_path / "gao").mkdir()
    (tmp_path / "gao" / "table.csv").write_text("earlier")
    (tmp_path / "reader").hardlink_to(tmp_path / "gao" / "table.csv")

    result = call("reproduce", "--experiment", "gao", "--seeds", "2", "--jobs", "1", "--out", str(tmp_path))

    assert result.exit_code == 0
    assert (tmp_path / "reader").read_text() == "earlier"
    assert (tmp_path / "gao" / "table.csv").read_text() != "earlier"


def test_a_file_that_cannot_be_written_is_one_line_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / "gao" / "table.csv").mkdir(parents=True)

    result = call("reproduce", "--experiment", "gao", "--seeds", "2", "--jobs", "1", "--out", str(tmp_path))

    assert result.exit_code == 2
    assert f"error: --out {tmp_path}: " in result.stderr
    assert not list(tmp_path.rglob("*.partial"))


def test_the_bundled_traces_are_named_in_the_help() -> None:
    shown = call("simulate", "--help").stdout

    assert all(name in shown for name in BUNDLED)


def test_the_module_runs_by_itself_and_its_help_imports_nothing_heavy() -> None:
    code = "import sys; import evalstopd_sim.commands; print([m for m in sys.modules if m.startswith('evalstopd')])"
    # A new process does not inherit the path by which pytest finds a package that is not installed.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}

    shown = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    ).stdout

    assert "evalstopd.core" not in shown
    assert "evalstopd_sim.arms" not in shown


def test_a_world_dealt_anew_for_each_arm_is_the_same_world() -> None:
    """Large worlds are not kept in memory; what counts as large must change no figure."""
    world = setting(Request(jobs=60))
    arms = (Arm("srtf-est", "none"), Arm("srtf-est", "k-declines:k=2"))

    assert repr(run_seed(world, 3, arms, most_kept=0)) == repr(run_seed(world, 3, arms))
