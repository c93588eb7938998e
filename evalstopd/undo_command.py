"""The command `evalstopd undo`: it works for an owner who can read neither settings nor store."""

from pathlib import Path
from typing import Annotated

import typer


def undo(
    job: Annotated[str, typer.Argument(help="Slurm job id (A_T for an array task), or the id of an intent.")],
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="Settings file; else $EVALSTOPD_CONFIG or the default place.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Take a stop back: release a held job under a veto, or say how a cancelled one goes on. For owner and operator."""
    from evalstopd.report.render import to_json
    from evalstopd.wiring.undo import undo_stop

    done = undo_stop(job, config)
    typer.echo(to_json(done) if as_json else "\n".join(done.lines))
