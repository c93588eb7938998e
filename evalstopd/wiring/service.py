"""What the daemon runs: the loop in its seat, and all that is done beside its passes."""

import threading
from collections.abc import Callable
from dataclasses import replace

from evalstopd.adapters.system import boottime_s
from evalstopd.loop import Loop
from evalstopd.loop.folds import Folds
from evalstopd.meters.after import AfterPass
from evalstopd.meters.measured import measured
from evalstopd.service import Service
from evalstopd.settings import Settings
from evalstopd.store.migrate import check
from evalstopd.upkeep.habits import Habits
from evalstopd.upkeep.hourly import Hourly
from evalstopd.wiring.estimates import estimate_days
from evalstopd.wiring.host import make_clock
from evalstopd.wiring.loop import make_loop
from evalstopd.wiring.meters import make_meters
from evalstopd.wiring.pulses import note_pulses
from evalstopd.wiring.seat import make_seat, seated
from evalstopd.wiring.slurm import make_past_jobs, own_cluster
from evalstopd.wiring.store import make_store


def make_service(settings: Settings, load: Callable[[], Settings], stopping: threading.Event) -> Service:
    """Return what the daemon runs. Raises as `make_loop` and `make_seat` do."""
    check(settings.store.url)
    seat, store, meters = make_seat(settings), make_store(settings), make_meters(settings)
    folds = Folds()
    habits = Habits(make_past_jobs(settings), store, make_clock(), lambda: estimate_days(service.settings))

    def make(now: Settings) -> Loop:
        made = replace(make_loop(now, stopping, store=store, history=habits.history), folds=folds)
        loop = seated(made, seat, now)
        return loop if meters is None else replace(loop, ports=measured(loop.ports, meters, boottime_s))

    service = Service(load, make, settings, seat, boottime_s)
    service.cluster = lambda: own_cluster(service.settings)
    note_pulses(service, store)
    service.after.append(habits)
    service.after.append(Hourly(store, lambda: service.settings, lambda: service.loop))
    if meters is not None:
        service.after.append(AfterPass(meters, store, make_clock().now_s))
    return service
