"""The commands of the audit: the report on every decision, the chain over the book, decisions folded again."""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from evalstopd.errors import WrongUsage

OPEN_BOOK = "evalstopd.open_book"
"""Where the command line leaves what opens the store: settings file -> (store, now in seconds since the epoch)."""
T = TypeVar("T")
app = typer.Typer(no_args_is_help=True, help="Is the book what was written, and does each decision follow from it?")

Config = Annotated[
    Path | None, typer.Option("--config", "-c", help="Settings file; else $EVALSTOPD_CONFIG or the default place.")
]
Since = Annotated[str, typer.Option(help="From a day (2026-01-31, UTC) on, or of the last 30d; default: all.")]
Until = Annotated[str, typer.Option(help="Up to the beginning of a day, or until 30d ago; default: now.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


class Form(StrEnum):
    """How the report is printed."""

    TEXT = "text"
    CSV = "csv"
    JSON = "json"


def report(
    context: typer.Context,
    config: Config = None,
    since: Since = "",
    until: Until = "",
    form: Annotated[Form, typer.Option("--format", help="For people, for spreadsheets, for programs.")] = Form.TEXT,
) -> None:
    """Report every decision: its evals, rule, proof, checkpoint, times, outcome, GPU-hours; refusals too."""
    from evalstopd import __version__  # noqa: PLC0415  a command imports what it needs when it runs
    from evalstopd.report.audit.gather import audit_report  # noqa: PLC0415
    from evalstopd.report.audit.page import as_text  # noqa: PLC0415
    from evalstopd.report.audit.sheet import as_csv, as_json  # noqa: PLC0415

    book, now_s = _book(context, config)
    found = audit_report(book, _span(since, until, now_s), __version__)
    typer.echo({Form.TEXT: as_text, Form.CSV: as_csv, Form.JSON: as_json}[form](found))


@app.command()
def head(context: typer.Context, config: Config = None) -> None:
    """Print where the chain ends, as LENGTH:HASH. Keep it elsewhere: only then can `verify` show a cut or a rewrite."""
    from evalstopd.core.chain import Head  # noqa: PLC0415
    from evalstopd.report.text import plain  # noqa: PLC0415

    book, _ = _book(context, config)
    typer.echo(plain((book.head() or Head()).text))


@app.command()
def verify(
    context: typer.Context,
    config: Config = None,
    noted: Annotated[str, typer.Option("--head", help="A head noted elsewhere: LENGTH:HASH or HASH.")] = "",
    as_json: Json = False,
) -> None:
    """Walk the chain over the book and name the first row that was changed, removed, inserted, moved or cut off."""
    from evalstopd.report.audit.verify import sentences  # noqa: PLC0415
    from evalstopd.report.audit.verify import verify as walk  # noqa: PLC0415

    wanted = _head(noted) if noted else None
    book, _ = _book(context, config)
    found = walk(book, wanted, lambda links, most: _bar(links, most, "links"))
    _print(found, sentences(found), as_json)
    raise typer.Exit(0 if found.good else 1)


@app.command()
def replay(
    context: typer.Context,
    config: Config = None,
    since: Since = "",
    until: Until = "",
    as_json: Json = False,
) -> None:
    """Fold the evals of every decision again: the rule it names must say the same at the same eval."""
    from evalstopd import __version__  # noqa: PLC0415
    from evalstopd.report.audit.fold import refold, sentences  # noqa: PLC0415

    book, now_s = _book(context, config)
    span = _span(since, until, now_s)
    found = refold(book, span, __version__, lambda decided: _bar(decided, len(decided), "decisions"))
    _print(found, sentences(found), as_json)
    raise typer.Exit(0 if found.good else 1)


def _book(context: typer.Context, config: Path | None) -> tuple[Any, float]:
    opens: Callable[[Path | None], tuple[Any, float]] = context.meta[OPEN_BOOK]
    return opens(config)


def _span(since: str, until: str, now_s: float) -> Any:
    from evalstopd.ports import Span  # noqa: PLC0415
    from evalstopd.report.scorecard.since import since_s  # noqa: PLC0415

    # What is written while the report is made belongs to it: up to the next second.
    span = Span(since_s(since, now_s), since_s(until, now_s, "--until") if until else now_s + 1)
    if span.since_s >= span.until_s:
        raise WrongUsage("--since must be before --until" if until else "--since lies in the future")
    return span


def _head(text: str) -> Any:
    from evalstopd.core.chain import parse_head  # noqa: PLC0415

    try:
        return parse_head(text)
    except ValueError as error:
        raise WrongUsage(f"--head: {error}") from None


def _bar(items: Iterable[T], total: int, what: str) -> Iterable[T]:
    """Show a bar on a terminal's standard error while items are taken; elsewhere nothing."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import track  # noqa: PLC0415

    console = Console(stderr=True)
    return track(items, what, total, console=console, transient=True, disable=not console.is_terminal)


def _print(found: Any, lines: Sequence[str], as_json: bool) -> None:  # noqa: FBT001  a flag of the user's
    from evalstopd.report.render import to_json  # noqa: PLC0415

    typer.echo(to_json(found) if as_json else "\n".join(lines))
