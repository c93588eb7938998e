"""Every port of the loop: small protocols, batch first, one family a file. Errors come from `evalstopd.errors` only."""

from evalstopd.ports.archive import Archive
from evalstopd.ports.audit import Accounts, Chain
from evalstopd.ports.clock import Clock, Span
from evalstopd.ports.keeper import Keeper, PinPlace, PinReport
from evalstopd.ports.kill_switch import KillSwitch
from evalstopd.ports.leases import Lease, Leases
from evalstopd.ports.models import ModelQuery, ModelReport, Models
from evalstopd.ports.notifier import Message, Notifier, Receipt, to_admin
from evalstopd.ports.past_jobs import Histories, PastJobs
from evalstopd.ports.pulses import Pulse, Pulses
from evalstopd.ports.registry import Promoted, Registered, Registry
from evalstopd.ports.slurm import Cluster, EndingQuery, Queue
from evalstopd.ports.store import Book, Changes, Store
from evalstopd.ports.together import Ports
from evalstopd.ports.tracker import Gate, MetricsSource, RunFinder, RunList, RunQuery, RunReading, RunWriter
from evalstopd.ports.upkeep import Upkeep

__all__ = [
    "Accounts",
    "Archive",
    "Book",
    "Chain",
    "Changes",
    "Clock",
    "Cluster",
    "EndingQuery",
    "Gate",
    "Histories",
    "Keeper",
    "KillSwitch",
    "Lease",
    "Leases",
    "Message",
    "MetricsSource",
    "ModelQuery",
    "ModelReport",
    "Models",
    "Notifier",
    "PastJobs",
    "PinPlace",
    "PinReport",
    "Ports",
    "Promoted",
    "Pulse",
    "Pulses",
    "Queue",
    "Receipt",
    "Registered",
    "Registry",
    "RunFinder",
    "RunList",
    "RunQuery",
    "RunReading",
    "RunWriter",
    "Span",
    "Store",
    "Upkeep",
    "to_admin",
]
