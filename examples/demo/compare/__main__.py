"""Compare: one workload on a real Slurm cluster, the daemon off and on, beside what the simulator predicts for it."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from demo.folder import fresh
from demo.rig import users
from demo.rig.cluster import Cluster
from demo.rig.errors import RigError
from demo.rig.mlflow_server import MlflowServer
from demo.rig.packages import ensure_packages
from demo.service import Service
from evalstopd.core.intent import Intent, State
from evalstopd.errors import Misconfigured
from evalstopd.keeper import keeper as keeper_module

from . import figures, picture
from .arm import ACCOUNT, Say, Stage, run_arm
from .figures import Repeat
from .plan import Plan, measured, predicted
from .trainer import METRIC

REASON = "a comparison on a cluster made for it"


@dataclass(frozen=True, slots=True)
class Asked:
    """The options: what to compare, how often, from which seed on, and where."""

    plan: Plan
    repeats: int
    first_seed: int
    directory: Path
    as_json: bool


def parse(argv: list[str] | None = None) -> Asked:
    """Read the options; an impossible one ends the program with a line that names it."""
    parser, plan = argparse.ArgumentParser(prog="demo.compare", description=__doc__), Plan()
    parser.add_argument("--directory", type=Path, required=True, help="folder for everything this makes; emptied")
    parser.add_argument("--jobs", type=_whole, default=plan.jobs)
    parser.add_argument("--repeats", type=_whole, default=3, help="seeds; each is run twice, off and on")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--hour-s", type=_seconds, default=plan.hour_s, help="real seconds for an hour of the workload")
    parser.add_argument("--load", type=_seconds, default=plan.load, help="offered load")
    parser.add_argument("--rule", default=plan.rule)
    parser.add_argument("--tick-s", type=_seconds, default=plan.tick_s, help="the daemon's tick, in real seconds")
    parser.add_argument("--nodes", type=_whole, default=plan.nodes, help="of eight GPUs each")
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    given = parser.parse_args(argv)
    made = Plan(given.jobs, given.nodes, 8, given.hour_s, given.load, plan.preset, given.rule, given.tick_s)
    return Asked(made, given.repeats, given.first_seed, given.directory, given.json)


def main() -> int:
    """Run the comparison; exit code 0 once the table is there, whatever it says."""
    asked, started_s = parse(), time.monotonic()

    def say(line: str) -> None:
        passed = int(time.monotonic() - started_s)
        sys.stderr.write(f"{passed // 60:02d}:{passed % 60:02d}  {line}\n")
        sys.stderr.flush()

    try:
        ensure_packages(say)
        users.ensure_users()
        repeats = play(asked, say)
    except (RigError, Misconfigured, ValueError) as error:
        sys.stderr.write(f"compare: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("compare: interrupted; what it started has ended\n")
        return 130
    tell(asked, repeats, time.monotonic() - started_s)
    return 0


def play(asked: Asked, say: Say) -> list[Repeat]:
    """Bring up cluster and MLflow server, run every repeat, end what was started."""
    plan = asked.plan
    examples = fresh(asked.directory)
    with (
        Cluster(asked.directory / "slurm", nodes=plan.nodes, gpus=plan.gpus_per_node, scheduler="builtin") as cluster,
        MlflowServer(sys.executable, asked.directory / "mlflow") as mlflow,
    ):
        cluster.add_account(ACCOUNT)
        for user in (users.ALICE, users.BOB):
            cluster.add_user(user, ACCOUNT)
        cluster.add_user(users.DAEMON, ACCOUNT, "Operator")
        stage = Stage(cluster, mlflow.uri, examples / "demo" / "compare" / "trainer.py")
        seeds = range(asked.first_seed, asked.first_seed + asked.repeats)
        return [repeat(stage, asked, seed, say) for seed in seeds]


def repeat(stage: Stage, asked: Asked, seed: int, say: Say) -> Repeat:
    """Run one seed's workload with the daemon off, then on."""
    plan = asked.plan
    jobs = plan.deal(seed)
    runs = predicted(plan, jobs)
    expected_s = runs["simulated off"].scores.makespan_s
    say(f"seed {seed}: {len(jobs)} jobs, two runs of about {expected_s:.0f} s")
    runs["real off"] = measured(plan, run_arm(stage, jobs, f"seed {seed} off", expected_s, say), {})
    with Service(
        asked.directory / f"evalstopd-{seed}", stage.cluster, sys.executable, Path(keeper_module.__file__),
        settings(plan, stage.tracking_uri),
    ) as service:  # fmt: skip
        service.start_daemon()
        ran = run_arm(stage, jobs, f"seed {seed} on", expected_s, say)
        intents = service.book.intents_of([watch.key for watch in service.book.recent(10_000)])
        say(f"seed {seed}: the daemon {ends(intents)}")
    runs["real on"] = measured(plan, ran, {each.key.job_id: each.evidence.trigger_step for each in intents})
    return Repeat(seed, runs)


def settings(plan: Plan, tracking_uri: str) -> dict[str, dict[str, object]]:
    """Return the daemon's settings: enforce at once, by the rule that is compared, as often as it says.

    The server is an open one, so that a job is only stopped where its owner asked for it, as these do.
    The prediction knows no caps, and an hour of caps is longer than the whole workload on its quick clock.
    """
    most = 100_000
    return {
        "rules": {"rung": "enforce", "rule": plan.rule, "metric": METRIC, "mode": "max"},
        "enforce": {"override": REASON, "notice_s": 0},
        "caps": {"stops": most, "stops_per_account": most, "gpu_share": 1.0, "breaker_decisions": most},
        "mlflow": {"tracking_uri": tracking_uri, "server": "open"},
        "daemon": {"tick_s": plan.tick_s},
    }


def ends(intents: Sequence[Intent]) -> str:
    """Say what became of the daemon's intents, by its own book."""
    counts = [(state, sum(intent.state is state for intent in intents)) for state in State]
    told = ", ".join(f"{count} {state.value}" for state, count in counts if count)
    return f"decided on {len(intents)} stops: {told}" if intents else "decided on no stop"


def tell(asked: Asked, repeats: list[Repeat], seconds: float) -> None:
    """Print the table or JSON, and leave both beside the picture."""
    found = figures.figures(asked.plan, repeats)
    file = asked.directory / "compare.png"
    picture.draw(found, file)
    data = {
        "settings": {**asdict(asked.plan), "repeats": asked.repeats, "first_seed": asked.first_seed},
        "seconds": round(seconds, 1),
        "figures": figures.as_data(found),
        "apart": figures.apart(found, repeats),
        "picture": str(file),
    }
    text = json.dumps(data, indent=2, allow_nan=False) + "\n"
    (asked.directory / "compare.json").write_text(text, encoding="utf-8")
    if asked.as_json:
        sys.stdout.write(text)
        return
    about = (
        f"{asked.repeats} repeats of {asked.plan.jobs} jobs, {asked.plan.options.words}; FIFO; rule {asked.plan.rule}"
    )
    lines = [
        about,
        "",
        figures.table(found),
        "",
        *figures.apart(found, repeats),
        "",
        f"picture {file}; {seconds:.0f} s in all",
    ]
    sys.stdout.write("\n".join(lines) + "\n")


def _whole(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0.01 <= value <= 1e6:
        raise argparse.ArgumentTypeError(f"must be a number from 0.01 up, not {text}")
    return value


if __name__ == "__main__":
    sys.exit(main())
