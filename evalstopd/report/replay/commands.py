"""The commands of replay: what a rule would have done to the runs of the past."""

from pathlib import Path
from typing import Annotated

import typer

from evalstopd.errors import Misconfigured

app = typer.Typer(no_args_is_help=True, help="Judge stopping rules on runs that have ended.")


@app.callback()
def group() -> None:
    """Judge stopping rules on runs that have ended."""


@app.command()
def replay(  # noqa: PLR0913 - each is an option of the command
    sources: Annotated[list[Path], typer.Argument(help="Histories: *.jsonl.", metavar="SOURCE...")],
    rule: Annotated[list[str] | None, typer.Option(help="NAME[:k=v,...]; repeatable. Default: k-declines.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="Labelling to judge by; repeatable.")] = None,
    by: Annotated[list[str] | None, typer.Option(help="Rows by group too: family or evals; repeatable.")] = None,
    max_evals: Annotated[int | None, typer.Option(min=2, help="Show a rule at most this many evals a run.")] = None,
    base_rate: Annotated[float, typer.Option(min=0, max=1, help="Share of declining runs, for precision.")] = 0.48,
    *,
    primary: Annotated[bool, typer.Option("--primary", help="Only the one metric a run that is marked so.")] = False,
    json_out: Annotated[bool, typer.Option("--json", help="Answer in JSON.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Write one line a run and rule to this new file.")] = None,
) -> None:
    """Tell what each rule would have done to these runs: stops, compute saved, quality lost, with intervals."""
    from evalstopd.report.replay.run import Ask, answer  # noqa: PLC0415 - heavy; only when asked

    ask = Ask(tuple(sources), tuple(rule or ()), tuple(label or ()), tuple(by or ()), max_evals, base_rate, primary)
    try:
        typer.echo(answer(ask, json_out=json_out, csv=csv))
    except (Misconfigured, ValueError) as error:
        typer.echo(f"evalstopd: {error}", err=True)
        raise typer.Exit(Misconfigured.exit_code) from None
