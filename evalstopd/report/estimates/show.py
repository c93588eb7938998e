"""Errors of estimates for people, programs and spreadsheets; users' text does nothing in any of them."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from evalstopd.report.cells import write_table
from evalstopd.report.estimates.judge import Judged, Trial, by_name
from evalstopd.report.estimates.score import Errors, Row, row
from evalstopd.report.replay.intervals import Estimate
from evalstopd.report.text import plain

_FACTORS = tuple(2 ** (place / 4) for place in range(29))
_TABLE_ROWS = 20
_NAME_MOST = 80


@dataclass(frozen=True, slots=True)
class Figures:
    """All that the command has to say: over all jobs, by name (the largest groups first), and what was left out."""

    everything: Row | None
    names: tuple[Row, ...]
    left_out: dict[str, int]
    judged: tuple[Judged, ...]

    def as_data(self) -> dict[str, object]:
        """Return what programs read."""
        return {"all": self.everything, "names": self.names, "left_out": self.left_out}


def figures(trial: Trial) -> Figures:
    """Return the errors over all that was judged, and by user, account and name."""
    names = tuple(row(group, whose) for whose, group in by_name(trial.judged).items())
    return Figures(row(trial.judged) if trial.judged else None, names, dict(trial.left_out), trial.judged)


def as_view(found: Figures) -> RenderableType:
    """Return a few lines over all jobs, a picture, and a table of the largest groups."""
    left_out = ", ".join(f"{count} {why}" for why, count in found.left_out.items())
    told = [Text(f"not judged: {left_out}")] if left_out else []
    if found.everything is None:
        return Group(Text("no job of the past can judge an estimate"), *told)
    lines = [Text(line) for line in _lines(found.everything)]
    return Group(*lines, *told, Text(""), Text.from_ansi(_picture(found.judged)), _table(found.names[:_TABLE_ROWS]))


def as_csv(found: Figures) -> str:
    """Return one line a group, all jobs first."""
    rows = [*([found.everything] if found.everything else []), *found.names]
    out = io.StringIO()
    lines = ([each.user, each.account, each.name, each.jobs, *_cells(each)] for each in rows)
    write_table(out, [["user", "account", "name", "jobs", *_HEAD], *lines], _NAME_MOST)
    return out.getvalue().rstrip("\n")


_ERRORS = ("median_off", "mean_off", "hours", "within_twice", "over", "under", "in_order")
_HEAD = [*(f"limit_{name}" for name in _ERRORS), *(f"estimate_{name}" for name in _ERRORS), "nearer", "gain"]


def _cells(each: Row) -> Iterator[float | None]:
    for errors in (each.limit, each.estimate):
        yield from (_figure(getattr(errors, name)) for name in _ERRORS)
    yield from (_figure(each.nearer), _figure(each.gain))


def _figure(value: Estimate | float | None) -> float | None:
    value = value.value if isinstance(value, Estimate) else value
    return None if value is None else round(value, 4)


def _lines(all_of: Row) -> Iterator[str]:
    yield f"{all_of.jobs} jobs that ended of themselves, each estimated from what had ended before it was submitted"
    yield f"{'':<30}{'time limit':>24}{'estimate':>24}"
    both = (all_of.limit, all_of.estimate)
    yield _line("off by a factor, median", [f"{2.718281828**each.median_off:.2f}" for each in both])
    yield _line("|ln ratio|, mean", [_spelled(each.mean_off) for each in both])
    yield _line("hours off, mean", [_spelled(each.hours) for each in both])
    yield _line("within twice the length", [_percent(each.within_twice) for each in both])
    yield _line("more than twice too long", [_percent(each.over) for each in both])
    yield _line("less than half the length", [_percent(each.under) for each in both])
    yield _line("pairs in the right order", [_order(each) for each in both])
    yield f"nearer to the length than the limit: {_percent(all_of.nearer)} of {all_of.nearer.of} jobs where they differ"
    yield f"|ln ratio| smaller by {_spelled(all_of.gain)}, 95 % by a bootstrap over users"


def _line(what: str, cells: Sequence[str]) -> str:
    return f"{what:<30}{''.join(f'{cell:>24}' for cell in cells)}"


def _spelled(found: Estimate) -> str:
    if found.value is None or found.low is None or found.high is None:
        return "-" if found.value is None else f"{found.value:.2f}"
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _percent(found: Estimate) -> str:
    if found.value is None or found.low is None or found.high is None:
        return "-"
    return f"{found.value:.1%} [{found.low:.1%}, {found.high:.1%}]"


def _order(errors: Errors) -> str:
    return "-" if errors.in_order is None else f"{errors.in_order:.1%}"


def _table(rows: Sequence[Row]) -> RenderableType:
    table = Table(box=None, pad_edge=False)
    for title in ("USER", "ACCOUNT", "NAME", "JOBS", "LIMIT OFF BY", "ESTIMATE OFF BY", "NEARER"):
        table.add_column(title, no_wrap=True)
    for each in rows:
        off = (f"x {2.718281828**errors.median_off:.2f}" for errors in (each.limit, each.estimate))
        names = (plain(text, 24) for text in (each.user, each.account, each.name))
        nearer = "-" if each.nearer.value is None else f"{each.nearer.value:.0%}"
        table.add_row(*map(Text, (*names, str(each.jobs), *off, nearer)))
    return table


def _picture(judged: Sequence[Judged]) -> str:
    """Draw which share of jobs is within which factor of its length, by the limit and by the estimate."""
    import plotext  # noqa: PLC0415  only where a picture is drawn

    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plotsize(80, 14)
    for label, offs in (
        ("time limit", [abs(each.limit_off) for each in judged]),
        ("estimate", [abs(each.off) for each in judged]),
    ):
        factors = [2.718281828**off for off in offs]
        shares = [100 * sum(each <= factor * 1.0001 for each in factors) / len(factors) for factor in _FACTORS]
        marker = "braille" if label == "estimate" else "."
        plotext.plot([place / 4 for place in range(len(_FACTORS))], shares, marker=marker, label=label)
    plotext.xticks(list(range(8)), [f"x{2**place}" for place in range(8)])
    plotext.ylim(0, 100)
    plotext.ylabel("% of jobs within")
    return str(plotext.build())
