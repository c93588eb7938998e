"""Settings as the core wants them."""

from evalstopd.core.caps import Caps
from evalstopd.core.detectors import detector
from evalstopd.core.lineup import PriorityRules
from evalstopd.core.model import Mode
from evalstopd.core.policies import policy
from evalstopd.core.preempt import PreemptRules
from evalstopd.core.rules import ActionRule, Rules
from evalstopd.core.spec import parse_spec
from evalstopd.settings.sense import LOSS_AWARE
from evalstopd.settings.whole import Settings


def make_rules(settings: Settings) -> Rules:
    """Return the site's rules as the core wants them; the rule with all its numbers: a version may change them."""
    return Rules(
        rung=settings.rules.rung,
        rule=detector(settings.rules.rule, settings.rules.mode or Mode.MAX).spec,
        metric=settings.rules.metric,
        proxy=settings.rules.proxy,
        items=settings.rules.items,
        mode=settings.rules.mode,
        metrics=settings.rules.metrics,
        modes=tuple(settings.rules.modes.items()),
        dataset=settings.rules.dataset,
        partitions=settings.rules.partitions,
        exempt_accounts=settings.rules.exempt_accounts,
        server=settings.mlflow.server,
        open_server_accepted=settings.trust.open_mlflow,
        notice_s=settings.enforce.notice_s,
        tick_s=settings.daemon.tick_s,
        stale_s=settings.rules.stale_s,
        candidates=settings.rules.candidates,
        caps=Caps(**settings.caps.model_dump()),
        action=settings.enforce.stop_action,
        actions=tuple(
            ActionRule(each.stop_action, each.partition, each.metric, each.rule) for each in settings.enforce.actions
        ),
        logged_models=settings.enforce.logged_models,
    )


def make_priorities(settings: Settings) -> PriorityRules | None:
    """Return how waiting jobs are put in order; None where that is Slurm's business alone."""
    asked = settings.priorities
    if not asked.policy:
        return None
    return PriorityRules(
        policy=policy(asked.policy),
        partitions=asked.partitions,
        lever=asked.mechanism,
        most=asked.max_changes,
        interval_s=asked.min_interval_s,
        reassert=asked.reassert,
        gain=asked.loss_gain if parse_spec(asked.policy).name == LOSS_AWARE else None,
        loss_metric=asked.loss_metric if parse_spec(asked.policy).name == LOSS_AWARE else "",
    )


def make_preempt(settings: Settings) -> PreemptRules | None:
    """Return when running jobs yield to waiting ones; None where they never do."""
    asked = settings.preempt
    if not asked.policy:
        return None
    return PreemptRules(**{**asked.model_dump(), "policy": policy(asked.policy)})
