"""Rows as people read them (tables, the curve in the terminal) and as programs do (JSON)."""

import json
import math
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from evalstopd.breakers import BreakerRow
from evalstopd.core.model import Rung
from evalstopd.core.noise import sentence
from evalstopd.core.words import UNREAD, early_state, found_as, unsure
from evalstopd.priorities import Place
from evalstopd.report.rows import Explanation, StatusRow
from evalstopd.report.text import of_dataset, plain

_PIPE_WIDTH = 400
_MOST_DRAWN = 500


def to_json(value: object) -> str:
    """Return rows as JSON; what JSON has no number for (NaN, infinities) becomes text."""
    return json.dumps(_plain_data(value), indent=2, ensure_ascii=True, allow_nan=False)


def show(what: RenderableType) -> None:
    """Print to standard output; where that is no terminal, lines are as wide as they need to be."""
    console = Console(highlight=False)
    Console(highlight=False, width=None if console.is_terminal else _PIPE_WIDTH).print(what, markup=False)


def when(at_s: float) -> str:
    """Return a moment in UTC; the seconds themselves where no calendar has them."""
    try:
        return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return f"{at_s!r} s"


def number(value: float | None) -> str:
    """Return a score as tables show it."""
    return "-" if value is None else f"{value:.4g}"


def status_table(rows: Sequence[StatusRow]) -> RenderableType:
    """Return the overview of watched jobs: a table that fits 80 columns, and below it why they stand as they do."""
    if not rows:
        return Text("no job is watched")
    table = Table(box=None, pad_edge=False)
    for title in ("JOB", "USER", "RUNG", "EVALS", "DOWN", "BEST", "LAST", "STATE"):
        table.add_column(title, no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, _status_cells(row)))
    reasons = [Text(f"{row.job} {row.state}: {plain(row.why)}") for row in rows if row.why]
    return Group(table, *([Text("")] if reasons else []), *reasons)


def breaker_table(rows: Sequence[BreakerRow]) -> RenderableType:
    """Return the breakers: which hold, since when and why."""
    table = Table(box=None, pad_edge=False)
    for title in ("CLUSTER", "BREAKER", "HOLDS", "SINCE", "UNTIL", "BY", "WHY"):
        table.add_column(title, no_wrap=title != "WHY")
    for row in rows:
        cells = (row.cluster, row.scope, "yes" if row.holds else "no", when(row.at_s), when(row.until_s), row.by)
        table.add_row(*(Text(plain(cell, 60)) for cell in cells), Text(plain(row.text)))
    return table


def _digits(number: float) -> str:
    """Return a number so that times of the same day do not all look the same."""
    return f"{number:g}" if abs(number) < 1000 else f"{number:.0f}"


def priority_table(rows: Sequence[Place]) -> RenderableType:
    """Return the waiting jobs as they are wanted, and those left alone."""
    table = Table(box=None, pad_edge=False)
    for title in ("JOB", "USER", "LINE", "NOW", "WANTED", "RANKED BY", "PRIORITY", "WITHOUT US", "NEXT", "NICE", "WHY"):
        table.add_column(title, no_wrap=title != "WHY")
    for row in rows:
        ranked = " ".join(_digits(each) for each in row.key)
        places = tuple("-" if each is None else str(each) for each in (row.place, row.wanted))
        numbers = (str(row.priority), str(row.natural), str(row.next), str(row.nice))
        cells = (row.job, row.user, f"{row.partition}/{row.qos}", *places, ranked, *numbers)
        table.add_row(*(Text(plain(cell, 60)) for cell in cells), Text(plain(row.why)))
    return table


def explanation(found: Explanation, proofs: str = "") -> RenderableType:
    """Return what is known of a job: who it is, its curve with the verdicts, and what was decided why.

    `proofs` tells the owner of a job without a run how it gets one.
    """
    watch = found.watch
    proven = f" (proven by {watch.proof}, {'both ways' if watch.two_way else 'one way'})" if watch.proof else ""
    head = [
        f"job {watch.key.job_id} of {plain(watch.user)}, {watch.gpus} GPUs, {plain(watch.name)}",
        f"run {plain(watch.run_id)}{plain(proven)}" if watch.run_id else f"run none{f': {proofs}' if proofs else ''}",
        f"metric {plain(found.terms.metric) or 'none'}{of_dataset(watch.dataset_now)} ({found.terms.mode.value})",
        f"rule {plain(found.terms.rule)}, rung {found.terms.rung.word}",
        _so_far(found),
    ]
    if found.noise is not None:
        head.append(sentence(found.noise.noise, found.noise.fall))
    parts: list[RenderableType] = [Text(line) for line in head]
    if found.evals:
        parts += [Text(""), _drawing(found), Text("")]
    parts += [Text(plain(found.withheld, 400))] if found.withheld else []
    parts += [Text(line) for line in _decisions(found)]
    return Group(*parts)


def _so_far(found: Explanation) -> str:
    """Tell how many evals are shown; of a run that is not read any more, of when they are."""
    watch, read_s = found.watch, found.watch.reads.good_s
    if not any(each.code in UNREAD and (read_s is None or each.at_s > read_s) for each in found.remarks):
        return f"{watch.evals} evals, {watch.declines} declines now"
    if read_s is None:
        return "no evals: its run was never read"
    then = f"{watch.evals} evals, {watch.declines} declines, as its run was last read {when(read_s)}"
    return f"{then}: what came since is not read and not shown"


def _drawing(found: Explanation) -> Text:
    try:
        return Text.from_ansi(draw_curve(found))
    except (ValueError, OverflowError, ZeroDivisionError):
        return Text("the scores span too much to be drawn: --json has them")


def draw_curve(found: Explanation) -> str:
    """Return the curve as terminal graphics: scores by step, declines, the best and the stop marked.

    Of a long curve the plainest part is thinned out; what is marked is always drawn.
    """
    import plotext

    every = max(1, len(found.evals) // _MOST_DRAWN)
    drawn = [each for number, each in enumerate(found.evals) if each.verdict or number % every == 0]
    steps = [each.step for each in drawn]
    scores = [each.score for each in drawn]
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plotsize(90, 20)
    plotext.plot(steps, scores, marker="braille", label=plain(found.terms.metric, 40))
    marks = (
        ("declining", "v", [e for e in drawn if e.verdict.startswith("declining")][-_MOST_DRAWN:]),
        ("stop", "X", [e for e in drawn if e.verdict == "stop"][-_MOST_DRAWN:]),
        ("best", "O", [e for e in found.evals if e.step == found.watch.best_step]),
    )
    for label, marker, points in marks:
        if points:
            plotext.scatter([e.step for e in points], [e.score for e in points], marker=marker, label=label)
    low, high = min(scores), max(scores)
    # Room above the curve for the legend.
    plotext.ylim(low, high + 0.35 * ((high - low) or 1.0))
    plotext.xlabel("step")
    return str(plotext.build())


def _decisions(found: Explanation) -> list[str]:
    lines = [
        f"would be stopped at step {stop.evidence.trigger_step}: {plain(stop.evidence.reason)}"
        for stop in found.would_be
    ]
    for intent in found.intents:
        lines.append(f"stop decided at step {intent.evidence.trigger_step}, now {intent.state.value}:")
        lines += [f"  {when(e.at_s)}  {e.kind}: {plain(e.text, 500)}" for e in found.events if e.intent_id == intent.id]
        lines += [f"  {plain(unsure(intent))}"] if intent.telling else []
    lines += [f"early warning: {plain(early_state(found.watch.early))}"] if found.watch.early is not None else []
    lines += [f"credited: {c.gpu_hours:.3f} GPU-hours to {plain(c.account)}/{plain(c.user)}" for c in found.credits]
    lines += [f"checkpoint of step {p.step}: {plain(found_as(p), 400)}" for p in found.pins]
    lines += [f"{when(r.at_s)}  {plain(r.text, 300)}" for r in found.remarks]
    return lines or ["nothing was decided"]


def _status_cells(row: StatusRow) -> tuple[str, ...]:
    return (
        row.job,
        plain(row.user, 12),
        row.rung,
        str(row.evals),
        str(row.declines),
        _score_at(row.best_score, row.best_step),
        _score_at(row.last_score, row.last_step),
        row.state,
    )


def _score_at(score: float | None, step: int | None) -> str:
    return "-" if score is None else f"{score:.4g} @{step}"


def _plain_data(value: object) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain_data(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Rung):
        return value.word
    if isinstance(value, dict):
        return {str(key): _plain_data(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_data(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value
