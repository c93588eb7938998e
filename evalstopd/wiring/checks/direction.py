"""What `evalstopd check` says of the metrics that the site judges by: which way is better, and which judge nobody."""

from collections.abc import Iterable

from evalstopd.core.guards import metric_cautions
from evalstopd.core.metric_choice import direction_caution, is_sweeping, site_mode
from evalstopd.core.rules import Rules
from evalstopd.errors import Unavailable
from evalstopd.settings import Settings, make_rules


def direction(settings: Settings) -> str:
    """Tell which way is better. Raises Unavailable where jobs would only be observed by what the site says, or not."""
    rules = make_rules(settings)
    if bad := [*_of_metric(rules), *_of_patterns(rules)]:
        raise Unavailable("; ".join(bad))
    said = rules.mode or site_mode(rules.metric, rules.modes)
    by_metric = [f"{said.value} is better"] if rules.metric and said is not None else []
    return "; ".join([*by_metric, *_sweep(rules)]) or "the site judges by no metric of its own"


def _of_metric(rules: Rules) -> list[str]:
    """Return what speaks against the metric that is named, as a pass would find it by the name alone."""
    metric, told = rules.metric, site_mode(rules.metric, rules.modes)
    mode = rules.mode or told
    if not metric:
        return []
    if mode is None:
        return [_unsaid(ascii(metric), 'mode = "max" (or "min") to rules')]
    stated, sweeping = rules.says_mode(mode, metric), is_sweeping(metric, rules.modes)
    against = direction_caution(metric, mode, told, stated=stated, sweeping=sweeping)
    found = [*metric_cautions(metric), *([against] if against is not None else [])]
    return [f"jobs that {metric!a} judges are only observed: {each.text}" for each in found if each.refuse]


def _of_patterns(rules: Rules) -> list[str]:
    if not rules.metrics or rules.modes:
        return []
    chosen = f"what rules.metrics choose ({_listed(rules.metrics)})"
    return [_unsaid(chosen, 'rules.modes, as in { "*accuracy*" = "max" }')]


def _unsaid(what: str, remedy: str) -> str:
    return (
        f"nobody says which way is better for {what}: unless a job's owner or trainer does, it is only observed; "
        f"add {remedy}"
    )


def _sweep(rules: Rules) -> list[str]:
    """Say by what the direction of chosen metrics is told, and for which patterns that may not be all."""
    if not rules.metrics:
        return []
    open_ones = [each for each in rules.metrics if each != rules.metric and site_mode(each, rules.modes) is None]
    rest = f"; of what {_listed(open_ones)} choose, where one of its patterns fits" if open_ones else ""
    return [f"for metrics that are chosen rules.modes says it{rest}"]


def _listed(patterns: Iterable[str]) -> str:
    return ", ".join(map(ascii, patterns))
