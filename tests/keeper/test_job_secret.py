"""The hooks of slurmd: what the Prolog issues is what the daemon expects, and the owner's alone."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from evalstopd.core.mac import SiteKey, job_secret, seal
from evalstopd.core.model import Job, Phase
from evalstopd.keeper import job_secret as hook

HOOKS = Path(__file__).parents[2] / "systemd" / "slurm"
KEY = b"ab" * 32
JOB = Job("evs", "12_3", 15, os.getuid(), "me", Phase.RUNNING, "RUNNING", 90, 100, 2, 1)
ENVIRONMENT = {
    "SLURM_CLUSTER_NAME": "EVS",
    "SLURM_JOB_ID": "15",
    "SLURM_JOB_UID": str(os.getuid()),
    "SLURM_JOB_RESTART_COUNT": "2",
}


@pytest.fixture
def lib(tmp_path: Path) -> Path:
    """The hooks as they are installed, and the site key."""
    for file in (*HOOKS.glob("*.sh"), Path(hook.__file__)):
        (tmp_path / file.name).write_bytes(file.read_bytes())
        (tmp_path / file.name).chmod(0o755)
    (tmp_path / "key").write_bytes(KEY + b"\n")
    (tmp_path / "key").chmod(0o400)
    return tmp_path


def run(lib: Path, name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a hook with nothing but what slurmd gives it: no PATH either."""
    return subprocess.run(
        [str(lib / f"{name}.sh"), *arguments], env=ENVIRONMENT | environment, capture_output=True, text=True,
        timeout=30, check=False,
    )  # fmt: skip


def prolog(lib: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(lib, "prolog", str(lib / "key"), str(lib / "jobs"), **environment)


def test_the_daemon_takes_the_seal_of_what_the_prolog_issued(tmp_path: Path) -> None:
    hook.issue(KEY, str(tmp_path / "jobs"), ENVIRONMENT, 105)
    secret = (tmp_path / "jobs" / "15" / "secret").read_text().strip()

    assert secret == job_secret(KEY, JOB, "105")
    assert SiteKey(KEY).sealed(JOB, "run", seal(secret, "run"))


def test_from_prolog_to_the_tasks_environment_and_away_with_the_epilog(lib: Path) -> None:
    assert prolog(lib).returncode == 0
    file = lib / "jobs" / "15" / "secret"
    status = file.stat()
    exported = run(lib, "taskprolog", str(lib / "jobs"), SLURM_CLUSTER_NAME="evs").stdout
    again = prolog(lib)
    ended = run(lib, "epilog", str(lib / "jobs"))

    assert (stat.S_IMODE(status.st_mode), status.st_uid) == (0o400, os.getuid())
    context, secret = exported.splitlines()
    assert context == 'export MLFLOW_RUN_CONTEXT={"slurm.job_id":"15","slurm.cluster":"evs"}'
    assert SiteKey(KEY).sealed(JOB, "r", seal(secret.removeprefix("export EVALSTOP_JOB_SECRET="), "r"))
    assert (again.returncode, again.stderr) == (0, "")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert list((lib / "jobs").iterdir()) == []


@pytest.mark.parametrize(
    "bad",
    [
        {"SLURM_JOB_ID": "../../etc/cron.d/x"},
        {"SLURM_JOB_ID": "1\n2"},
        {"SLURM_JOB_ID": ""},
        {"SLURM_JOB_UID": "-1"},
        {"SLURM_JOB_UID": "0x0"},
        {"SLURM_JOB_RESTART_COUNT": "1|2"},
        {"SLURM_CLUSTER_NAME": "a|b"},
        {"SLURM_JOB_ID": "٣"},
    ],
)
def test_a_hostile_environment_gets_no_secret_and_drains_no_node(lib: Path, bad: dict[str, str]) -> None:
    done = prolog(lib, **bad)

    assert done.returncode == 0
    assert "no job secret" in done.stderr
    assert not list(lib.glob("jobs/*"))
    for name in ("taskprolog", "epilog"):
        assert run(lib, name, str(lib / "jobs"), **bad).returncode == 0


@pytest.mark.parametrize("trouble", ["readable", "short", "missing"])
def test_a_bad_key_gives_no_secret_and_drains_no_node(lib: Path, trouble: str) -> None:
    (lib / "key").chmod(0o440 if trouble == "readable" else 0o600)
    if trouble == "short":
        (lib / "key").write_bytes(b"short")
    if trouble == "missing":
        (lib / "key").unlink()
    done = prolog(lib)

    assert done.returncode == 0
    assert "no job secret" in done.stderr
    assert KEY.decode() not in done.stderr


def test_a_folder_that_others_can_write_is_not_used(lib: Path) -> None:
    (lib / "jobs").mkdir()
    (lib / "jobs").chmod(0o777)
    assert "only its owner" in prolog(lib).stderr

    (lib / "jobs").chmod(0o755)
    (lib / "elsewhere").mkdir()
    (lib / "jobs" / "15").symlink_to(lib / "elsewhere")
    assert "only its owner" in prolog(lib).stderr
    assert list((lib / "elsewhere").iterdir()) == []


def test_the_taskprolog_exports_nothing_but_the_jobs_tags_and_a_secret(lib: Path) -> None:
    """Whatever stands in the file, no further variable gets into the task's environment."""
    folder = lib / "jobs" / "15"
    folder.mkdir(parents=True)
    for text in ("x; rm -rf /\n", "1.ab\nexport LD_PRELOAD=x\n", "$(id)\n", ""):
        (folder / "secret").write_text(text)
        exported = run(lib, "taskprolog", str(lib / "jobs"), SLURM_CLUSTER_NAME="evs")
        assert exported.returncode == 0
        context, _, rest = exported.stdout.partition("\n")
        assert context.startswith("export MLFLOW_RUN_CONTEXT={")
        assert rest in ("", "export EVALSTOP_JOB_SECRET=1.ab\n")
