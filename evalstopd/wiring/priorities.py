"""A loop whose order of waiting jobs alone is used, for the commands that show it and take it back."""

from functools import partial

from evalstopd.adapters.notify.log import LogNotifier
from evalstopd.errors import Unavailable
from evalstopd.late import LateGate, LateTracker
from evalstopd.loop import Loop, Stance
from evalstopd.ports import Ports
from evalstopd.priorities import Place, places, told_back
from evalstopd.settings import Settings, make_priorities, make_rules
from evalstopd.store.migrate import check_whole
from evalstopd.wiring.host import make_clock, make_kill_switch
from evalstopd.wiring.keeper import make_keeper
from evalstopd.wiring.loop import estimating, remembered
from evalstopd.wiring.seat import make_seat, seated
from evalstopd.wiring.slurm import make_cluster
from evalstopd.wiring.store import make_store
from evalstopd.wiring.tracker import make_gate, make_metrics

_SWITCH_OFF = "where a daemon runs, switch its policy off instead (priorities.policy), and reload it"


def show_priorities(settings: Settings) -> tuple[Place, ...]:
    """Return how the waiting jobs stand and are wanted; one question to Slurm, and nothing is changed."""
    return places(_ordering_loop(settings).ordering)


def restore_priorities(settings: Settings) -> str:
    """Take back what was changed of waiting jobs. Raises Unavailable while a daemon works on the store."""
    try:
        seat = make_seat(settings)
    except Unavailable as error:
        raise Unavailable(f"nothing is taken back: {error}; {_SWITCH_OFF}") from None
    loop = seated(_ordering_loop(settings), seat, settings)
    seat.beat()
    try:
        if not seat.ours:
            raise Unavailable(f"nothing is taken back: this process {seat.said}; {_SWITCH_OFF}")
        return told_back(loop.ordering)
    finally:
        seat.leave()


def _ordering_loop(settings: Settings) -> Loop:
    """Return a loop whose order of waiting jobs alone is used: it asks for no tracker unless the policy does."""
    check_whole(settings.store.url, indexes=False)
    store, tracker, gate = (
        make_store(settings),
        LateTracker(partial(make_metrics, settings)),
        LateGate(partial(make_gate, settings)),
    )
    ports = Ports(
        clock=make_clock(),
        cluster=make_cluster(settings),
        metrics=tracker,
        runs=tracker,
        keeper=make_keeper(settings),
        store=store,
        notifier=LogNotifier(),
        kill_switch=make_kill_switch(settings),
        finder=tracker,
        gate=gate,
    )
    stance = Stance(make_rules(settings), priorities=make_priorities(settings))
    return estimating(settings, ports, stance, remembered(store))
