"""The command `evalstopd estimates`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from evalstopd.core.estimates import PastLife

OPEN_PAST = "evalstopd.open_past"
"""Where the command line leaves what reads accounting: (settings file, seconds since the epoch or 0) -> past lives."""

Config = Annotated[
    Path | None, typer.Option("--config", "-c", help="Settings file; else $EVALSTOPD_CONFIG or the default place.")
]
Since = Annotated[str, typer.Option(help="Jobs that ended since a day (2026-01-31, UTC) or in the last 30d.")]
Sacct = Annotated[
    Path | None,
    typer.Option(
        help="A file instead: of `sacct --json`, or of `sacct --parsable2 --allocations --duplicates --allusers "
        "--format=JobID,JobName,User,Account,Submit,End,ElapsedRaw,TimelimitRaw,State,AllocTRES`. In a table a name "
        "with a bar or a line break breaks its record; JSON takes any name."
    ),
]


def estimates(
    context: typer.Context,
    config: Config = None,
    since: Since = "30d",
    *,
    sacct: Sacct = None,
    json_out: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    csv_out: Annotated[bool, typer.Option("--csv", help="Print one line a group for spreadsheets.")] = False,
) -> None:
    """Show how far estimates of jobs' lengths are off, against the time limits: each judged in the order of time."""
    from evalstopd.report.estimates.judge import judge  # noqa: PLC0415  a command imports what it needs when it runs
    from evalstopd.report.estimates.show import as_csv, as_view, figures  # noqa: PLC0415
    from evalstopd.report.render import show, to_json  # noqa: PLC0415

    found = figures(judge(_lives(context, config, since, sacct)))
    if json_out:
        typer.echo(to_json(found.as_data()))
    elif csv_out:
        typer.echo(as_csv(found))
    else:
        show(as_view(found))


def _lives(context: typer.Context, config: Path | None, since: str, sacct: Path | None) -> Sequence[PastLife]:
    from evalstopd.report.estimates.files import read_file  # noqa: PLC0415

    if sacct is not None:
        return read_file(sacct)
    read: Callable[[Path | None, str], Any] = context.meta[OPEN_PAST]
    return tuple(read(config, since))
