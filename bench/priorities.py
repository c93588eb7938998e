"""What the order of waiting jobs costs on a real cluster: python -m bench.priorities --directory DIR (Debian, root).

500 tasks of an array run and 5,000 jobs wait; then passes of the loop, with SJF-Est by Nice. Prints JSON with the
machine named; the exit code tells whether a pass kept to its limits.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from demo.rig import users
from demo.rig.cluster import Cluster
from demo.rig.packages import ensure_packages
from evalstopd_sim.emulated.others import EmulatedKeeper, EmulatedPeople, NoStrangers, NoSwitch
from evalstopd_sim.emulated.tracker import EmulatedTracker

from evalstopd.adapters.slurm.cluster import SlurmCluster
from evalstopd.adapters.slurm.run import Answer, ProcessRunner
from evalstopd.adapters.system import SystemClock
from evalstopd.core.lineup import PriorityRules
from evalstopd.core.policies import policy
from evalstopd.core.rules import Rules
from evalstopd.loop import Loop, Stance
from evalstopd.ports import Ports
from evalstopd.store.memory import MemoryStore

LIMITS = {"tick_s": 2.0, "calls": 3}
NODES = 2
# One shell submits them all: a process for each and nothing between.
SUBMIT = (
    "seq {count} | xargs -P {workers} -I @ sh -c "
    '\'printf "#!/bin/sh\\nsleep 9999\\n" | sbatch --parsable --gpus=1 --output=/dev/null --chdir=/ '
    "--time=$((5000 - @ + 10)) >/dev/null'"
)


@dataclass(frozen=True)
class Figures:
    """Seconds are medians over passes; calls are the most of one pass, with and without those that change the order.

    `processor_s` is what a pass and its commands took of the processors, whatever else the machine does.
    """

    pending: int
    running: int
    machine: str
    passes: int
    squeue_s: float
    tick_s: float
    tick_worst_s: float
    processor_s: float
    moved: int
    ordering_s: float
    calls: int
    changing_calls: int

    def kept(self) -> bool:
        """Tell whether every limit was kept."""
        return all(getattr(self, name) <= limit for name, limit in LIMITS.items())


class Counted:
    """Runs Slurm's commands and counts them by name."""

    def __init__(self, run: ProcessRunner) -> None:
        self._run = run
        self.seen: Counter[str] = Counter()

    def __call__(self, argv: Sequence[str], env: Mapping[str, str], /, feed: str = "") -> Answer:
        """Run, and count."""
        self.seen[argv[0]] += 1
        return self._run(argv, env, feed=feed)


def without_hooks(cluster: Cluster) -> None:
    """Leave out what runs beside each job, and be patient: hundreds start at once on one machine."""
    conf = Path(cluster.env["SLURM_CONF"])
    hooks = ("Prolog", "Epilog", "TaskProlog", "PrologFlags")
    kept = [line for line in conf.read_text().splitlines() if line.partition("=")[0] not in hooks]
    cluster.stop_controller()
    conf.write_text("\n".join([*kept, "MessageTimeout=100", "TCPTimeout=30", ""]))
    cluster.start_controller()
    cluster.run("scontrol", "reconfigure")


def fill(cluster: Cluster, pending: int, running: int, workers: int) -> None:
    """Submit the array and wait until all of it runs, then the jobs, the shortest last."""
    script = "#!/bin/sh\nexec sleep 9999\n"
    options = ("--gpus=1", "--output=/dev/null", "--chdir=/")
    cluster.sbatch(users.ALICE, script, *options, f"--array=0-{running - 1}")
    while len(cluster.squeue("-r", "-t", "RUNNING", "-o", "%i").split()) < running:
        time.sleep(1)
    command = SUBMIT.format(count=pending, workers=workers)
    done = cluster.as_user(users.BOB, ["sh", "-c", command], cwd=Path("/"), timeout_s=3600)
    if done.returncode:
        raise SystemExit(done.stderr[-500:])


def processor_s() -> float:
    """Return the processor time of this process and of the commands it has waited for."""
    return sum(os.times()[:4])


def passes(cluster: Cluster, count: int, pending: int, running: int) -> Figures:
    """Make passes, each in order's own time, and take the figures."""
    run = Counted(ProcessRunner(conf=cluster.env["SLURM_CONF"], timeout_s=60))
    slurm, tracker, store = SlurmCluster(run), EmulatedTracker(lambda _: None), MemoryStore()
    strangers = NoStrangers()
    ports = Ports(
        SystemClock(), slurm, tracker, tracker, EmulatedKeeper(), store, EmulatedPeople(), NoSwitch(), strangers,
        strangers,
    )  # fmt: skip
    loop = Loop(ports, Stance(Rules(), priorities=PriorityRules(policy("sjf-est"), most=50, interval_s=0.0)))
    loop.tick()
    taken: list[tuple[float, int, int, int]] = []
    used: list[float] = []
    for _ in range(count):
        run.seen.clear()
        began_s, used_s = time.perf_counter(), processor_s()
        report = loop.tick()
        used.append(processor_s() - used_s)
        changing = run.seen["scontrol"]
        taken.append((time.perf_counter() - began_s, report.counts["moved"], run.seen.total() - changing, changing))
    began_s = time.perf_counter()
    slurm.queue()
    squeue_s = time.perf_counter() - began_s
    ticks = [each[0] for each in taken]
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    return Figures(
        pending, running, machine, count, squeue_s, statistics.median(ticks), max(ticks), statistics.median(used),
        sum(each[1] for each in taken), statistics.median(ticks) - squeue_s,
        max(each[2] for each in taken), max(each[3] for each in taken),
    )  # fmt: skip


def main() -> int:
    """Start the cluster, fill it, measure, print the JSON; return 1 where a limit was passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--pending", type=int, default=5000)
    parser.add_argument("--running", type=int, default=500)
    parser.add_argument("--passes", type=int, default=9)
    parser.add_argument("--workers", type=int, default=6)
    asked = parser.parse_args()
    ensure_packages(lambda line: sys.stderr.write(f"{line}\n"))
    users.ensure_users()
    gpus = asked.running // NODES
    with Cluster(asked.directory, nodes=NODES, gpus=gpus, cpus=gpus + 6, database=False) as cluster:
        without_hooks(cluster)
        fill(cluster, asked.pending, asked.running, asked.workers)
        figures = passes(cluster, asked.passes, asked.pending, asked.running)
    print(json.dumps(asdict(figures) | {"limits": LIMITS}, indent=2))
    return 0 if figures.kept() else 1


if __name__ == "__main__":
    sys.exit(main())
