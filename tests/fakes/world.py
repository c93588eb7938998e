"""A whole small world for the loop: every port a stateful stand-in, one virtual clock."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from evalstopd.core.model import Mode, Rung
from evalstopd.core.rules import Rules, ServerClass
from evalstopd.errors import Unavailable
from evalstopd.loop import Loop, Stance, TickReport
from evalstopd.ports import Message, Ports, Receipt, Store
from evalstopd.store.memory import MemoryStore
from tests.fakes.cluster import FakeCluster
from tests.fakes.keeper import FakeKeeper
from tests.fakes.models import FakeModels
from tests.fakes.registry import FakeRegistry
from tests.fakes.tracker import FakeTracker

RULES = Rules(
    rung=Rung.ENFORCE,
    rule="k-declines:k=2",
    metric="score",
    mode=Mode.MAX,
    server=ServerClass.AUTHENTICATED,
    notice_s=0.0,
    tick_s=1.0,
)
RISE_AND_FALL = (0.1, 0.4, 0.8, 0.7, 0.6, 0.5, 0.4)
HEALTHY = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)


@dataclass(slots=True)
class FakeClock:
    """A clock that a test sets."""

    time_s: float = 1000.0

    def now_s(self) -> float:
        """Return the time the test set."""
        return self.time_s


@dataclass(slots=True)
class FakeNotifier:
    """Keeps what was told. With `later`, what became of it is known in the next pass.

    With `broken`, it never left; with `doubt`, it left and nobody knows whether it was taken.
    """

    told: list[Message] = field(default_factory=list)
    later: bool = False
    broken: str = ""
    doubt: str = ""
    waiting: list[Receipt] = field(default_factory=list)

    def tell(self, message: Message) -> Receipt | None:
        """Keep one message."""
        why = self.broken or self.doubt
        receipt = Receipt(message, sent=not why, how=why, doubtful=bool(self.doubt))
        if not self.broken:
            self.told.append(message)
        if not self.later:
            return receipt
        self.waiting.append(receipt)
        return None

    def receipts(self) -> Sequence[Receipt]:
        """Hand over what became of messages."""
        found, self.waiting = self.waiting, []
        return found

    def close(self) -> None:
        """Do nothing: all has been sent."""

    def die(self) -> None:
        """Forget what became of messages, as a process does that ends."""
        self.waiting.clear()


@dataclass(slots=True)
class FakeSwitch:
    """A kill switch that a test sets."""

    on: bool = False

    def engaged(self) -> bool:
        """Tell whether it is set."""
        return self.on


@dataclass(slots=True)
class FakeGate:
    """A tracker's door that a test opens, or takes away."""

    open: bool = False
    down: bool = False

    def admits_strangers(self) -> bool:
        """Tell whether it is open."""
        if self.down:
            raise Unavailable("MLflow does not answer")
        return self.open


class World:
    """Cluster, tracker, keeper and store with their users; `tick` makes one pass of a fresh loop."""

    def __init__(self, rules: Rules = RULES, gpus: int = 64, store: Store | None = None) -> None:
        self.rules = rules
        self.clock = FakeClock()
        self.cluster = FakeCluster(self.clock.now_s, gpus)
        self.tracker = FakeTracker()
        self.keeper = FakeKeeper()
        self.notifier = FakeNotifier()
        self.switch = FakeSwitch()
        self.gate = FakeGate()
        self.registry: FakeRegistry | None = None
        self.models = FakeModels(self.tracker)
        self.store: Store = store if store is not None else MemoryStore()

    def ports(self) -> Ports:
        return Ports(
            self.clock, self.cluster, self.tracker, self.tracker, self.keeper, self.store, self.notifier, self.switch,
            self.tracker, self.gate, registry=self.registry, models=self.models,
        )  # fmt: skip

    def tick(self, seconds: float = 1.0, ports: Ports | None = None) -> TickReport:
        """Let time pass and make one pass, as a daemon just started would: the loop keeps nothing."""
        self.clock.time_s += seconds
        return Loop(ports or self.ports(), Stance(self.rules, "hash", "test")).tick()

    def train(self, run_id: str = "r1", uid: int = 1001, comment: str = "", gpus: int = 8, **fields: object) -> str:
        """Submit a job that logs to a run and says so both ways; and where it saves, if the run's word is nothing."""
        trusted = self.rules.server is ServerClass.AUTHENTICATED or self.rules.open_server_accepted
        output = "" if trusted or "evalstop_output=" in comment else f"evalstop_output=out-{run_id}"
        words = (f"mlflow_run={run_id}", output, comment)
        job_id = self.cluster.submit(uid, gpus, " ".join(each for each in words if each), **fields)
        if run_id not in self.tracker.runs:
            self.tracker.add_run(run_id)
        self.tracker.runs[run_id].tags["slurm.job_id"] = str(self.cluster.jobs[job_id].raw_id)
        return job_id

    def evaluate(self, job_id: str, run_id: str, step: int, score: float) -> None:
        """Log an eval, then save its checkpoint, then rotate, as trainers do; an ended job does nothing."""
        job = self.cluster.jobs[job_id]
        if job.phase != "running":
            return
        self.tracker.log(run_id, step, score, timestamp_ms=int(self.clock.time_s * 1000))
        self.keeper.save(f"{job.work_dir}/out-{run_id}", step, at_s=self.clock.time_s)

    def play(self, job_id: str, run_id: str, scores: tuple[float, ...], ports: Ports | None = None) -> None:
        """Play a curve, one eval and one tick after the other."""
        for number, score in enumerate(scores, 1):
            self.evaluate(job_id, run_id, number * 10, score)
            self.tick(ports=ports)
