"""One daemon of a pair, for tests: the real process, lease and store over a shared world; takes WORLD GATE.

GATE is a folder: just before a cancel the daemon makes `reached` there and waits for `go`. Without: `-`.
"""

import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalstopd.daemon import Daemon
from evalstopd.log import start_log
from evalstopd.loop import Loop
from evalstopd.meters.after import AfterPass
from evalstopd.meters.measured import measured
from evalstopd.service import After, Service
from evalstopd.settings import Settings, load_settings
from evalstopd.upkeep.hourly import Hourly
from evalstopd.wiring.loop import make_loop
from evalstopd.wiring.meters import make_meters
from evalstopd.wiring.pulses import note_pulses
from evalstopd.wiring.seat import make_seat, seated
from evalstopd.wiring.store import make_store
from tests.store.shared_world import Shared


class Gated:
    """The cluster as the loop has it, lease and all, with a gate before it."""

    def __init__(self, cluster: Any, gate: Path) -> None:
        self._cluster, self._gate = cluster, gate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def cancel(self, job_ids: list[str]) -> None:
        (self._gate / "reached").touch()
        while not (self._gate / "go").exists():
            time.sleep(0.05)
        self._cluster.cancel(job_ids)


def main() -> None:
    world, gate = Path(sys.argv[1]), sys.argv[2]
    settings = load_settings(None)
    meters = make_meters(settings)
    start_log("INFO")
    stopping = threading.Event()
    seat = make_seat(settings)

    def make(now: Settings) -> Loop:
        loop = make_loop(now, stopping)
        tracker = Shared(world, "tracker")
        shared: dict[str, Any] = {"cluster": Shared(world, "cluster"), "metrics": tracker, "runs": tracker}
        shared |= {"finder": tracker, "gate": Shared(world, "gate")}
        loop = seated(replace(loop, ports=replace(loop.ports, **shared, keeper=Shared(world, "keeper"))), seat, now)
        if gate != "-":
            loop = replace(loop, ports=replace(loop.ports, cluster=Gated(loop.ports.cluster, Path(gate))))
        return loop if meters is None else replace(loop, ports=measured(loop.ports, meters, time.monotonic))

    store = make_store(settings)
    after: list[After] = [] if meters is None else [AfterPass(meters, store, time.time)]
    service = Service(lambda: load_settings(None), make, settings, seat, time.monotonic, after)
    service.cluster = lambda: Shared(world, "cluster").queue().cluster
    note_pulses(service, store)
    service.after.append(Hourly(store, lambda: service.settings, lambda: service.loop))
    Daemon(service.tick, settings.daemon.tick_s, stopping, seat.beat, seat.beat_s, service.reload, service.follow).run()
    service.end()
    service.close()


main()
