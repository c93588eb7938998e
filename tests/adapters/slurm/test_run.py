"""The runner: time limit, output cap, environment and errors, with real processes."""

import os
import time
from pathlib import Path

import pytest

from evalstopd.adapters.slurm.run import Answer, ProcessRunner, printable, succeed
from evalstopd.errors import Unavailable

QUICK = ProcessRunner(timeout_s=0.4)


def test_output_complaints_and_code_are_kept_apart() -> None:
    answer = ProcessRunner()(["sh", "-c", "printf out; printf err >&2; exit 3"], {})
    assert answer == Answer(3, "out", "err")


@pytest.mark.timed
def test_a_command_that_hangs_is_unavailable_within_its_time_and_its_children_die_with_it(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    began = time.monotonic()
    with pytest.raises(Unavailable, match=r"sh gave no answer within 0\.4 s"):
        QUICK(["sh", "-c", f"sleep 60 & echo $! >{pid_file}; wait"], {})
    assert time.monotonic() - began < 5
    child = int(pid_file.read_text())
    for _ in range(100):
        if not _runs(child):
            return
        time.sleep(0.02)
    pytest.fail("the command's child lives on")


def test_a_command_that_closes_its_output_and_stays_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="no answer"):
        QUICK(["sh", "-c", "exec >&- 2>&-; sleep 60"], {})


def test_a_command_that_prints_for_ever_is_stopped_by_its_time_or_the_cap() -> None:
    with pytest.raises(Unavailable, match="more than 100000 bytes"):
        ProcessRunner(cap=100_000)(["yes"], {})
    with pytest.raises(Unavailable, match="no answer"):
        ProcessRunner(timeout_s=0.05, cap=2**40)(["yes"], {})


def test_output_at_the_cap_is_whole() -> None:
    """The cap counts both streams and lets through what just fits."""
    runner = ProcessRunner(cap=10)
    assert runner(["printf", "0123456789"], {}).out == "0123456789"
    with pytest.raises(Unavailable):
        runner(["printf", "0123456789a"], {})


def test_a_missing_program_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="no-such-program was not found at /"):
        ProcessRunner()(["no-such-program"], {})


def test_an_argument_list_too_long_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="cannot be run"):
        ProcessRunner()(["true", "x" * 3_000_000], {})


def test_the_environment_is_only_what_slurm_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables of the daemon's own start (SQUEUE_STATES, TZ, LANG) would change what is printed."""
    monkeypatch.setenv("SQUEUE_STATES", "PENDING")
    answer = ProcessRunner(conf="/etc/x/slurm.conf")(["env"], {"EXTRA": "1"})
    got = dict(line.split("=", 1) for line in answer.out.splitlines())
    got.pop("_", None)
    assert got == {
        "PATH": "/usr/bin:/usr/sbin:/bin:/sbin",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "SLURM_TIME_FORMAT": "%s",
        "SLURM_CONF": "/etc/x/slurm.conf",
        "EXTRA": "1",
    }


def test_without_a_conf_slurm_finds_its_own() -> None:
    assert "SLURM_CONF" not in ProcessRunner()(["env"], {}).out


def test_bytes_that_are_no_utf8_survive_a_round_trip() -> None:
    out = ProcessRunner()(["printf", "a\\377b"], {}).out
    assert out == "a\udcffb"
    assert ProcessRunner()(["printf", "%s", out], {}).out == out


def test_nothing_is_read_from_standard_input_or_the_daemons_folder() -> None:
    assert ProcessRunner()(["sh", "-c", "cat; pwd"], {}).out == "/\n"


@pytest.mark.timed
def test_no_descriptor_is_left_open_by_any_ending() -> None:
    before = len(os.listdir("/proc/self/fd"))
    QUICK(["true"], {})
    for argv in (["sleep", "60"], ["no-such-program"]):
        with pytest.raises(Unavailable):
            QUICK(argv, {})
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_failure_is_one_printable_line() -> None:
    with pytest.raises(Unavailable) as caught:
        succeed(Answer(1, "", "first\n\x1b[31msecond\n" + "x" * 5000), "squeue")
    text = str(caught.value)
    assert text.startswith("squeue failed (1): first ?[31msecond xxx")
    assert text.isprintable()
    assert len(text) < 400


def test_a_failure_without_words_says_so() -> None:
    with pytest.raises(Unavailable, match="no message"):
        succeed(Answer(1, "", ""), "squeue")


@pytest.mark.parametrize("text", ["\u202eevil", "a\u2028b", "\x9b31m", "\udcff"])
def test_printable_lets_nothing_through_that_moves_a_terminal(text: str) -> None:
    assert printable(text).isprintable()


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
