"""The command `evalstopd estimates`."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalstopd.errors import WrongUsage

if TYPE_CHECKING:
    from evalstopd.report.estimates.files import Past

OPEN_PAST = "evalstopd.open_past"
"""Where the command line leaves what reads accounting: (settings file, seconds since the epoch or 0) -> past lives."""

Config = Annotated[
    Path | None, typer.Option("--config", "-c", help="Settings file; else $EVALSTOPD_CONFIG or the default place.")
]
Since = Annotated[
    str,
    typer.Option(
        help="Jobs that ended since a day (2026-01-31, UTC) or in the last days (30d, the default). With --sacct: all, "
        "or since a day by the file's own clock, or in the last days up to the file's newest end."
    ),
]
Sacct = Annotated[
    Path | None,
    typer.Option(
        help="A file instead: of `sacct --json`, or a table of `sacct --parsable2`; its fields: docs/estimates.md."
    ),
]


def estimates(
    context: typer.Context,
    config: Config = None,
    since: Since = "",
    *,
    sacct: Sacct = None,
    json_out: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    csv_out: Annotated[bool, typer.Option("--csv", help="Print one line a group for spreadsheets.")] = False,
) -> None:
    """Show how far estimates of jobs' lengths are off, against the time limits: each judged in the order of time."""
    from evalstopd.report.estimates.judge import judge  # noqa: PLC0415  a command imports what it needs when it runs
    from evalstopd.report.estimates.show import as_csv, as_view, figures  # noqa: PLC0415
    from evalstopd.report.render import show, to_json  # noqa: PLC0415

    if json_out and csv_out:
        raise WrongUsage("--json and --csv are two forms of one answer: give one of them")
    past = _past(context, config, since, sacct)
    trial = judge(past.lives)
    found = figures(replace(trial, left_out={**trial.left_out, **past.left_out}))
    if json_out:
        typer.echo(to_json(found.as_data()))
    elif csv_out:
        typer.echo(as_csv(found))
    else:
        show(as_view(found))


def _past(context: typer.Context, config: Path | None, since: str, sacct: Path | None) -> "Past":
    from evalstopd.report.estimates.files import Past, read_file  # noqa: PLC0415

    if sacct is not None:
        return read_file(sacct, since)
    read: Callable[[Path | None, str], Any] = context.meta[OPEN_PAST]
    return Past(tuple(read(config, since)))
