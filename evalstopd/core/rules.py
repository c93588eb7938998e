"""Who is watched, on which rung, by which rule: the site's settings, the owner's wishes, the ceiling."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase

from evalstopd.core.binding import COMMENT_ONLY, RunFacts, Trust
from evalstopd.core.caps import USUAL, Caps
from evalstopd.core.detectors import Detector, detector
from evalstopd.core.metric_choice import site_mode
from evalstopd.core.model import Job, Mode, Rung, StopAction
from evalstopd.core.spec import Spec, parse_spec
from evalstopd.core.watch import Terms
from evalstopd.core.wishes import Wishes


class ServerClass(StrEnum):
    """Who can write into a run: its owner only (the server checks), or any user."""

    AUTHENTICATED = "authenticated"
    OPEN = "open"


class Named(StrEnum):
    """Who named the metric that judges a job: its owner's comment, the site, or nobody: it is one that the run has."""

    COMMENT = "comment"
    SITE = "site"
    RUN = "run"


_COUNTS = "k-declines"
_WISH = "the owner's wish"
_CEILING_WHY = "any user can write to an open MLflow server, and the owner did not ask for enforce"


@dataclass(frozen=True, slots=True)
class ActionRule:
    """How jobs of a partition, with a metric, judged by a rule are stopped; what is empty fits all.

    `partition` and `metric` may have `*` in them; `rule` is a rule's name without its numbers.
    """

    action: StopAction
    partition: str = ""
    metric: str = ""
    rule: str = ""

    def fits(self, partition: str, metric: str, rule: str) -> bool:
        """Tell whether this is how a job like that is stopped."""
        pairs = ((self.partition, partition), (self.metric, metric), (self.rule, parse_spec(rule).name))
        return all(not pattern or fnmatchcase(value, pattern) for pattern, value in pairs)


@dataclass(frozen=True, slots=True)
class Rules:
    """The site's rules as pure data. Times in seconds.

    `open_server_accepted` is the admin's written reason for trusting points that any user could have
    written; empty means that they are not trusted above the warn rung unless the owner asks for it. `mode` is which way
    is better for `metric`, where there is none for one that an owner names; None: the site does not say it. `proxy` is
    the training reward, read for an alarm alone; `items` the number of items behind an eval of `metric` (0: unknown).
    With `logged_models` a stop may rest on a checkpoint that is nothing but a logged model of a run whose points are
    trusted. `trust` says which proofs of a binding count beside the comment. Of `actions` the first that fits a job
    says how it is stopped, else `action`. `dataset` judges where a metric has the evals of several.
    """

    rung: Rung = Rung.OBSERVE
    rule: str = "recommended"
    metric: str = ""
    proxy: str = ""
    items: int = 0
    mode: Mode | None = None
    metrics: tuple[str, ...] = ()
    modes: tuple[tuple[str, Mode], ...] = ()
    partitions: tuple[str, ...] = ()
    exempt_accounts: tuple[str, ...] = ()
    server: ServerClass = ServerClass.OPEN
    open_server_accepted: str = ""
    notice_s: float = 1800.0
    tick_s: float = 30.0
    stale_s: float = 900.0
    candidates: int = 3
    caps: Caps = USUAL
    action: StopAction = StopAction.CANCEL
    trust: Trust = COMMENT_ONLY
    actions: tuple[ActionRule, ...] = ()
    logged_models: bool = False
    dataset: str = ""

    def action_for(self, partition: str, metric: str, rule: str) -> StopAction:
        """Return how a job of a partition, with a metric and judged by a rule, is stopped."""
        return next((each.action for each in self.actions if each.fits(partition, metric, rule)), self.action)

    def as_open(self) -> "Rules":
        """Return the rules for a server that turned out to be open, whatever was declared."""
        return replace(self, server=ServerClass.OPEN, trust=replace(self.trust, tags=False))

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return what a job's metric is chosen by, where the site gives more than one name."""
        return (self.metric, *self.metrics) if self.metric else self.metrics

    def says_mode(self, mode: Mode, metric: str) -> bool:
        """Tell whether the site's `mode`, as far as it is said and meant for a metric, is this one."""
        return self.mode is mode and self.metric in ("", metric)

    def names_metrics(self, named: str) -> bool:
        """Tell whether a job has a metric (`named`), or may get one from its run's."""
        return bool(named or self.metrics)


@dataclass(frozen=True, slots=True)
class Standing:
    """How a job stands now: its terms after settings, wishes and ceiling, with the reason for the rung.

    `ceiling` tells whether nothing but the ceiling of an open server keeps the job from the enforce rung, `by_word`
    whether nothing but its owner's word lifts it above that ceiling, `wished` whether that word is enough to keep it on
    the observe rung, where the site would go further. `named` says who named the metric.
    """

    terms: Terms
    why: str
    ceiling: bool = False
    wished: bool = False
    by_word: bool = False
    named: Named = Named.RUN

    @property
    def unasked(self) -> bool:
        """Tell whether nothing but the owner's word is missing for enforce: the settings never trusted the points."""
        return self.ceiling and not self.terms.trusted

    def at_most(self, rung: Rung, why: str) -> "Standing":
        """Return the standing with the rung lowered, where it is higher."""
        return self if self.terms.rung <= rung else Standing(replace(self.terms, rung=rung), why, named=self.named)


def is_governed(job: Job, rules: Rules) -> bool:
    """Tell whether a job is one this daemon looks at: GPUs, a watched partition, no exempt account."""
    return (
        job.gpus > 0
        and (not rules.partitions or job.partition in rules.partitions)
        and job.account not in rules.exempt_accounts
    )


def left_whole(first: Terms) -> Standing:
    """Return the standing of a component of a heterogeneous job: Slurm ends such jobs as a whole, or not at all."""
    return Standing(replace(first, rung=Rung.OFF), "a component of a heterogeneous job is not judged alone")


def site_terms(rules: Rules, partition: str = "") -> Terms:
    """Return the terms the site gives a job that it sees for the first time."""
    metric = "" if rules.metrics else rules.metric
    return Terms(
        rules.rung,
        rules.rule,
        metric,
        rules.mode or site_mode(metric, rules.modes) or Mode.MAX,
        trusted=_trusted(rules),
        notice_s=rules.notice_s,
        action=rules.action_for(partition, metric, rules.rule),
        items=rules.items,
        logged_models=_models_count(rules),
        dataset=rules.dataset,
    )


def standing(
    first: Terms, wishes: Wishes, rules: Rules, *, partition: str = "", corroborated: bool = False
) -> Standing:
    """Return the terms a job is judged by now: those it was first seen with, loosened, never tightened.

    The owner may lower the rung and choose metric, dataset, direction and k (and with k the paper's rule, whatever the
    site's). The owner's word `enforce`, or for one stop the owner's own log (`corroborated`), lifts the
    ceiling of an open server, never the site's own rung.
    """
    rung, why = _rung(first, wishes, rules)
    ceiling = Rung.ENFORCE if corroborated else _ceiling(first, wishes, rules)
    held = not wishes.faults and rung > ceiling
    rule = _with_k("never" if rules.rule == "never" else first.rule, wishes.k)
    metric = wishes.metric or first.metric
    terms = replace(
        first,
        rung=rung,
        rule=rule,
        metric=metric,
        mode=wishes.mode or _site_mode(first, wishes, rules) or first.mode,
        notice_s=max(first.notice_s, rules.notice_s),
        action=first.action.at_most(rules.action_for(partition, metric, rule)),
        items=_fewest(first, wishes, rules),
        logged_models=first.logged_models and _models_count(rules),
        dataset=wishes.dataset or first.dataset,
    )
    named = _named(metric, wishes, rules)
    if not held:
        by_word = rung is Rung.ENFORCE and not (corroborated or _still_trusted(first, rules))
        return Standing(terms, why, wished=rung is Rung.OBSERVE and why == _WISH, by_word=by_word, named=named)
    return Standing(replace(terms, rung=ceiling), _CEILING_WHY, ceiling=rung is Rung.ENFORCE, named=named)


def _named(metric: str, wishes: Wishes, rules: Rules) -> Named:
    """Return who named a job's metric. Of several that the site would take, what the run has decides which it is."""
    if wishes.metric is not None:
        return Named.COMMENT
    return Named.SITE if metric == rules.metric and not rules.metrics else Named.RUN


def _rung(first: Terms, wishes: Wishes, rules: Rules) -> tuple[Rung, str]:
    """Return how far the daemon may go where every point can be trusted, and by whose word."""
    if wishes.faults:
        return Rung.OFF, f"the comment is ambiguous: {wishes.faults[0]}"
    return min(
        (first.rung, "the rung this job was first seen on"),
        (rules.rung, "the site's rung"),
        (wishes.rung if wishes.rung is not None else Rung.ENFORCE, _WISH),
        key=lambda each: each[0],
    )


def _site_mode(first: Terms, wishes: Wishes, rules: Rules) -> Mode | None:
    """Return what the site says of a metric that the owner chose; of its own choice the job's terms say it."""
    if wishes.metric is None or wishes.metric == first.metric:
        return None
    return site_mode(wishes.metric, rules.modes)


def make_detector(terms: Terms) -> Detector:
    """Return the detector of a job's terms."""
    return detector(terms.rule, terms.mode)


def reckons_with_noise(terms: Terms) -> bool:
    """Tell whether the rule of these terms weighs a fall against noise; counting declines does not."""
    return parse_spec(terms.rule).name not in (_COUNTS, "never")


def _trusted(rules: Rules) -> bool:
    return rules.server is ServerClass.AUTHENTICATED or bool(rules.open_server_accepted)


def owners_params(run: RunFacts, first: Terms, rules: Rules) -> Mapping[str, str]:
    """Return a run's parameters as far as they are its owner's word: none where any user may write into the run.

    Nobody can change one once it is there, but anybody may set one there that is not there yet. `first` are the terms
    that the job was first seen with: what was set before the settings trusted anybody is not trusted later either.
    """
    return run.params if _still_trusted(first, rules) else {}


def _models_count(rules: Rules) -> bool:
    """Tell whether logged models count; never where anybody may make one in another's run."""
    return rules.logged_models and _trusted(rules)


def _ceiling(first: Terms, wishes: Wishes, rules: Rules) -> Rung:
    """Return how far the points are trusted: by the settings, now and when the job was first seen, or by its owner."""
    return Rung.ENFORCE if _still_trusted(first, rules) or wishes.rung is Rung.ENFORCE else Rung.WARN


def _still_trusted(first: Terms, rules: Rules) -> bool:
    """Tell whether the settings trust the points, now and when the job was first seen."""
    return first.trusted and _trusted(rules)


def _fewest(first: Terms, wishes: Wishes, rules: Rules) -> int:
    """Return the number of items behind an eval of the site's own metric: fewer make a rule more careful; 0: unknown.

    The owner's choice of another metric leaves it unknown.
    """
    if wishes.metric not in (None, "", first.metric):
        return 0
    now = rules.items if rules.metric == first.metric else 0
    return min(first.items or now, now or first.items)


def _with_k(rule: str, k: int | None) -> str:
    """Return the rule with the owner's k: who names a k asks for k declines; the site's `never` stays."""
    if k is None:
        return rule
    parsed = parse_spec(rule)
    if parsed.name == "never":
        return rule
    others = tuple(pair for pair in parsed.params if parsed.name == _COUNTS and pair[0] != "k")
    return format_spec(Spec(_COUNTS, (("k", float(k)), *others)))


def format_spec(spec: Spec) -> str:
    """Return a spec as text."""
    params = ",".join(f"{key}={value:g}" for key, value in spec.params)
    return f"{spec.name}:{params}" if params else spec.name
