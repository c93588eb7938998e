"""The scorecard as people read it: a few lines a rule, then every would-be stop."""

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evalstopd.report.render import number, when
from evalstopd.report.replay.intervals import Estimate
from evalstopd.report.scorecard.book import RuleCard, Scorecard
from evalstopd.report.scorecard.fate import StopRow
from evalstopd.report.text import plain

_COLUMNS = ("JOB", "USER", "AT", "STEP", "BEST", "LATER BEST", "EVALS AFTER", "LOST", "GPU-HOURS", "ENDED", "WAS")


def scorecard_view(found: Scorecard) -> RenderableType:
    """Return the cards, what counts for nothing, the overrides, and the table of would-be stops."""
    lines = [line for each in found.cards for line in (*_card_lines(each), "")]
    if found.apart:
        counted = ", ".join(f"{count} {why}" for why, count in sorted(found.apart.items()))
        lines.append(f"jobs that say nothing: {counted}")
    lines += [f"{when(each.at_s)}  {plain(each.text, 500)}" for each in found.overrides]
    parts: list[RenderableType] = [Text(line) for line in lines]
    return Group(*parts, _table(found.stops)) if found.stops else Group(*parts, Text("no would-be stop was booked"))


def _card_lines(each: RuleCard) -> Iterator[str]:
    card = each.card
    yield f"rule {plain(card.rule)}: {card.judged} jobs can tell, over {card.days:.1f} days"
    yield f"  wronged {card.wronged} of {card.judged} jobs{_interval(card.wronged_share)}"
    told = card.right + card.wronged
    yield f"  right {card.right} of {told} would-be stops that can tell{_interval(card.right_share)}"
    yield f"  would have lost more than 10 % of its range{_interval(card.lost_over_10pct, of=True)}"
    yield f"  GPU-hours saved by right stops {card.saved_hours:.1f}, a job{_hours(card.saved_a_job)}"
    yield f"  GPU-hours taken from wronged jobs {card.taken_hours:.1f}"
    yield f"  counted for nothing: {card.untested} untested, {card.unfinished} unfinished, {card.stopped} stopped"
    for verdict in each.verdicts:
        yield f"  {verdict.rung}: {'passed' if verdict.met else 'not passed: ' + '; '.join(verdict.missing)}"


def _interval(share: Estimate, *, of: bool = False) -> str:
    if share.value is None or share.low is None or share.high is None:
        return ": unknown"
    figures = f": {share.value:.1%} [{share.low:.1%}, {share.high:.1%}]"
    return f"{figures} of the jobs" if of else figures


def _hours(each: Estimate) -> str:
    if each.value is None or each.low is None or each.high is None:
        return ": unknown"
    return f": {each.value:.2f} [{max(0.0, each.low):.2f}, {each.high:.2f}]"


def _table(stops: Sequence[StopRow]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in _COLUMNS:
        table.add_column(title, overflow="ellipsis")
    for row in stops:
        table.add_row(*map(Text, _cells(row)))
    return table


def _cells(row: StopRow) -> tuple[str, ...]:
    return (
        plain(row.job, 20),
        plain(row.user, 20),
        when(row.at_s),
        str(row.trigger_step),
        number(row.best_before),
        number(row.best_after),
        str(row.evals_after),
        f"{row.lost:.0%}",
        "-" if row.gpu_hours is None else f"{row.gpu_hours:.1f}",
        plain(row.ending, 20) or "running",
        row.fate.value,
    )
