"""Run the embedded demo: a real MLflow server, an emulated cluster on a sped-up clock, the loop in enforce mode."""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evalstopd_sim.emulated.others import EmulatedPeople

from demo import scene, show
from demo.folder import fresh
from demo.rig.errors import RigError
from demo.rig.mlflow_server import MlflowServer
from demo.rig.places import is_reachable
from demo.service import section
from evalstopd import __version__
from evalstopd.loop import Loop, Stance
from evalstopd.ports import Ports
from evalstopd.settings import Settings, load_settings, make_rules
from evalstopd.store.migrate import upgrade
from evalstopd.wiring.host import make_kill_switch
from evalstopd.wiring.keeper import make_keeper
from evalstopd.wiring.store import make_store
from evalstopd.wiring.tracker import make_gate, make_metrics

from . import parts
from .stage import EVAL_S, STEP_S, Stage, cluster_of

REASON = "the demo: seeds chosen, jobs made for it"
PACE_S = 0.3  # of real time, a pass at least, so that people can follow
MOST_PASSES = 120


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, required=True, help="folder for everything the demo makes; emptied")
    parser.add_argument("--json", action="store_true", help="print the table as JSON on stdout")
    return parser.parse_args()


def main() -> int:
    """Play the demo; exit code 0 only if exactly the over-optimising jobs were stopped and their best kept."""
    options = parse()
    try:
        return play(options.directory.resolve(), as_json=options.json)
    except RigError as error:
        sys.stderr.write(f"demo: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("demo: interrupted; what it started has ended\n")
        return 130


def play(directory: Path, *, as_json: bool) -> int:
    started_s = time.time()
    who = parts.owner()
    examples = fresh(directory)
    if os.getuid() == 0 and not is_reachable(directory):
        raise RigError(f"{directory} lies where {who.name}, whose jobs are played, cannot go: make BASE=DIR")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(examples), *filter(None, sys.path)])}
    with (
        MlflowServer(sys.executable, directory / "mlflow") as mlflow,
        parts.keeper(directory, environment) as keeper,
        parts.trainer(directory, who, mlflow.uri, environment) as trainer,
    ):
        book = Daemon.prepare(directory, mlflow.uri, keeper)
        # Virtual time runs behind the real one: files and evals are never older than the jobs they belong to.
        begins_s = float(int(started_s - MOST_PASSES * STEP_S))
        stage = Stage(cluster_of(who, str(directory / "work"), begins_s), trainer)
        screen = show.Screen(book.store, stage.parts(who), started_s, set())
        introduce(screen)
        watch(book.loop(stage), stage, screen, begins_s)
        found = show.rows(book.store, screen.parts, {})
    places = {"store": book.database, "checkpoints": directory / "work", "logs": directory, "settings": book.config}
    show.report(found, places, as_json=as_json, seconds=time.time() - started_s)
    return 0 if show.as_promised(found) else 1


@dataclass(frozen=True, slots=True)
class Daemon:
    """The daemon's settings and store, as a site has them; `loop` puts its loop over the emulated cluster."""

    config: Path
    database: Path
    settings: Settings

    @classmethod
    def prepare(cls, directory: Path, uri: str, keeper: Path) -> "Daemon":
        """Write the settings and make the store."""
        config, database = directory / "evalstopd.toml", directory / "evalstopd.db"
        sections: dict[str, dict[str, object]] = {
            "rules": {
                "rung": "enforce",
                "rule": scene.RULE,
                "metric": scene.METRIC,
                "mode": "max",
                "stale_s": 10 * EVAL_S,
            },
            "enforce": {"override": REASON, "notice_s": 0},
            "caps": {"stops_per_account": 20, "gpu_share": 1.0},
            "mlflow": {"tracking_uri": uri, "server": "open"},
            "keeper": {"socket": str(keeper)},
            "store": {"url": f"sqlite:///{database}"},
            "daemon": {"tick_s": STEP_S, "kill_switch": str(directory / "STOP")},
        }
        config.write_text("\n".join(section(name, values) for name, values in sections.items()), encoding="utf-8")
        upgrade(f"sqlite:///{database}")
        return cls(config, database, load_settings(config, {}))

    @property
    def store(self) -> show.Book:
        """Return the store."""
        return make_store(self.settings)

    def loop(self, stage: Stage) -> Loop:
        """Return the loop: all of it real but for the cluster, its clock, and the people who are told."""
        metrics = make_metrics(self.settings)
        ports = Ports(
            clock=Clock(stage),
            cluster=stage.cluster,
            metrics=metrics,
            runs=metrics,
            keeper=make_keeper(self.settings),
            store=make_store(self.settings),
            notifier=EmulatedPeople(),
            kill_switch=make_kill_switch(self.settings),
            finder=metrics,
            gate=make_gate(self.settings),
        )
        return Loop(ports, Stance(make_rules(self.settings), self.settings.digest, __version__))


@dataclass(frozen=True, slots=True)
class Clock:
    """The emulated cluster's time is the daemon's."""

    stage: Stage

    def now_s(self) -> float:
        """Return the virtual time in seconds since the epoch."""
        return self.stage.cluster.world.now_s()


def introduce(screen: show.Screen) -> None:
    """Say what is to be seen, and what of it is real."""
    now_s = time.time()
    for part in screen.parts:
        screen.say(f"job {part.job:>3} of {part.user}: {part.kind}", now_s)
    for line in (
        f"emulated: the cluster, {EVAL_S / 60:g} minutes from one eval to the next in {2 * PACE_S:g} s; nothing trains",
        "real: MLflow server, evals of recorded runs logged to it, checkpoint files, keeper, store, the daemon's loop",
        f"rule {scene.RULE}, the default; an open MLflow server: the owners wrote evalstop=enforce, evalstop_output=",
        "seeds chosen (examples/mini_rlhf/README.md); the same on a real Slurm cluster: make demo-slurm",
    ):
        screen.say(line, now_s)


def watch(loop: Loop, stage: Stage, screen: show.Screen, begins_s: float) -> None:
    """Move time, make a pass, show what is new, until every training job is over and every stop has its heirs."""
    for number, _ in enumerate(paced(), 1):
        stage.advance(begins_s + number * STEP_S)
        report = loop.tick()
        now_s = time.time()
        if report.troubles:
            screen.say(f"trouble: {report.summary}", now_s)
        screen.news(now_s)
        if number % 20 == 0:
            screen.curves(now_s)
        if show.finished(screen, screen.store):
            return


def paced() -> Iterator[None]:
    """Pass on at most MOST_PASSES times, no two of them less than PACE_S apart."""
    for _ in range(MOST_PASSES):
        due_s = time.monotonic() + PACE_S
        yield
        time.sleep(max(0.0, due_s - time.monotonic()))


if __name__ == "__main__":
    sys.exit(main())
