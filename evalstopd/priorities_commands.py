"""`evalstopd priorities show` and `priorities restore`: the order of waiting jobs, and taking it back."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="The order of waiting jobs by the site's policy.")
Config = Annotated[
    Path | None, typer.Option("--config", "-c", help="Settings file; else $EVALSTOPD_CONFIG or the default place.")
]


@app.command()
def show(
    config: Config = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Show how the governed waiting jobs stand and are wanted, what would be changed, and who is left alone and why."""
    from evalstopd.priorities import told_still_set
    from evalstopd.report.render import priority_table, to_json
    from evalstopd.report.render import show as print_table
    from evalstopd.settings import load_settings
    from evalstopd.wiring.priorities import show_priorities

    settings = load_settings(config)
    rows = show_priorities(settings)
    if as_json:
        typer.echo(to_json(rows))
        return
    if not settings.priorities.policy:
        typer.echo(f"priorities.policy is not set: {told_still_set(len(rows))}")
    if settings.priorities.policy or rows:
        print_table(priority_table(rows))


@app.command()
def restore(config: Config = None) -> None:
    """Give every waiting job back the Nice or Priority it had. While a daemon runs, switch its policy off instead."""
    from evalstopd.report.text import plain
    from evalstopd.settings import load_settings
    from evalstopd.wiring.priorities import restore_priorities

    typer.echo(plain(restore_priorities(load_settings(config)), 2000))
