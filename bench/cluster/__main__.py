"""Bring up a real cluster of four nodes with 500 GPUs each and more, fill it, and measure. Needs root and Slurm.

Prints the figures and writes them as JSON; exit code 1 where one is beyond its limit.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from demo.compare import trainer
from demo.rig import users
from demo.rig.cluster import Cluster
from demo.rig.mlflow_server import MlflowServer
from demo.rig.places import new_reachable_directory
from demo.service import Service

from bench.cluster import stops
from bench.cluster.fill import copies
from bench.cluster.limits import LIMITS, tell
from bench.mlflow import METRIC, Site
from evalstopd.keeper import keeper
from evalstopd.store.migrate import upgrade

ACCOUNT = "ml"
NODES = 4
WAVE = 100
KILL_WAIT_S = 3
TICK_S = 5.0
# Of jobs that log an eval each 20 minutes.
AGE_S, DUE_WITHIN_S = 3_600.0, 900.0
PATIENCE_S = 900.0
COMMAND_S = 1_800.0
TASK = "#!/bin/sh\ntouch started/$SLURM_ARRAY_JOB_ID.$SLURM_ARRAY_TASK_ID\nexec sleep 7200\n"


def say(text: str) -> None:
    """Tell how far it is."""
    print(f"-- {text}", file=sys.stderr, flush=True)


def start_tasks(cluster: Cluster, run_ids: list[str]) -> float:
    """Start an array whose tasks name these runs; return the seconds until all of them really ran."""
    folder = cluster.work(users.ALICE) / "started"
    folder.mkdir()
    shutil.chown(folder, users.ALICE)
    began_s, lines = time.monotonic(), []
    # In arrays of 100: a node that is told to start a thousand tasks at once does not answer in time, and loses some.
    for start in range(0, len(run_ids), WAVE):
        part = run_ids[start : start + WAVE]
        array = cluster.sbatch(
            users.ALICE, TASK, "--gres=gpu:1", f"--array=0-{len(part) - 1}", "--output=/dev/null", "--mem=0"
        )
        lines += [f"update JobId={array}_{task} Comment=mlflow_run={run_id}" for task, run_id in enumerate(part)]
        while (running := len(list(folder.iterdir()))) < start + len(part):
            if time.monotonic() > began_s + PATIENCE_S:
                states = Counter(cluster.squeue("-r", "-o", "%T %r").splitlines())
                raise SystemExit(f"only {running} tasks run after {PATIENCE_S:g} s: {states}")
            time.sleep(0.2)
    took_s = time.monotonic() - began_s
    subprocess.run(
        ["scontrol"], env=cluster.env, input="\n".join(lines) + "\n", text=True, check=True, timeout=COMMAND_S,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return took_s


def read_passes(folder: Path, cluster: Cluster, uri: str, jobs: int) -> dict[str, object]:
    """Measure passes in a process of their own."""
    url, config, figures = f"sqlite:///{folder / 'passes.db'}", folder / "passes.toml", folder / "passes.json"
    upgrade(url)
    sections = {
        "store": f'url = "{url}"',
        "slurm": f'conf = "{cluster.env["SLURM_CONF"]}"\ntime_limit_s = 30.0',
        "mlflow": f'tracking_uri = "{uri}"\ntime_limit_s = 60.0',
        "rules": f'metric = "{METRIC}"\nmode = "max"',
    }
    config.write_text("".join(f"[{name}]\n{text}\n" for name, text in sections.items()))
    command = [sys.executable, "-m", "bench.cluster.reading", str(config), str(jobs), str(figures)]
    subprocess.run(command, check=True, timeout=COMMAND_S, stdout=sys.stderr)
    found: dict[str, object] = json.loads(figures.read_text())
    return found


def stop_some(folder: Path, cluster: Cluster, uri: str, jobs: int, count: int) -> dict[str, object]:
    """Run the daemon as a site does, let it read all runs, stop some jobs, and look at its memory."""
    copied = Path(shutil.copy(trainer.__file__, folder / "trainer.py"))
    copied.chmod(0o755)
    settings = stops.settings(uri, TICK_S)
    with Service(folder / "service", cluster, sys.executable, Path(keeper.__file__), settings) as service:
        service.start_daemon()
        stage = stops.Stage(cluster, uri, copied, service, TICK_S, KILL_WAIT_S)
        say(f"the daemon has read all runs after {stops.warm_up(stage, jobs):.0f} s")
        _, read_mb = stops.memory_mb(service.daemon_pid)
        stops.let_them_age(stage, AGE_S, DUE_WITHIN_S)
        found = stops.measure(stage, count)
        now_mb, most_mb = stops.memory_mb(service.daemon_pid)
        # The daemon that read all runs is another than the one that stopped some: the larger of the two counts.
        return {**found, "memory_now_mb": now_mb, "memory_mb": max(read_mb, most_mb)}


def main() -> int:
    """Measure; return 1 where a limit was passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2_000, help="array tasks that really run")
    parser.add_argument("--stops", type=int, default=32)
    parser.add_argument("--points", type=int, default=50)
    parser.add_argument("--params", type=int, default=150)
    parser.add_argument("--json", type=Path, default=Path("bench-cluster.json"))
    asked = parser.parse_args()
    folder = new_reachable_directory("evsbench-")
    per_node = -(-(asked.jobs + asked.stops) // NODES)
    users.ensure_users()
    try:
        with (
            Cluster(
                folder / "slurm",
                nodes=NODES,
                gpus=per_node,
                cpus=per_node,
                kill_wait_s=KILL_WAIT_S,
                name="big",
                crowded=True,
            ) as cluster,
            MlflowServer(sys.executable, folder / "mlflow") as server,
        ):
            cluster.add_account(ACCOUNT)
            for user, level in ((users.ALICE, None), (users.BOB, None), (users.DAEMON, "Operator")):
                cluster.add_user(user, ACCOUNT, level)
            say(f"filling the tracker with {asked.jobs} runs")
            first = Site(server.uri).add(asked.points, asked.params)
            run_ids = [first, *copies(server.database, first, asked.jobs - 1)]
            started_s = start_tasks(cluster, run_ids)
            say(f"{asked.jobs} tasks run after {started_s:.0f} s")
            figures: dict[str, object] = {
                "jobs": asked.jobs, "points": asked.points, "params": asked.params, "all_running_after_s": started_s,
                **read_passes(folder, cluster, server.uri, asked.jobs),
                **stop_some(folder, cluster, server.uri, asked.jobs, asked.stops),
            }  # fmt: skip
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return tell(figures, LIMITS, asked.json)


if __name__ == "__main__":
    sys.exit(main())
