"""All that the loop touches, in one value."""

from collections.abc import Callable
from dataclasses import dataclass

from evalstopd.ports.clock import Clock
from evalstopd.ports.keeper import Keeper
from evalstopd.ports.kill_switch import KillSwitch
from evalstopd.ports.models import Models
from evalstopd.ports.notifier import Notifier
from evalstopd.ports.registry import Registry
from evalstopd.ports.slurm import Cluster
from evalstopd.ports.store import Store
from evalstopd.ports.tracker import Gate, MetricsSource, RunFinder, RunWriter


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything the loop touches, handed over by wiring or by a test."""

    clock: Clock
    cluster: Cluster
    metrics: MetricsSource
    runs: RunWriter
    keeper: Keeper
    store: Store
    notifier: Notifier
    kill_switch: KillSwitch
    finder: RunFinder
    gate: Gate
    should_stop: Callable[[], bool] = lambda: False
    registry: Registry | None = None
    models: Models | None = None
