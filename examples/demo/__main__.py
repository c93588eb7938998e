"""Run the demo: bring up real parts below one directory, play the scene, print the table, end what was started."""

import argparse
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from evalstopd.keeper import keeper as keeper_module

from . import scene, show
from .folder import fresh
from .rig import users
from .rig.cluster import Cluster
from .rig.errors import RigError
from .rig.mlflow_server import MlflowServer
from .rig.packages import ensure_packages
from .service import Book, Service

LIMIT_S = 400.0
REASON = "the demo: seeds chosen, jobs made for it"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, required=True, help="folder for everything the demo makes; emptied")
    parser.add_argument("--json", action="store_true", help="print the table as JSON on stdout")
    parser.add_argument("--replay", action="store_true", help="play recorded curves even where torch is there")
    return parser.parse_args()


def main() -> int:
    """Play the demo; exit code 0 only if exactly the over-optimising jobs were stopped and their best kept."""
    options = parse()
    try:
        return play(options.directory, as_json=options.json, replay=options.replay or find_spec("torch") is None)
    except RigError as error:
        sys.stderr.write(f"demo: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("demo: interrupted; what it started has ended\n")
        return 130


def play(directory: Path, *, as_json: bool, replay: bool) -> int:
    started_s = time.time()
    ensure_packages(lambda line: sys.stderr.write(f"{line}\n"))
    users.ensure_users()
    examples = fresh(directory)
    with Cluster(directory / "slurm") as cluster, MlflowServer(sys.executable, directory / "mlflow") as mlflow:
        cluster.add_account("ml")
        for user in (users.ALICE, users.BOB):
            cluster.add_user(user, "ml")
        cluster.add_user(users.DAEMON, "ml", "Operator")
        with Service(
            directory / "evalstopd", cluster, sys.executable, Path(keeper_module.__file__), settings(mlflow.uri)
        ) as service:
            service.start_daemon()
            parts = scene.submit(cluster, sys.executable, examples, mlflow.uri, replay=replay)
            store = service.book
            screen = show.Screen(store, parts, started_s, set())
            introduce(screen, parts, replay=replay)
            watch(screen, cluster, store)
            service.stop_daemon()
            found = show.rows(store, parts, starts(cluster, parts))
    places = {
        "store": service.database,
        "checkpoints": directory / "slurm" / "work",
        "logs": service.log,
        "settings": service.config,
    }
    show.report(found, places, as_json=as_json, seconds=time.time() - started_s)
    return 0 if show.as_promised(found) else 1


def settings(tracking_uri: str) -> dict[str, dict[str, object]]:
    """Return the daemon's settings: enforce at once, the owners having asked for it on an open server."""
    return {
        "rules": {"rung": "enforce", "rule": scene.RULE, "metric": scene.METRIC, "mode": "max"},
        "enforce": {"override": REASON, "notice_s": 0},
        "caps": {"stops_per_account": 20, "gpu_share": 1.0},
        "mlflow": {"tracking_uri": tracking_uri, "server": "open"},
        "daemon": {"tick_s": 0.5},
    }


def introduce(screen: show.Screen, parts: list[scene.Part], *, replay: bool) -> None:
    """Say what is to be seen, and what was chosen for it."""
    now_s = time.time()
    for part in parts:
        screen.say(f"job {part.job:>3} of {part.user}: {part.kind}", now_s)
    played = "recorded curves of such runs, replayed: there is no torch here" if replay else "PPO on the CPU"
    for line in (
        f"real miniature RLHF ({played}), paced to about 1.5 s an eval; seeds chosen (examples/mini_rlhf/README.md)",
        (
            f"rule {scene.RULE}, the default: a fall must persist and exceed the run's noise; two declines in a row"
            " of whatever size would stop nearly all of these runs, healthy ones too"
        ),
        "an open MLflow server: the daemon may stop where the owners wrote evalstop=enforce, and evalstop_output=",
    ):
        screen.say(line, now_s)


def watch(screen: show.Screen, cluster: Cluster, store: Book) -> None:
    """Show the run until every training job is over and the book says whose GPUs went where; then end the rest."""
    end_s, shown_s = time.time() + LIMIT_S, 0.0
    while time.time() < end_s and not show.finished(screen, store):
        now_s = time.time()
        screen.news(now_s)
        if now_s - shown_s > 10:
            screen.curves(now_s)
            shown_s = now_s
        time.sleep(0.25)
    screen.news(time.time())
    scene.over(cluster).touch()


def starts(cluster: Cluster, parts: list[scene.Part]) -> dict[str, float]:
    """Return when each job that waited started."""
    times = {part.job: scene.started(cluster, part) for part in parts if not part.trains}
    return {job: at for job, at in times.items() if at is not None}


if __name__ == "__main__":
    sys.exit(main())
