"""The meters as Prometheus reads them, served by HTTP on an address of the site's choice, loopback unless told else."""

from collections.abc import Callable
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from evalstopd.core.intent import State
from evalstopd.errors import Misconfigured
from evalstopd.loop import TickReport
from evalstopd.meters.port import Standing, not_to_be_had

_ACTS = (
    "planned", "warned", "warned early", "pinned", "promoted", "signalled", "cancelled", "held", "confirmed", "undone",
    "vetoed", "abandoned", "held by caps", "would be stopped", "refused", "not told", "perhaps told",
)  # fmt: skip
_VERDICTS = ("keep going", "declining", "stop")
_SECONDS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


@dataclass(slots=True)
class PrometheusMeters:
    """Implements Meters. Every label has a small fixed set of values."""

    now_s: Callable[[], float]
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    _counters: dict[str, Counter] = field(default_factory=dict)
    _gauges: dict[str, Gauge] = field(default_factory=dict)
    _times: dict[str, Histogram] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, text, labels in (
            ("ticks", "Passes of the loop; `standby` are those of a daemon that does not lead.", ("result",)),
            ("port_calls", "Calls of a port.", ("port", "call")),
            ("port_errors", "Errors by port; a call about many runs may come to several.", ("port", "call", "error")),
            (
                "left_alone",
                "Answers that one run or job alone is left alone: quarantined past the caps, or refused. No error.",
                ("port", "call", "why"),
            ),
            ("evals", "New evals read.", ()),
            ("verdicts", "Verdicts on jobs whose curves were read.", ("verdict",)),
            ("registrations", "Model versions: made, refused for good, or to be asked for later.", ("result",)),
            ("acts", "What passes did, by kind.", ("act",)),
            ("freed_gpu_hours", "GPU-hours from stops to the jobs' time limits; jobs without one are left out.", ()),
        ):
            self._counters[name] = Counter(f"evalstopd_{name}", text, labels, registry=self.registry)
        for name, text, labels in (
            ("leads", "1 where this daemon leads, 0 where it stands by.", ()),
            ("last_good_tick_timestamp_seconds", "When the last good pass ended.", ()),
            ("jobs", "Jobs in the queue.", ()),
            ("watched_jobs", "Jobs that are watched.", ()),
            ("intents", "Decided stops in the store, by state.", ("state",)),
            ("breakers_holding", "Breakers that hold: the site's, accounts', or owners'.", ("scope",)),
        ):
            self._gauges[name] = Gauge(f"evalstopd_{name}", text, labels, registry=self.registry)
        for name, text, labels in (
            ("tick_seconds", "How long passes took.", ()),
            ("port_seconds", "How long calls of a port took.", ("port", "call")),
        ):
            self._times[name] = Histogram(f"evalstopd_{name}", text, labels, registry=self.registry, buckets=_SECONDS)

    def ticked(self, report: TickReport, seconds: float, *, leads: bool) -> None:
        """Take what a pass saw and did, and how long it took."""
        standby = "standby" if report.good else "bad"
        result = ("good" if report.good else "bad") if leads else standby
        self._counters["ticks"].labels(result).inc()
        self._gauges["leads"].set(leads)
        if report.good:
            self._gauges["last_good_tick_timestamp_seconds"].set(self.now_s())
        if leads:
            self._times["tick_seconds"].observe(seconds)
            self._counted(report)

    def called(self, port: str, verb: str, seconds: float) -> None:
        """Take a call of a port."""
        self._counters["port_calls"].labels(port, verb).inc()
        self._times["port_seconds"].labels(port, verb).observe(seconds)

    def failed(self, port: str, verb: str, error: str, number: int = 1) -> None:
        """Take errors that a call of a port came to."""
        self._counters["port_errors"].labels(port, verb, error).inc(number)

    def left_alone(self, port: str, verb: str, why: str, number: int = 1) -> None:
        """Take runs or jobs among many that are left alone for their own part."""
        self._counters["left_alone"].labels(port, verb, why).inc(number)

    def registered(self, result: str) -> None:
        """Take what became of a checkpoint that was to be a model version."""
        self._counters["registrations"].labels(result).inc()

    def stands(self, standing: Standing) -> None:
        """Take how things stand."""
        for state in State:
            self._gauges["intents"].labels(state.value).set(standing.intents.get(state, 0))
        self._gauges["breakers_holding"].labels("site").set(standing.site_breakers)
        self._gauges["breakers_holding"].labels("account").set(standing.account_breakers)
        self._gauges["breakers_holding"].labels("owner").set(standing.owner_breakers)

    def serve(self, host: str, port: int) -> int:
        """Answer scrapes from a thread of its own until the process ends; return the port (0 asks for a free one).

        Raises Misconfigured where the address cannot be listened at.
        """
        try:
            server, _ = start_http_server(port, addr=host, registry=self.registry)
        except OSError as error:
            raise Misconfigured(not_to_be_had(host, port, error)) from error
        return server.server_port

    def _counted(self, report: TickReport) -> None:
        counts = report.counts
        for act in _ACTS:
            self._counters["acts"].labels(act).inc(counts[act])
        for verdict in _VERDICTS:
            self._counters["verdicts"].labels(verdict).inc(counts[f"verdict: {verdict}"])
        self._counters["evals"].inc(counts["evals"])
        self._counters["freed_gpu_hours"].inc(counts["freed GPU-seconds"] / 3600)
        if report.good:
            self._gauges["jobs"].set(counts["jobs"])
            self._gauges["watched_jobs"].set(counts["watched"])
