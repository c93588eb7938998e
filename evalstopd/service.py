"""What `evalstopd run` keeps from pass to pass: the settings in effect, the loop made of them, its seat."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from evalstopd.errors import EvalstopError
from evalstopd.lead.seat import Seat, led_elsewhere
from evalstopd.loop import Loop, TickReport
from evalstopd.priorities import told_back
from evalstopd.settings import Settings

_log = logging.getLogger("evalstopd")
# What a process is bound to for as long as it lives. Another tracker knows none of the runs that jobs are bound to.
FIXED = (
    ("store", "url"),
    ("store", "lease"),
    ("store", "lease_s"),
    ("mlflow", "tracking_uri"),
    ("metrics", "port"),
    ("metrics", "host"),
)
After = Callable[[TickReport, float, bool], None]


@dataclass(slots=True)
class Service:
    """The loop behind its seat, by settings that can be read anew.

    `load` reads the settings, `make` makes a loop of them; both raise an EvalstopError for settings that are wrong.
    `after` is told of each pass: its report, its seconds by `now_s`, and whether this process leads; `ending` is called
    where the process ends because it was told to. `cluster` asks for the name of this process's own one.
    """

    load: Callable[[], Settings]
    make: Callable[[Settings], Loop]
    settings: Settings
    seat: Seat
    now_s: Callable[[], float]
    after: list[After] = field(default_factory=list)
    ending: list[Callable[[], None]] = field(default_factory=list)
    cluster: Callable[[], str] = lambda: ""
    loop: Loop = field(init=False)
    _took_s: float = 0.0
    _own: str = ""

    def __post_init__(self) -> None:
        self.loop = self.make(self.settings)

    def tick(self) -> TickReport:
        """Make one pass; who stands by makes none, and is well as long as it knows who leads.

        Whose store was replaced makes none either, and is not well until it is started again.
        """
        began_s = self.now_s()
        report = self._pass()
        self._took_s = self.now_s() - began_s
        return report

    def follow(self, report: TickReport) -> None:
        """Do what follows a pass; not part of it, for a store that hangs must not keep the pass from being told."""
        for each in self.after:
            each(report, self._took_s, self.seat.ours)

    def _pass(self) -> TickReport:
        if self.seat.ours:
            return self.loop.tick()
        astray = self._astray()
        good, said = self.seat.known and not astray, astray or self.seat.said
        return TickReport(good=good, counts=Counter(), troubles=(), instead=said)

    def _astray(self) -> str:
        """Say that who is waited for leads another cluster. The own one's name is asked for once, and only for that."""
        theirs = self.seat.theirs
        try:
            self._own = self._own or (self.cluster() if theirs else "")
        except EvalstopError:
            # Whether it is another cluster cannot be told: the next pass asks again.
            return ""
        said = led_elsewhere(self.settings.store.lease, theirs, self._own)
        return f"stands by, and {said}" if said else ""

    def reload(self) -> float:
        """Read the settings anew, between two passes; keep the old ones where the new are wrong. Return the period.

        A stricter rule or a higher rung meets new jobs only: those seen already have their terms in the store.
        """
        try:
            wanted = self.load()
            settings = _held(wanted, self.settings)
            loop = self.make(settings)
        except EvalstopError as error:
            _log.error("the settings stay as they were (digest %s): %s", self.settings.digest, error)
            return self.settings.daemon.tick_s
        for name in _changed(wanted, self.settings):
            _log.warning("%s has changed, but not for a running daemon: restart it", name)
        self.loop.close()
        _log.info("settings reloaded: digest %s, before %s", settings.digest, self.settings.digest)
        logging.getLogger("evalstopd").setLevel(settings.daemon.log_level)
        self.settings, self.loop = settings, loop
        return settings.daemon.tick_s

    def end(self) -> None:
        """Say that the process was told to end."""
        for each in self.ending:
            each()

    def close(self) -> None:
        """Take back what was changed of waiting jobs, send what waits, and make room for another daemon."""
        if self.seat.ours and self.loop.stance.priorities is not None:
            self._take_back()
        self.loop.close()
        self.seat.leave()

    def _take_back(self) -> None:
        try:
            said = told_back(self.loop.ordering)
        except EvalstopError as error:
            _log.error("the order of waiting jobs stays as it is, until `evalstopd priorities restore`: %s", error)
        else:
            _log.info("%s", said)


def _held(wanted: Settings, before: Settings) -> Settings:
    """Return the settings with what is fixed as it was."""
    for part, key in FIXED:
        now = getattr(wanted, part).model_copy(update={key: getattr(getattr(before, part), key)})
        wanted = wanted.model_copy(update={part: now})
    return wanted


def _changed(wanted: Settings, before: Settings) -> Iterator[str]:
    """Yield the names of fixed settings that would have changed."""
    for part, key in FIXED:
        if getattr(getattr(wanted, part), key) != getattr(getattr(before, part), key):
            yield f"{part}.{key}"
