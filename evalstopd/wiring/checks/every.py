"""All questions of `evalstopd check`, in the order in which they are shown."""

from collections.abc import Callable
from functools import partial

from evalstopd.checks import Probe, probe
from evalstopd.errors import EvalstopError, Unavailable
from evalstopd.settings import Settings
from evalstopd.settings.sense import told_take_over
from evalstopd.wiring.checks import direction, figures, site, slurm, store, tracker
from evalstopd.wiring.keeper import make_keeper
from evalstopd.wiring.tracker import find_server

Question = Callable[[Settings], str]


def make_checks(settings: Settings, source: str = "") -> tuple[Probe, ...]:
    """Return the questions of `evalstopd check`; `source` says where the settings come from."""
    with_tracker = partial(_needing, find_server, "the tracker's address and login: see mlflow")
    with_store = partial(_needing, store.schema, "the store")
    questions: tuple[tuple[str, Question], ...] = (
        ("settings", lambda _: source),
        ("slurm", slurm.queue),
        ("slurm rights", slurm.rights),
        ("mlflow", tracker.api),
        ("mlflow login", with_tracker(tracker.login)),
        ("mlflow server", with_tracker(tracker.door)),
        ("mlflow database", tracker.database),
        ("binding", tracker.proofs),
        ("keeper", lambda given: make_keeper(given).ping()),
        ("store", store.schema),
        ("daemon", with_store(store.daemons)),
        ("take-over", told_take_over),
        ("clock of slurmctld", slurm.clock),
        ("clock of mlflow", with_tracker(tracker.clock)),
        ("scorecard", with_store(store.card)),
        ("kill switch", site.switch),
        ("partitions", slurm.governed),
        ("accounts", slurm.exempt),
        ("priorities", slurm.priorities),
        ("preemption", slurm.preemption),
        ("direction", direction.direction),
        ("notify", site.telling),
        ("promotion", site.promotion),
        ("metrics", figures.figures),
    )
    return tuple(probe(what, partial(ask, settings)) for what, ask in questions)


def _needing(need: Callable[[Settings], object], words: str, ask: Question) -> Question:
    """Return a question that says shortly what it needs, where another one tells at length what is wrong with that."""

    def asked(settings: Settings) -> str:
        try:
            need(settings)
        except EvalstopError:
            raise Unavailable(f"needs {words}") from None
        return ask(settings)

    return asked
