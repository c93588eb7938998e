"""The daemon's log begins with what it is and ends with its end."""

import os
import signal
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
