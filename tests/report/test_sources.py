"""Every kind of source: what is read, which metric is meant, what broken and hostile files do."""

import json
import math
import struct
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalstopd.core.curve import curve
from evalstopd.core.model import Mode, Point
from evalstopd.errors import Misconfigured, WrongUsage
from evalstopd.report.replay.commands import app
from evalstopd.report.replay.history import History
from evalstopd.report.replay.labels import labels
from evalstopd.report.replay.sources import Pick, read_source
from evalstopd.report.replay.sources.tensorboard import records, scalars

DATA = Path(__file__).parent.parent / "data"
FALL = [0.1, 0.3, 0.5, 0.6, 0.7, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]


def read(path: Path, pick: Pick | None = None) -> list[History]:
    return list(read_source(path, pick))


def scores(history: History) -> list[float]:
    return [round(each.score, 5) for each in history.evals]


def test_pytorchs_event_files_give_their_held_out_scalars() -> None:
    (found,) = read(DATA / "tensorboard" / "scalars")

    assert (found.metric, found.mode, found.primary) == ("eval/reward", Mode.MAX, True)
    assert scores(found) == FALL
    assert [each.step for each in found.evals] == [100 * i for i in range(12)]
    assert found.labels["label"] == "declining"


def test_tensorboards_own_event_files_hold_tensors() -> None:
    (found,) = read(DATA / "tensorboard" / "tensors")

    assert scores(found) == [i / 10 for i in range(8)]


def test_each_folder_of_event_files_is_a_run() -> None:
    assert [each.name for each in read(DATA / "tensorboard")] == ["scalars", "tensors"]


def test_a_named_metric_is_read_even_if_it_is_no_held_out_one() -> None:
    (found,) = read(DATA / "tensorboard" / "scalars", Pick("train/loss"))

    assert (found.metric, found.mode) == ("train/loss", Mode.MIN)
    assert read(DATA / "tensorboard" / "scalars", Pick("train/loss", Mode.MAX))[0].mode is Mode.MAX


def test_an_event_file_cut_at_any_byte_gives_a_prefix() -> None:
    """A killed writer leaves half a record; reading must end there and never raise."""
    data = next((DATA / "tensorboard" / "tensors").iterdir()).read_bytes()
    whole = [point.value for _, point in scalars(data)]
    for cut in range(len(data)):
        found = [point.value for _, point in scalars(data[:cut])]
        assert found == whole[: len(found)]


def test_an_event_file_with_any_byte_spoilt_never_raises() -> None:
    data = next((DATA / "tensorboard" / "tensors").iterdir()).read_bytes()
    for at in range(len(data)):
        list(scalars(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]))


def test_a_record_that_claims_to_be_huge_ends_the_file() -> None:
    assert list(records(struct.pack("<QI", 1 << 60, 0) + b"x" * 100)) == []


def state(path: Path, values: list[float], key: str = "eval_accuracy") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    log: list[dict[str, object]] = [
        {"step": 10 * (i + 1), "epoch": 0.1, key: v, "eval_loss": 1.0, "eval_runtime": 2.0}
        for i, v in enumerate(values)
    ]
    path.write_text(json.dumps({"log_history": [{"step": 5, "loss": 2.0}, *log]}))


def test_the_checkpoint_with_the_longest_history_speaks_for_its_run(tmp_path: Path) -> None:
    state(tmp_path / "a" / "checkpoint-10" / "trainer_state.json", [0.1])
    state(tmp_path / "a" / "checkpoint-30" / "trainer_state.json", [0.1, 0.2, 0.3])
    state(tmp_path / "b" / "trainer_state.json", [0.5, 0.4])
    (tmp_path / "a" / "checkpoint-40").mkdir()
    (tmp_path / "a" / "checkpoint-40" / "trainer_state.json").write_text('{"log_history": [{"st')
    found = {(each.name, each.metric): each for each in read(tmp_path)}

    assert set(found) == {(run, key) for run in "ab" for key in ("eval_accuracy", "eval_loss")}
    assert scores(found["a", "eval_accuracy"]) == [0.1, 0.2, 0.3]
    assert [found["a", key].primary for key in ("eval_accuracy", "eval_loss")] == [True, False]
    assert found["a", "eval_loss"].mode is Mode.MIN


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    state(tmp_path / "outside" / "trainer_state.json", [0.1, 0.2])
    state(tmp_path / "in" / "x" / "trainer_state.json", [0.3, 0.4])
    (tmp_path / "in" / "away").symlink_to(tmp_path / "outside")
    (tmp_path / "in" / "y").mkdir()
    (tmp_path / "in" / "y" / "trainer_state.json").symlink_to(tmp_path / "outside" / "trainer_state.json")

    assert {each.name for each in read(tmp_path / "in")} == {"x"}


def test_an_mlflow_file_store_is_read_as_it_lies(tmp_path: Path) -> None:
    """Repeated steps count once (the later timestamp), order of the lines does not matter, NaN is no score."""
    run = tmp_path / "mlruns" / "7" / "abc"
    (run / "metrics" / "eval").mkdir(parents=True)
    (run / "meta.yaml").write_text("run_id: abc\n")
    (run / "metrics" / "eval" / "accuracy").write_text("3 0.3 30\n1 0.1 10\n2 0.2 20\n4 0.25 20\n5 NaN 40\nbroken\n")
    (run / "metrics" / "loss").write_text("1 2.0 10 7 name digest\n2 1.0 20\n")
    (found,) = read(tmp_path / "mlruns")

    assert (found.name, found.source, found.metric) == ("abc", "experiment 7", "eval/accuracy")
    assert [(each.step, each.score) for each in found.evals] == [(10, 0.1), (20, 0.25), (30, 0.3)]


def test_standard_errors_logged_beside_a_metric_belong_to_its_evals(tmp_path: Path) -> None:
    log = [{"step": i, "eval_acc": 0.5, "eval_acc_stderr": 0.01 * i} for i in (1, 2)]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": log}))
    (found,) = read(tmp_path)

    assert [each.stderr for each in found.evals] == [0.01, 0.02]


def test_csv_has_one_eval_a_line(tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    table.write_text(
        "run,step,value,stderr,metric,higher_is_better,label\n"
        "a,1,0.5,0.01,score,true,healthy\nb,1,3.0,,val_loss,,\na,2,0.6,,score,true,healthy\nb,2,2.0,,val_loss,,\n"
    )
    a, b = read(table)

    assert ([(e.score, e.stderr) for e in a.evals], a.labels) == ([(0.5, 0.01), (0.6, None)], {"label": "healthy"})
    assert (scores(b), b.mode) == ([3.0, 2.0], Mode.MIN)


@pytest.mark.parametrize("content", ["run,value\na,1\n", "step,value\n1,x\n", "step,value\n1\n"])
def test_a_csv_that_is_no_table_of_evals_is_named(tmp_path: Path, content: str) -> None:
    table = tmp_path / "runs.csv"
    table.write_text(content)

    with pytest.raises(Misconfigured, match=r"runs\.csv"):
        read(table)


def lines_of(path: Path, pairs: list[tuple[float, float]]) -> Path:
    """Write a curve as CSV or JSON lines, by the path's ending."""
    if path.suffix == ".csv":
        path.write_text("step,value\n" + "".join(f"{step},{value}\n" for step, value in pairs))
    else:
        path.write_text(json.dumps({"steps": [step for step, _ in pairs], "values": [value for _, value in pairs]}))
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_evals_come_in_the_order_of_their_steps_and_the_last_of_a_step_counts_as_for_the_daemon(
    tmp_path: Path, name: str
) -> None:
    pairs = [(30, 0.7), (10, 0.9), (20, 0.1), (20, 0.8), (40, 0.6), (40, math.nan), (50, math.nan)]
    (found,) = read(lines_of(tmp_path / name, pairs))
    daemons = curve(Point("r", step, value, place) for place, (step, value) in enumerate(pairs))

    assert [(each.step, each.score) for each in found.evals[:-1]] == [(each.step, each.score) for each in daemons]
    assert scores(found)[:-1] == [0.9, 0.8, 0.7, 0.6]
    assert (found.evals[-1].step, math.isnan(found.evals[-1].score)) == (50, True)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_steps_that_are_no_whole_numbers_are_ranks(tmp_path: Path, name: str) -> None:
    (found,) = read(lines_of(tmp_path / name, [(1.5, 0.3), (0.5, 0.1), (1.0, 0.2), (1.5, 0.4)]))

    assert [(each.step, each.score) for each in found.evals] == [(0, 0.1), (1, 0.2), (2, 0.4)]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
@pytest.mark.parametrize("step", [math.nan, math.inf])
def test_a_step_that_is_no_number_is_refused(tmp_path: Path, name: str, step: float) -> None:
    with pytest.raises(Misconfigured, match=rf"{name}.*a step is not a finite number"):
        read(lines_of(tmp_path / name, [(1, 0.1), (step, 0.2)]))


@pytest.mark.parametrize("key", ["higher_is_better", "primary"])
@pytest.mark.parametrize("value", ["no", "false", 0, None])
def test_a_flag_of_a_json_line_that_is_no_boolean_is_refused_with_its_line(
    tmp_path: Path, key: str, value: object
) -> None:
    good = {"steps": [1, 2], "values": [0.1, 0.2], key: False}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(good) + "\n" + json.dumps(good | {key: value}))

    with pytest.raises(Misconfigured, match=rf"a\.jsonl, line 2: .*{key} is true or false"):
        read(path)


@pytest.mark.parametrize("key", ["higher_is_better", "primary"])
def test_a_flag_of_a_csv_is_a_known_word(tmp_path: Path, key: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"step,value,{key}\n1,0.1,maybe\n2,0.2,maybe\n")

    with pytest.raises(Misconfigured, match=rf"a\.csv, run 'a': {key} is true or false, not 'maybe'"):
        read(path)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_text_in_another_encoding_is_named_and_a_byte_order_mark_is_taken(tmp_path: Path, name: str) -> None:
    path = lines_of(tmp_path / name, [(1, 0.5), (2, 0.6)])
    good = path.read_bytes()
    path.write_bytes(b"\xef\xbb\xbf" + good)
    assert scores(read(path)[0]) == [0.5, 0.6]

    path.write_bytes(good + b"\n\xff")
    with pytest.raises(Misconfigured, match=rf"{name}: not UTF-8 text"):
        read(path)


def test_without_a_source_replay_and_tune_say_that_one_is_needed() -> None:
    for command in ("replay", "tune"):
        done = CliRunner().invoke(app, [command])

        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.startswith("evalstopd: name a source: ")
        assert done.stderr.count("\n") == 1


def test_the_table_says_what_its_columns_mean() -> None:
    shown = CliRunner().invoke(app, ["replay", str(DATA / "tensorboard")]).stdout

    assert "a trigger on a run's last eval stops nothing" in shown.splitlines()[-1]


def test_a_folder_without_curves_says_what_is_known(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"trainer_state\.json"):
        read(tmp_path)


def test_labels_of_our_own_agree_with_those_of_the_sample() -> None:
    """Never healthy for declining or the other way round; the same word for nine in ten."""
    sample = read(DATA / "eval_curves_sample.jsonl")
    pairs = [
        (each.labels["label"], labels([e.score for e in each.evals if math.isfinite(e.score)], each.mode)["label"])
        for each in sample
    ]

    assert not {("healthy", "declining"), ("declining", "healthy")} & set(pairs)
    assert sum(a == b for a, b in pairs) >= 0.9 * len(pairs)


def test_replay_reads_a_folder_and_a_metric_by_name() -> None:
    arguments = ["replay", str(DATA / "tensorboard"), "--rule", "recommended", "--json"]
    everything = json.loads(CliRunner().invoke(app, arguments).stdout)
    named = json.loads(CliRunner().invoke(app, [*arguments, "--metric", "eval/acc"]).stdout)

    assert (everything["curves"], named["curves"]) == (2, 1)
    assert everything["rows"][0]["label"] == "label"
    assert everything["rows"][0]["recall"] == 1.0


@pytest.mark.parametrize("name", ["curve.csv", "folder", "curve.jsonl"])
def test_what_is_not_there_is_said_to_be_so(tmp_path: Path, name: str) -> None:
    with pytest.raises(WrongUsage, match=f"{name}: cannot be read: No such file or directory"):
        read(tmp_path / name)
