"""The rig itself: what the other end-to-end tests stand on does what they think it does."""

import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from demo.rig import processes, users
from demo.rig.cluster import Cluster
from demo.rig.errors import RigError, last_lines
from demo.rig.mlflow_server import MlflowServer
from demo.rig.packages import one_at_a_time, services_stay_down
from demo.rig.places import is_reachable
from demo.rig.ports import free_block, is_free

SLEEP = "#!/bin/sh\nsleep 300\n"


def eventually(condition: Callable[[], object], patience_s: float = 15) -> bool:
    return processes.wait_until(lambda: bool(condition()), patience_s, poll_s=0.1)


def state(cluster: Cluster, job: str) -> str:
    return cluster.squeue("-j", job, "-o", "%T").strip()


@pytest.mark.slurm
def test_jobs_of_two_users_run_on_gpus(cluster: Cluster) -> None:
    """A job runs as the user who submitted it, and its GPUs are in tres-alloc."""
    for user, gpus in ((users.ALICE, 3), (users.BOB, 2)):
        job = cluster.sbatch(user, SLEEP, f"--gres=gpu:{gpus}")

        assert eventually(lambda job=job: state(cluster, job) == "RUNNING")
        row = cluster.squeue("-j", job, "-O", "UserName:|,tres-alloc:|")
        assert row.startswith(f"{user}|")
        assert f"gres/gpu={gpus}" in row
        cluster.run("scancel", job)


@pytest.mark.slurm
def test_a_job_runs_in_its_users_own_folder(cluster: Cluster) -> None:
    """What a job writes is its owner's, and lands where it was submitted."""
    cluster.sbatch(users.ALICE, "#!/bin/sh\nid -un > who\n")

    written = cluster.work(users.ALICE) / "who"
    assert eventually(lambda: written.is_file() and written.read_text() == f"{users.ALICE}\n")
    assert written.owner() == users.ALICE


@pytest.mark.slurm
def test_only_owner_and_operator_may_cancel(cluster: Cluster) -> None:
    """Bob may not touch alice's job; the daemon's user may, without being root."""
    job = cluster.sbatch(users.ALICE, SLEEP, "--gres=gpu:1")
    assert eventually(lambda: state(cluster, job) == "RUNNING")

    assert cluster.as_user(users.BOB, ["scancel", job]).returncode != 0
    assert state(cluster, job) == "RUNNING"

    assert cluster.as_user(users.DAEMON, ["scancel", job]).returncode == 0
    assert eventually(lambda: "CANCELLED" in cluster.sacct("-j", job, "-X", "-o", "State"))


@pytest.mark.slurm
def test_adding_again_is_no_error_but_a_wrong_account_is(cluster: Cluster) -> None:
    """A directory that is used again knows its users; an account that nobody made is still refused."""
    cluster.add_account("ml")
    cluster.add_user(users.ALICE, "ml")

    with pytest.raises(RigError, match="sacctmgr"):
        cluster.add_user(users.ALICE, "nobodys")


@pytest.mark.slurm
def test_jobs_outlive_their_controller(cluster: Cluster) -> None:
    """With slurmctld away its clients fail; back again, the job is still there."""
    job = cluster.sbatch(users.ALICE, SLEEP, "--gres=gpu:1")
    assert eventually(lambda: state(cluster, job) == "RUNNING")

    cluster.stop_controller()
    assert cluster.as_user(users.ALICE, ["scontrol", "ping"]).returncode != 0

    cluster.start_controller()
    assert state(cluster, job) == "RUNNING"
    cluster.run("scancel", job)


@pytest.mark.slurm
def test_two_clusters_stop_without_a_trace(slurm_users: None, reachable_directory: Path) -> None:
    """Clusters side by side do not collide, and stop ends jobs and daemons even with the controller away."""
    first = Cluster(reachable_directory / "one", nodes=1, gpus=1, database=False)
    second = Cluster(reachable_directory / "two", nodes=1, gpus=1, database=False)
    with first, second:
        job = first.sbatch(users.BOB, "#!/bin/sh\necho $$ > pid\nsleep 301\n")
        pid_file = first.work(users.BOB) / "pid"
        assert eventually(lambda: pid_file.is_file() and pid_file.read_text())
        assert state(first, job) == "RUNNING"
        assert second.squeue() == ""
        first.stop_controller()

        first.stop()

        assert first.running_processes() == []
        assert not processes.is_running(int(pid_file.read_text()))
        assert second.run("scontrol", "ping")
    assert second.running_processes() == []


@pytest.mark.slurm
def test_a_new_owner_ends_what_a_crashed_one_left(slurm_users: None, reachable_directory: Path) -> None:
    """A second object on the same directory knows nothing but the files, and stops everything."""
    directory = reachable_directory / "crashed"
    crashed = Cluster(directory, nodes=1, gpus=1, database=False)
    crashed.start()
    left = crashed.running_processes()

    Cluster(directory, nodes=1, gpus=1, database=False).stop()

    assert len(left) >= 3, "munged, slurmctld and slurmd were up"
    assert not any(map(processes.is_running, left))


@pytest.mark.slurm
def test_a_closed_directory_is_refused_in_one_line(slurm_users: None, reachable_directory: Path) -> None:
    """Users could not reach a cluster below a private folder: say so before anything starts."""
    closed = reachable_directory / "closed"
    closed.mkdir(mode=0o700)
    cluster = Cluster(closed / "slurm", nodes=1, gpus=1, database=False)

    with pytest.raises(RigError, match="other users cannot reach") as error:
        cluster.start()

    assert "\n" not in str(error.value)
    assert cluster.running_processes() == []


@pytest.mark.mlflow
def test_mlflow_hangs_dies_and_comes_back(mlflow_server: MlflowServer) -> None:
    """An outage of either kind is real to clients, and the server is back on the same port after it."""
    health = f"{mlflow_server.uri}/health"

    def get(limit_s: float = 30.0) -> bytes:
        with urllib.request.urlopen(health, timeout=limit_s) as answer:
            return bytes(answer.read())

    assert get() == b"OK"
    mlflow_server.pause()
    with pytest.raises(TimeoutError):
        get(limit_s=1.0)
    mlflow_server.resume()
    assert get() == b"OK"
    try:
        mlflow_server.kill()
        with pytest.raises(urllib.error.URLError):
            get()
    finally:
        mlflow_server.start()
    assert get() == b"OK"


def test_only_marked_processes_are_ended(tmp_path: Path) -> None:
    """A pid file that names a stranger, as after a reboot, does not get the stranger killed."""
    with subprocess.Popen(["sleep", "30"]) as stranger:
        (tmp_path / "slurmctld.pid").write_text(f"{stranger.pid}\n")

        assert processes.from_file(tmp_path / "slurmctld.pid", tmp_path) is None
        assert processes.all_marked(tmp_path) == []
        stranger.kill()


def test_marked_processes_are_found_and_ended(tmp_path: Path) -> None:
    """A process that ignores TERM is killed after the patience."""
    script = ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done"]
    environment = {**os.environ, **processes.marked(tmp_path)}
    with subprocess.Popen(script, env=environment, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = processes.all_marked(tmp_path)
        processes.end(found, patience_s=0.2)

        assert child.pid in found
        assert child.wait(timeout=5) == -9


def test_the_machines_service_policy_is_put_back(tmp_path: Path) -> None:
    """Whatever policy there was, none included, is there again after an installation."""
    policy = tmp_path / "policy-rc.d"
    with services_stay_down(policy):
        assert policy.read_text().endswith("exit 101\n")
    assert not policy.exists()

    policy.write_text("#!/bin/sh\nexit 0\n")
    policy.chmod(0o750)
    with pytest.raises(RigError), services_stay_down(policy):
        raise RigError("apt-get failed")
    assert policy.read_text() == "#!/bin/sh\nexit 0\n"
    assert policy.stat().st_mode & 0o777 == 0o750


def test_rigs_that_start_together_install_one_after_the_other(tmp_path: Path) -> None:
    """The second waits until the first is through, and then goes on."""
    seen: list[str] = []

    def second() -> None:
        with one_at_a_time(tmp_path):
            seen.append("second")

    with ThreadPoolExecutor() as pool:
        with one_at_a_time(tmp_path):
            waiting = pool.submit(second)
            with pytest.raises(TimeoutError):
                waiting.result(timeout=0.3)
            seen.append("first")
        waiting.result(timeout=10)
    assert seen == ["first", "second"]


def test_a_place_below_a_private_folder_is_not_reachable(tmp_path: Path) -> None:
    """One closed folder anywhere above is enough."""
    (tmp_path / "closed/open").mkdir(parents=True)
    (tmp_path / "closed").chmod(0o700)

    assert is_reachable(Path("/tmp"))
    assert not is_reachable(tmp_path / "closed/open")


def test_a_block_of_ports_is_free() -> None:
    """Each port of the block can be bound, and lies below the range of outgoing connections."""
    first = free_block(10)

    assert all(is_free(port) for port in range(first, first + 10))
    assert first + 10 < 32_768


@pytest.mark.slurm
def test_no_databases_start_takes_anothers_temporary_tables(cluster: Cluster) -> None:
    """A MariaDB that starts empties its folder for temporary tables: each cluster's has its own."""
    socket = f"{cluster.directory}/db/socket"

    answer = cluster.run("mariadb", "--no-defaults", "-S", socket, "-u", "root", "-N", "-e", "select @@tmpdir")

    assert Path(answer.strip()).is_relative_to(cluster.directory)


def test_what_went_wrong_is_said_before_a_page_of_advice(tmp_path: Path) -> None:
    """A message carries the lines of a log that name an error, and its end where none does."""
    log = tmp_path / "log"
    advice = [f"advice {number}" for number in range(20)]

    log.write_text("\n".join(["ERROR: 1051  Unknown table", *advice]))
    assert last_lines(log) == "ERROR: 1051  Unknown table"

    log.write_text("\n".join(advice))
    assert last_lines(log).endswith("advice 18 | advice 19")
