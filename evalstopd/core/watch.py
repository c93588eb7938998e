"""What is kept of a watched job between two ticks."""

from dataclasses import dataclass, replace
from enum import StrEnum

from evalstopd.core.model import Ending, JobKey, Life, Mode, Rung, StopAction


@dataclass(frozen=True, slots=True)
class Terms:
    """The rule a job is judged by. Fixed when the job is first seen: later settings may only loosen it.

    `trusted` tells whether the points may cost a job without its owner asking for it; `notice_s` is the owner's
    notice in seconds; `action` is the harshest stop that the job may meet; `items` the number of items behind an
    eval, where the site says it (0: unknown). With `logged_models` a checkpoint that is nothing but a logged model of
    the run's may be what a stop rests on. `dataset` says which dataset's evals judge it, where the metric has those of
    several (core/datasets).
    """

    rung: Rung
    rule: str
    metric: str
    mode: Mode
    trusted: bool = False
    notice_s: float = 0.0
    action: StopAction = StopAction.CANCEL
    items: int = 0
    logged_models: bool = False
    dataset: str = ""


@dataclass(frozen=True, slots=True)
class Reads:
    """When a job's run was read with what success, by our own clock (client timestamps prove nothing).

    `arrivals` are the moments at which the last evals arrived (`due.after_read`); `empty` counts the due reads
    since then that brought nothing; `due_s` is when the next read is worth its cost.
    """

    arrivals: tuple[float, ...] = ()
    empty: int = 0
    due_s: float = 0.0
    good_s: float | None = None


@dataclass(frozen=True, slots=True)
class EarlyWarning:
    """What an owner is told while a rule is one step from a stop; recorded before it is told, once a life.

    `count` of `of` is the verdict at `step`. `told_s` is when the message was known to be sent: None while that is
    open, and for good after a crash. `failed` says why it could not be sent. `best_step`, rung, rule, metric,
    mode, dataset, notice and the way jobs are stopped are what it was said under.
    """

    restarts: int
    submitted_s: int
    at_s: float
    step: int
    count: int
    of: int
    best_step: int | None
    rung: int
    rule: str
    metric: str
    mode: str
    notice_s: float = 0.0
    told_s: float | None = None
    failed: str = ""
    action: str = StopAction.CANCEL.value
    dataset: str = ""


@dataclass(frozen=True, slots=True)
class Watch:
    """A watched job: who it is, what it is bound to, how its curve stands.

    `declines` is the decline counter after the newest eval. `first_s` is when we first saw the job,
    `started_s` when Slurm says that the present life started, `limit_end_s` when its time limit would end it (None
    where that is not known). `proof` is what bound the run to the job; `read_life` is the life in which the run was
    last read well. `rung_now` and the like are in effect after the owner's
    wishes and the ceiling; empty before the first judgement. `dataset_now` is the dataset whose points alone judged
    it, as they were told apart; empty where nothing was. `early` is the last early warning, of whichever life.
    """

    key: JobKey
    life: Life
    first_s: float
    terms: Terms
    user: str = ""
    account: str = ""
    partition: str = ""
    name: str = ""
    gpus: int = 0
    nodes: tuple[str, ...] = ()
    started_s: float | None = None
    limit_end_s: float | None = None
    run_id: str | None = None
    two_way: bool = False
    proof: str = ""
    output_dir: str | None = None
    evals: int = 0
    declines: int = 0
    last_step: int | None = None
    last_score: float | None = None
    last_life: int = 0
    best_step: int | None = None
    best_score: float | None = None
    best_life: int = 0
    read_life: int | None = None
    rung_now: Rung = Rung.OFF
    rule_now: str = ""
    metric_now: str = ""
    mode_now: Mode = Mode.MAX
    dataset_now: str = ""
    reads: Reads = Reads()
    vanished_s: float | None = None
    ending: Ending | None = None
    early: EarlyWarning | None = None


def in_effect(watch: Watch) -> Terms:
    """Return the terms a job was last judged by; those it was first seen with before that."""
    if not watch.rule_now:
        return watch.terms
    items = watch.terms.items if watch.metric_now == watch.terms.metric else 0
    now = replace(watch.terms, rung=watch.rung_now, rule=watch.rule_now, metric=watch.metric_now, mode=watch.mode_now)
    return replace(now, items=items, dataset=watch.dataset_now)


class PinState(StrEnum):
    """The life of a pin; only PINNED and PUBLISHED are safe to stop on.

    OUTDATED: the step was evaluated anew, so what is pinned is another checkpoint than the best one, which is looked
    for; until it is there the earlier one stays. STALE: it is not coming any more, and the earlier one stays for good.
    LOGGED: nothing is pinned; the checkpoint is a logged model of the run's, whole by the tracker's word.
    """

    WANTED = "wanted"
    OUTDATED = "outdated"
    STALE = "stale"
    PINNED = "pinned"
    PUBLISHED = "published"
    LOGGED = "logged"
    LOST = "lost"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Pin:
    """A protected copy of a candidate best checkpoint, or the wish for one. Sizes in bytes.

    `restarts` is the life that evaluated, and saved, the step. A checkpoint completed before `since_s` (seconds
    since the epoch) is another one under the same name. `tries` counts the times the keeper failed on it.
    Of a logged model `path` is its address in the tracker, `manifest` the digest of the tracker's listing of it.
    """

    key: JobKey
    step: int
    score: float
    state: PinState
    wanted_s: float
    restarts: int = 0
    since_s: float = 0.0
    tries: int = 0
    path: str = ""
    files: int = 0
    size: int = 0
    manifest: str = ""
    why: str = ""

    @property
    def safe(self) -> bool:
        """Tell whether this pin was linked whole and verified."""
        return self.state in (PinState.PINNED, PinState.PUBLISHED)

    def holds(self, *, logged_models: bool) -> bool:
        """Tell whether a stop may rest on it, where logged models count or do not."""
        return self.safe or (logged_models and self.state is PinState.LOGGED)

    def is_lost(self, *, logged_models: bool) -> bool:
        """Tell whether nothing will come of it that a stop may rest on."""
        alone = self.state is PinState.LOGGED and not logged_models
        return alone or self.state in (PinState.LOST, PinState.STALE, PinState.DROPPED)


@dataclass(frozen=True, slots=True)
class Remark:
    """One line about something that was not done, said once for a subject; or about an early warning, once a life."""

    subject: str
    code: str
    text: str
    at_s: float


@dataclass(frozen=True, slots=True)
class Lived:
    """One life of a watched job: whose it was, what it held, from when on, until when at most, and how it ended.

    Times in seconds. The texts are the user's.
    """

    key: JobKey
    life: Life
    started_s: float | None
    limit_end_s: float | None
    gpus: int
    ending: Ending | None
    user: str = ""
    account: str = ""
    partition: str = ""
    name: str = ""


def lived(watch: Watch) -> Lived:
    """Return the present life of a watched job."""
    whose = (watch.user, watch.account, watch.partition, watch.name)
    return Lived(watch.key, watch.life, watch.started_s, watch.limit_end_s, watch.gpus, watch.ending, *whose)
