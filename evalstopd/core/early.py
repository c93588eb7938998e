"""The early warning: whether an owner is told before a stop is decided, and when that telling counts as the notice."""

from dataclasses import replace

from evalstopd.core.detectors import Declining, Verdict
from evalstopd.core.model import Life, Rung
from evalstopd.core.watch import EarlyWarning, Terms, Watch


def warned(watch: Watch, terms: Terms, answer: Verdict, now_s: float) -> Watch | None:
    """Return the watch with an early warning, where its newest verdict is one step from a stop; None for no warning.

    Only the newest verdict counts: a decline that is over when it is read is no reason to write to anybody. A life
    is warned once, whatever became of the message.
    """
    if not isinstance(answer, Declining) or not answer.last or terms.rung < Rung.WARN:
        return None
    if watch.last_life != watch.life.restarts or of_this_life(watch) is not None:
        return None
    return replace(watch, early=_warning(watch, terms, answer, now_s))


def of_this_life(watch: Watch) -> EarlyWarning | None:
    """Return the early warning of the watch's present life, if there was one."""
    early = watch.early
    same = early is not None and Life(early.restarts, early.submitted_s) == watch.life
    return early if same else None


def stands(watch: Watch, terms: Terms) -> bool:
    """Tell whether the owner is known to have been told of the very decline that the curve now shows.

    A new best withdraws the warning, and so does another rule, metric, dataset or direction. What was said on the
    warn rung, that nothing would be done, is no notice for enforce.
    """
    early = of_this_life(watch)
    if early is None or early.told_s is None or early.rung < terms.rung:
        return False
    then = (early.best_step, early.rule, early.metric, early.mode, early.dataset)
    return then == (watch.best_step, terms.rule, terms.metric, terms.mode.value, terms.dataset)


def told_s(watch: Watch, terms: Terms) -> float | None:
    """Return when the owner was told, as far as that counts as the notice of a stop."""
    return watch.early.told_s if watch.early is not None and stands(watch, terms) else None


def _warning(watch: Watch, terms: Terms, answer: Declining, now_s: float) -> EarlyWarning:
    return EarlyWarning(
        restarts=watch.life.restarts,
        submitted_s=watch.life.submitted_s,
        at_s=now_s,
        step=watch.last_step if watch.last_step is not None else 0,
        count=answer.count,
        of=answer.of,
        best_step=watch.best_step,
        rung=int(terms.rung),
        rule=terms.rule,
        metric=terms.metric,
        mode=terms.mode.value,
        notice_s=terms.notice_s,
        action=terms.action.value,
        dataset=terms.dataset,
    )
