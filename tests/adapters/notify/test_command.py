"""A site's program as a channel: what it gets, and what becomes of one that fails, hangs or talks without end."""

import json
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest

from evalstopd.adapters.notify.command import CommandChannel
from evalstopd.core.model import JobKey
from evalstopd.errors import InDoubt, Unavailable
from evalstopd.ports import Message

HOSTILE = "a'; touch /tmp/x; $(id) `id`\r\n\x1b[31m\x00\udcff漢 </script>"
MESSAGE = Message(JobKey("c", "7", 1001, 100), "alice", "your job is close to a stop", HOSTILE, "warning", "c:7:0:40")


def program(folder: Path, body: str) -> str:
    path = folder / "tell"
    path.write_text(f"#!{sys.executable}\n{textwrap.dedent(body)}")
    path.chmod(0o755)
    return str(path)


def test_the_program_gets_the_message_as_one_json_object_on_its_input(tmp_path: Path) -> None:
    got = tmp_path / "got"
    path = program(
        tmp_path, f"import sys; open({str(got)!r}, 'w').write(sys.stdin.read() + '|' + '|'.join(sys.argv[1:]))"
    )
    how = CommandChannel((path, "--to", "$HOME; id")).send(MESSAGE)
    given, *arguments = got.read_text().split("|")

    assert how == f"{path} ended with 0"
    assert arguments == ["--to", "$HOME; id"]
    assert json.loads(given) == {
        "key": {"cluster": "c", "job_id": "7", "uid": 1001, "submitted_s": 100},
        "user": "alice", "subject": "your job is close to a stop", "text": HOSTILE, "kind": "warning",
        "ref": "c:7:0:40",
    }  # fmt: skip


def test_a_program_that_fails_is_said_with_its_exit_code_and_its_words_made_harmless(tmp_path: Path) -> None:
    path = program(tmp_path, r"import sys; sys.stderr.write('no \x1b[31m luck\n' + 'x' * 10**6); sys.exit(3)")
    with pytest.raises(Unavailable, match=r"tell ended with 3: no \\x1b\[31m luck\\nxxx") as caught:
        CommandChannel((path,)).send(MESSAGE)

    assert len(str(caught.value)) < 500


@pytest.mark.timed
@pytest.mark.parametrize(
    "body",
    ["import time; time.sleep(600)", "while True: print('y' * 1000)", "import os, time; os.fork() or time.sleep(600)"],
)
def test_a_program_that_does_not_end_is_killed_with_its_children_at_the_limit(tmp_path: Path, body: str) -> None:
    alive = tmp_path / "alive"
    path = program(tmp_path, f"import os; open({str(alive)!r}, 'w').write(str(os.getpid()))\n{body}")
    with pytest.raises(InDoubt, match="did not end within 2 s and was killed"):
        CommandChannel((path,), limit_s=2.0).send(MESSAGE)
    group = int(alive.read_text())

    deadline = time.monotonic() + 30
    while left := [each for each in Path("/proc").glob("[0-9]*/stat") if running_in(each, group)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def test_of_a_program_that_a_signal_ends_nobody_knows_whether_it_told(tmp_path: Path) -> None:
    path = program(tmp_path, "import os; print('sending', flush=True); os.kill(os.getpid(), 9)")
    with pytest.raises(InDoubt, match="tell was killed by signal 9: sending"):
        CommandChannel((path,)).send(MESSAGE)


def test_a_message_that_cannot_be_written_starts_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = tmp_path / "ran"
    path = program(tmp_path, f"open({str(ran)!r}, 'w')")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(Unavailable, match=r"no message could be written for .*tell"):
        CommandChannel((path,)).send(MESSAGE)

    assert not ran.exists()


def running_in(stat: Path, group: int) -> bool:
    """Tell whether a process of /proc belongs to a group and is no zombie."""
    try:
        state, _, of, *_ = stat.read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return int(of) == group and state != "Z"


def test_a_program_that_is_missing_or_may_not_be_run_is_said_by_the_check_and_by_the_act(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    for path in (tmp_path / "none", tmp_path / "text"):
        with pytest.raises(Unavailable, match="is no program"):
            CommandChannel((str(path),)).check()
        with pytest.raises(Unavailable, match="cannot be run"):
            CommandChannel((str(path),)).send(MESSAGE)


def test_the_check_does_not_run_the_program(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    path = program(tmp_path, f"open({str(ran)!r}, 'w')")

    assert CommandChannel((path,)).check() == f"{path} can be run"
    assert not ran.exists()
