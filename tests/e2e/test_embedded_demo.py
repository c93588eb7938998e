"""`make demo` as a user meets it: real MLflow, store, files and keeper, an emulated cluster; as root and without."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from demo.rig.places import new_reachable_directory
from mini_rlhf.seeds import HACKING_SEEDS

from tests.installed import need

EXAMPLES = Path(__file__).parents[2] / "examples"
STRANGER = 45678  # a uid without an account: there need not be one


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    directory = new_reachable_directory("evsdemo-")
    yield directory
    subprocess.run(["rm", "-rf", str(directory)], check=True)


def running_in(directory: Path) -> list[str]:
    """Return the command lines of processes that have to do with a directory."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace") if entry.name.isdecimal() else ""
        except OSError:
            continue
        if str(directory) in words:
            found.append(words)
    return found


@pytest.mark.mlflow
@pytest.mark.slow
@pytest.mark.parametrize("root", [True, False])
def test_the_over_optimising_runs_are_stopped_and_kept_and_nothing_is_left_running(place: Path, root: bool) -> None:
    need("mlflow", "DEMO TEST SKIPPED: mlflow is not installed")
    if root and os.getuid():
        pytest.skip("DEMO TEST SKIPPED: needs root")
    other = {"user": STRANGER, "group": STRANGER, "extra_groups": []} if os.getuid() == 0 and not root else {}
    if other:
        os.chown(place, STRANGER, STRANGER)
    paths = [str(EXAMPLES), *(path for path in sys.path if path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HOME": str(place)}

    done = subprocess.run(
        [sys.executable, "-m", "demo.embedded", "--directory", str(place / "demo"), "--json"],
        cwd=EXAMPLES, env=environment, capture_output=True, text=True, timeout=200, check=False, **other,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    stopped = [job for job in told["jobs"] if job["stopped_at"] is not None]
    assert told["as_promised"]
    assert len(stopped) == len(HACKING_SEEDS)
    assert {job["ended_as"] for job in stopped} == {"CANCELLED"}
    for job in stopped:
        kept = Path(job["checkpoint_kept"])
        assert (kept / "policy.safetensors").is_file()
        assert kept.stat().st_uid == (STRANGER if other else told_owner(told))
    assert "trouble" not in done.stderr
    assert audited(told, environment) == {"verify": 0, "replay": 0}
    assert running_in(place) == []


def audited(told: dict, environment: dict[str, str]) -> dict[str, int]:
    """Return the exit codes of the audit over the demo's store: the chain walked, the decisions folded again."""
    command = [sys.executable, "-m", "evalstopd", "audit"]
    config = ["--config", told["places"]["settings"]]
    asked = [[*command, what, *config] for what in ("verify", "replay")]
    done = [subprocess.run(each, env=environment, capture_output=True, timeout=60, check=False) for each in asked]
    return dict(zip(("verify", "replay"), (each.returncode for each in done), strict=True))


def told_owner(told: dict) -> int:
    """Return whose work folder it is."""
    return Path(told["places"]["checkpoints"]).stat().st_uid
