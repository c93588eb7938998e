"""Does a real cluster's mean JCT move as the simulator says: python -m bench.orders --directory DIR (Debian, root).

One time-scaled workload on real Slurm by FIFO, then by SJF-Est and by SRTF-Est through the daemon, which moves jobs by
Nice; beside it what the simulator says of each. Real runs are not preempted. Prints JSON with the machine named; the
exit code tells whether every change has the sign that was predicted.
"""

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

from demo.compare.arm import ACCOUNT, Stage, run_arm
from demo.compare.plan import Plan, measured
from demo.rig import users
from demo.rig.cluster import Cluster
from demo.rig.packages import ensure_packages
from demo.service import Service
from evalstopd_sim.drive import Scheduler, drive
from evalstopd_sim.score import scores
from evalstopd_sim.truth import TrueJob

from evalstopd.core.policies import policy
from evalstopd.keeper import keeper as keeper_module

BASE, POLICIES = "fifo", ("sjf-est", "srtf-est")
# Nobody listens there: no job names a run.
NO_MLFLOW = "http://127.0.0.1:9"


def settings(spec: str) -> dict[str, dict[str, object]]:
    """Return the daemon's settings: observe only, and order by the policy as often as the quick clock asks for."""
    return {
        "rules": {"rung": "observe", "metric": "eval/score", "mode": "max"},
        "mlflow": {"tracking_uri": NO_MLFLOW},
        "slurm": {"time_limit_s": 20.0},
        "daemon": {"tick_s": 0.3},
        "priorities": {"policy": spec, "min_interval_s": 0.2, "max_changes": 200},
    }


def simulated(plan: Plan, jobs: tuple[TrueJob, ...]) -> dict[str, float | None]:
    """Return the mean JCT in seconds by each policy."""
    return {spec: scores(drive(jobs, Scheduler(policy(spec)), plan.options)).jct_mean_s for spec in (BASE, *POLICIES)}


def real(
    stage: Stage, plan: Plan, jobs: tuple[TrueJob, ...], spec: str, expected_s: float, folder: Path
) -> float | None:
    """Run the workload with a daemon that orders by a policy; return the mean JCT in seconds."""
    keeper = Path(keeper_module.__file__)
    with Service(folder / f"evalstopd-{spec}", stage.cluster, sys.executable, keeper, settings(spec)) as service:
        service.start_daemon()
        ran = run_arm(stage, jobs, spec, expected_s, lambda line: print(line, file=sys.stderr))
    return measured(plan, ran, {}).scores.jct_mean_s


def change(figures: dict[str, float | None], spec: str) -> float:
    """Return a policy's change of the mean JCT against the base, in per cent."""
    return 100 * ((figures[spec] or 0.0) / (figures[BASE] or 1.0) - 1)


def main() -> int:
    """Run each policy once, print the JSON; return 1 where a change has the other sign than was predicted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=48)
    parser.add_argument("--load", type=float, default=1.5)
    parser.add_argument("--hour-s", type=float, default=2.5)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    ensure_packages(lambda line: sys.stderr.write(f"{line}\n"))
    users.ensure_users()
    plan = Plan(jobs=asked.jobs, hour_s=asked.hour_s, load=asked.load)
    jobs = plan.deal(asked.seed)
    expected_s = scores(drive(jobs, Scheduler(policy(BASE)), plan.options)).makespan_s
    said, began_s = simulated(plan, jobs), time.monotonic()
    found: dict[str, float | None] = {}
    asked.directory.mkdir(parents=True, exist_ok=True)
    with Cluster(asked.directory / "slurm", scheduler="builtin") as cluster:
        cluster.add_account(ACCOUNT)
        for user in (users.ALICE, users.BOB):
            cluster.add_user(user, ACCOUNT)
        cluster.add_user(users.DAEMON, ACCOUNT, "Operator")
        stage = Stage(cluster, "", Path("/"), limits=True)
        for spec in (BASE, *POLICIES):
            found[spec] = real(stage, plan, jobs, spec, expected_s, asked.directory)
    changes = {spec: {"simulated": change(said, spec), "real": change(found, spec)} for spec in POLICIES}
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    took_s = round(time.monotonic() - began_s)
    print(json.dumps(
        {"machine": machine, "jobs": asked.jobs, "load": asked.load, "hour_s": asked.hour_s, "seed": asked.seed,
         "seconds": took_s, "jct_mean_s": {"simulated": said, "real": found}, "change_percent": changes}, indent=2,
    ))  # fmt: skip
    return 0 if all(each["simulated"] * each["real"] > 0 for each in changes.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
