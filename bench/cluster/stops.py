"""Real stops among thousands of jobs: from what the daemon knew to the GPUs free, and the memory it took."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from demo.compare.trainer import call, make_run
from demo.rig import users
from demo.rig.cluster import Cluster
from demo.service import Service

from bench.cluster.limits import percentile
from bench.mlflow import METRIC
from evalstopd.core.intent import Intent, State
from evalstopd.ports import Changes

PACE_S = 4.0
SCORES = (0.1, 0.4, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
PATIENCE_S = 600.0
LOOK_S = 0.2
SPARE_S = 2.0
_DURATION_S = 900.0
# Half of the jobs end at TERM; the other half must be killed when their time is up.
_STUBBORN = "trap '' TERM\n"


@dataclass(frozen=True)
class Stage:
    """Where the jobs run."""

    cluster: Cluster
    tracking_uri: str
    trainer: Path
    service: Service
    tick_s: float
    kill_wait_s: float


def submit(stage: Stage, number: int) -> str:
    """Submit a job whose metric falls, tag its run with its id, and return the id."""
    folder = f"out-{number}"
    run_id = make_run(stage.tracking_uri, folder)
    marks = ",".join(f"{PACE_S * place:g}" for place in range(1, len(SCORES) + 1))
    words = f"{stage.tracking_uri} {run_id} {folder} {_DURATION_S:g} {marks} {','.join(map(str, SCORES))}"
    script = f"#!/bin/sh\n{_STUBBORN if number % 2 else ''}exec /usr/bin/python3 {stage.trainer} {words}\n"
    wishes = "evalstop=enforce evalstop_metric=eval/score evalstop_mode=max evalstop_k=2"
    comment = f"--comment=mlflow_run={run_id} {wishes}"
    job = stage.cluster.sbatch(users.BOB, script, "--gpus=1", "--nodes=1", "--output=/dev/null", comment)
    call(stage.tracking_uri, "runs/set-tag", run_id=run_id, key="slurm.job_id", value=job)
    return job


def idle_since(stage: Stage, jobs: Sequence[str]) -> dict[str, float]:
    """Wait until none of the jobs runs or ends any more; return when each was first not seen to (epoch seconds)."""
    left, gone = set(jobs), dict[str, float]()
    end_s = time.monotonic() + PATIENCE_S
    while left:
        # Of one user the controller sends his jobs alone; asked for by their ids, all thousands each time.
        here = set(stage.cluster.squeue("-u", users.BOB, "-t", "PD,CF,R,CG", "-o", "%i").split())
        now_s = time.time()
        gone |= dict.fromkeys(left - here, now_s)
        left &= here
        if time.monotonic() > end_s:
            raise SystemExit(f"{len(left)} jobs were not stopped within {PATIENCE_S:g} s")
        time.sleep(LOOK_S)
    return gone


def known_since(stage: Stage, intent: Intent) -> float:
    """Return when the pass began that had both the decision and the verified checkpoint (epoch seconds)."""
    events = stage.service.book.events_of([intent.id])
    return max(intent.created_s, *(event.at_s for event in events if event.kind == State.PROMOTED))


def measure(stage: Stage, count: int) -> dict[str, object]:
    """Stop so many jobs and return how long their GPUs were held after the daemon knew."""
    jobs = [submit(stage, number) for number in range(count)]
    gone = idle_since(stage, jobs)
    intents = [each for job in jobs for each in _intents(stage, job)]
    held = [gone[each.key.job_id] - known_since(stage, each) for each in intents]
    limit_s = stage.tick_s + stage.kill_wait_s + SPARE_S
    return {
        "stops": len(held),
        "stops_at_once": max(sum(each.created_s == other.created_s for other in intents) for each in intents),
        "stop_median_s": percentile(held, 0.5),
        "stop_p99_s": percentile(held, 0.99),
        "stop_limit_s": limit_s,
        "stop_over_limit_s": max(0.0, percentile(held, 0.99) - limit_s) if len(held) == count else limit_s,
    }


def _intents(stage: Stage, job: str) -> tuple[Intent, ...]:
    watch = next(iter(stage.service.book.find(job)))
    found: tuple[Intent, ...] = stage.service.book.intents_of([watch.key])
    return found


def settings(tracking_uri: str, tick_s: float) -> dict[str, dict[str, object]]:
    """Return the daemon's settings: enforce at once, without caps, on a server that the site trusts."""
    most = 100_000
    return {
        "rules": {"rung": "enforce", "metric": METRIC, "mode": "max"},
        "enforce": {"override": "a benchmark", "notice_s": 0},
        "trust": {"open_mlflow": "a benchmark"},
        "caps": {"stops": most, "stops_per_account": most, "gpu_share": 1.0, "breaker_decisions": most},
        "mlflow": {"tracking_uri": tracking_uri, "time_limit_s": 30.0},
        "daemon": {"tick_s": tick_s},
    }


def memory_mb(pid: int | str) -> tuple[float, float]:
    """Return the resident memory of a process (or "self") and the most it ever was."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    now, most = (int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return now, most


def let_them_age(stage: Stage, age_s: float, due_within_s: float) -> None:
    """Let what was read be as of jobs that run for so long: a few are due in each pass, not all of them.

    Their checkpoints, which never come, are looked for as rarely. The daemon is told while it stands still.
    """
    stage.service.stop_daemon()
    now_s, book = time.time(), stage.service.book
    known = book.book(stage.cluster.name)
    each_s = due_within_s / max(1, len(known.watches))
    reads = (replace(watch.reads, due_s=now_s + place * each_s) for place, watch in enumerate(known.watches))
    watches = tuple(replace(watch, reads=each) for watch, each in zip(known.watches, reads, strict=True))
    book.record(Changes(watches=watches, pins=tuple(replace(pin, wanted_s=now_s - age_s) for pin in known.pins)))
    stage.service.start_daemon()


def warm_up(stage: Stage, jobs: int) -> float:
    """Wait until the daemon has read the runs of so many jobs; return the seconds."""
    began_s = time.monotonic()
    while sum(bool(watch.run_id) for watch in stage.service.book.book(stage.cluster.name).watches) < jobs:
        if time.monotonic() > began_s + PATIENCE_S:
            raise SystemExit(f"the daemon has not read {jobs} runs within {PATIENCE_S:g} s: see {stage.service.log}")
        time.sleep(1.0)
    return time.monotonic() - began_s
