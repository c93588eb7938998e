"""Traces: every format, and one line that names file and line for what makes no sense."""

import json
from pathlib import Path

import pytest
from evalstopd_sim.traces import BUNDLED, read_trace
from evalstopd_sim.traces.row import Trace

from evalstopd.errors import Misconfigured

SACCT = "JobID|Submit|Elapsed|State|AllocTRES|TimelimitRaw"
SWF = "1 {} 5 {} 4 -1 -1 4 7200 -1 1 1 1 1 1 1 -1 -1"


def read(tmp_path: Path, text: str) -> Trace:
    path = tmp_path / "trace"
    path.write_text(text)
    return read_trace(str(path))


def jobs(trace: Trace) -> list[tuple[str, float, int | None, float | None]]:
    return [(o.job_id, o.submit_s, o.gpus, o.duration_s) for o in trace.outlines]


def test_a_csv_is_sorted_and_starts_at_zero(tmp_path: Path) -> None:
    trace = read(tmp_path, "job_id,user,submit_s,gpus,duration_s\n7,x,500,2,60\n3,y,200,0.5,30\n\n9,z,900,0,10\n")

    assert jobs(trace) == [("3", 0.0, 1, 30.0), ("7", 300.0, 2, 60.0)]
    assert trace.left_out == (("no GPU", 1),)


def test_swf_takes_processors_for_gpus_and_leaves_out_what_did_not_run(tmp_path: Path) -> None:
    trace = read(tmp_path, f"; Version: 2.2\n{SWF.format(10, 3600)}\n{SWF.format(20, -1)}\n")

    assert jobs(trace) == [("1", 0.0, 4, 3600.0)]
    assert trace.outlines[0].estimate_s == 7200.0
    assert trace.left_out == (("no running time or submit time", 1),)


def test_sacct_gives_gpus_limits_and_days(tmp_path: Path) -> None:
    lines = [
        SACCT,
        "11|2026-01-05T10:00:00|1-02:00:05|COMPLETED|cpu=8,gres/gpu=4,mem=1G|1500",
        "11.batch|2026-01-05T10:00:00|1-02:00:05|COMPLETED|cpu=8|",
        "12_3|2026-01-05T11:00:00|00:10:00|CANCELLED by 1000|billing=1,gres/gpu=1,gres/gpu:a100=1|UNLIMITED",
        "13|2026-01-05T11:30:00|00:10:00|RUNNING|gres/gpu=1|60",
        "14|2026-01-05T11:40:00|00:00:00|CANCELLED|gres/gpu=1|60",
        "15|2026-01-05T11:50:00|00:10:00|FAILED|cpu=1|60",
    ]

    trace = read(tmp_path, "\n".join(lines))

    assert jobs(trace) == [("11", 0.0, 4, 93605.0), ("12_3", 3600.0, 1, 600.0)]
    assert [o.estimate_s for o in trace.outlines] == [90000.0, None]
    assert dict(trace.left_out) == {
        "job step": 1, "not ended when the trace was taken": 1, "no running time": 1, "no GPU": 1,
    }  # fmt: skip


def record(job_id: int, count: int, state: str = "COMPLETED") -> dict[str, object]:
    return {
        "job_id": job_id,
        "time": {"submission": 1000 + job_id, "elapsed": 60, "limit": {"set": True, "infinite": False, "number": 5}},
        "tres": {"allocated": [{"type": "gres", "name": "gpu", "count": count}, {"type": "cpu", "count": 2}]},
        "state": {"current": [state]},
    }


def test_sacct_json_reads_the_same(tmp_path: Path) -> None:
    trace = read(tmp_path, json.dumps({"jobs": [record(1, 2), record(2, 1, "RUNNING")]}, indent=1))

    assert jobs(trace) == [("1", 0.0, 2, 60.0)]
    assert trace.outlines[0].estimate_s == 300.0


@pytest.mark.parametrize("name", list(BUNDLED))
def test_the_bundled_traces_can_be_read_by_name(name: str) -> None:
    trace = read_trace(name)

    assert len(trace.outlines) >= 300
    assert trace.name == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("job_id,submit,gpus,duration\n1,0,-2,10\n", "trace:2: gpus must be finite and not negative, not '-2'"),
        ("job_id,submit,gpus,duration\n1,0,2,10\n2,0,2,nan\n", "trace:3: duration must be finite"),
        ("job_id,submit,gpus,duration\n1,0,two,10\n", "trace:2: gpus is not a number: 'two'"),
        ("job_id,submit,gpus,duration\n1,0,2\n", "trace:2: 3 fields where the header has 4"),
        ("job_id,submit,gpus\n1,0,2\n", "trace:1: the header has no column duration"),
        ("job_id,submit,gpus,duration\n", "no job in this trace can be used"),
        ("1 2 3\n", "trace:1: 3 fields where SWF has 18"),
        (SWF.format("inf", 10) + "\n", "trace:1: field 2 must be finite"),
        ("JobID|State\n", "trace:1: sacct's header has no field Submit"),
        (f"{SACCT}\n1|never|00:01:00|COMPLETED|gres/gpu=1|1\n", "trace:2: Submit is not a date and time"),
        (f"{SACCT}\n1|2026-01-05T10:00:00|soon|FAILED|gres/gpu=1|1\n", "trace:2: Elapsed is not of the form"),
        (f"{SACCT}\n1|2026\n", "trace:2: 2 fields where the header has 6"),
        ('{"jobs": [{"job_id": 1}]}', r"trace:jobs\[0\]: not a job record"),
        ('{\n"jobs": [\n', "trace:2: not the output of sacct --json"),
        ('{"nodes": []}', "trace:1: not the output of sacct --json"),
    ],
)
def test_what_makes_no_sense_is_told_in_one_line_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(Misconfigured, match=words) as caught:
        read(tmp_path, text)

    assert "\n" not in str(caught.value)


def test_hostile_text_in_a_trace_is_shown_as_plain_ascii(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"\\x1b\[31m"):
        read(tmp_path, "job_id,submit,gpus,duration\n1,0,\x1b[31mred,10\n")


def test_a_job_larger_than_the_cluster_names_its_line_or_is_left_out_and_counted(tmp_path: Path) -> None:
    trace = read(tmp_path, "job_id,submit,gpus,duration\n1,0,2,10\n2,0,65,10\n")

    with pytest.raises(Misconfigured, match=r"trace:3: job '2' asks for 65 GPUs, more than the cluster's 64"):
        trace.check_fits(64)
    assert trace.fitting(64).left_out == (("larger than 64 GPUs", 1),)
    assert len(trace.fitting(64).outlines) == 1


def test_a_file_that_is_not_there_is_told_in_words() -> None:
    with pytest.raises(Misconfigured, match=r"nowhere\.csv: cannot be read as a trace"):
        read_trace("nowhere.csv")
