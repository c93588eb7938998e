"""The daemon's log begins with what it is and ends with its end."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from evalstopd.store import migrate


def test_the_first_line_names_version_rung_rule_and_settings_and_the_last_its_end(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    migrate.upgrade(url)
    path = tmp_path / "evalstopd.toml"
    path.write_text(
        f'[store]\nurl = "{url}"\n[mlflow]\ntracking_uri = "http://127.0.0.1:9"\n[slurm]\npath = "{tmp_path}"\n'
    )
    daemon = subprocess.Popen(
        [sys.executable, "-m", "evalstopd", "run", "--config", str(path)],
        stderr=subprocess.PIPE,
        text=True,
        env={key: value for key, value in os.environ.items() if key != "JOURNAL_STREAM"},
    )
    assert daemon.stderr is not None
    first, second = daemon.stderr.readline(), daemon.stderr.readline()  # the second is a pass: signals are heard by now
    daemon.send_signal(signal.SIGTERM)
    rest = daemon.communicate(timeout=60)[1]

    assert "evalstopd 0" in first
    assert "starts: rung observe, rule recommended" in first
    assert "nothing decided" in second
    assert daemon.returncode == 0
    assert rest.splitlines()[-1].endswith("evalstopd ends")


def test_a_store_that_lacks_some_of_its_schema_keeps_it_from_starting_with_one_plain_line(tmp_path: Path) -> None:
    """With the exit code after which systemd does not try again."""
    url = f"sqlite:///{tmp_path}/store.db"
    migrate.upgrade(url)
    with sqlite3.connect(tmp_path / "store.db") as raw:
        raw.execute("DROP TRIGGER links_no_update")
    raw.close()
    path = tmp_path / "evalstopd.toml"
    path.write_text(f'[store]\nurl = "{url}"\n[mlflow]\ntracking_uri = "http://127.0.0.1:9"\n')
    done = {
        name: subprocess.run(
            [sys.executable, "-m", "evalstopd", *name.split(), "--config", str(path)],
            capture_output=True, text=True, timeout=60, check=False,
        )
        for name in ("run", "db check", "tick")
    }  # fmt: skip

    assert {each.returncode for each in done.values()} == {70}
    for each in done.values():
        assert "is not whole: trigger links_no_update missing" in each.stderr
        assert len(each.stderr.splitlines()) == 1
