"""The commands of replay: what a rule would have done to the runs of the past, and which rule to choose."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from evalstopd.core.model import Mode
from evalstopd.errors import Misconfigured, WrongUsage
from evalstopd.report.replay.halves import Half

app = typer.Typer(no_args_is_help=True, help="Judge stopping rules on runs that have ended.")

_SOURCES = (
    "*.jsonl, *.csv, a folder (trainer_state.json, TensorBoard event files, MLflow file store), or "
    "mlflow:EXPERIMENT, an experiment of the settings' MLflow server."
)
Sources = Annotated[list[Path] | None, typer.Argument(help=_SOURCES, metavar="SOURCE...", show_default=False)]
Rules = Annotated[list[str] | None, typer.Option(help="NAME[:k=v,...], repeatable; `recommended` is the live default.")]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        help="label_true, label_agreed, label, label_boot or label_sigma_free, repeatable; default: the first there is."
    ),
]
By = Annotated[list[str] | None, typer.Option(help="Rows by group too: family or evals, repeatable.")]
Metric = Annotated[str, typer.Option(help="Which metric of a run; default: all that are held out, by their names.")]
Direction = Annotated[Mode | None, typer.Option(help="Which way is better; default: as told, or by the name.")]
Items = Annotated[
    int, typer.Option(min=0, help="Items behind each eval of a score in [0, 1], where runs do not log it.")
]
Dataset = Annotated[
    str, typer.Option(help="mlflow: sources: of several datasets under one name the one to read, by name or digest.")
]
MaxEvals = Annotated[int | None, typer.Option(min=2, help="Show a rule at most so many evals, evenly picked.")]
Base = Annotated[float, typer.Option(min=0, max=1, help="Share of declining runs that the precision is for.")]
Halves = Annotated[Half, typer.Option(help="Only the sources of one half, split by the hash of their name.")]
Primary = Annotated[bool, typer.Option("--primary", help="Only each run's primary metric.")]
Config = Annotated[Path | None, typer.Option("--config", "-c", help="Settings file, for mlflow: sources.")]
Sacct = Annotated[
    Path | None,
    typer.Option(
        help="Tell savings in GPU-hours: a file of `sacct --json`, or a table of `sacct --parsable2`; its fields: "
        "docs/rules.md.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]


@app.command()
def replay(  # noqa: PLR0913 - each is an option of the command
    context: typer.Context,
    sources: Sources = None,
    *,
    rule: Rules = None,
    label: Labels = None,
    by: By = None,
    metric: Metric = "",
    mode: Direction = None,
    items: Items = 0,
    dataset: Dataset = "",
    max_evals: MaxEvals = None,
    base_rate: Base = 0.48,
    half: Halves = Half.ALL,
    primary: Primary = False,
    null_table: Annotated[bool, typer.Option("--null-table", help="False stops on runs with nothing wrong.")] = False,
    runs: Annotated[int, typer.Option(min=1, max=100_000, help="Made-up runs a case of the null table.")] = 400,
    seed: Annotated[int, typer.Option(help="Seed of the null table.")] = 1,
    csv: Annotated[Path | None, typer.Option(help="Write one line a run and rule to this file.")] = None,
    plots: Annotated[Path | None, typer.Option(help="Draw curves and trade-offs into this folder.")] = None,
    sacct: Sacct = None,
    config: Config = None,
    json_out: Json = False,
) -> None:
    """Tell what each rule would have done to these runs: stops, compute saved, quality lost, with intervals."""
    from evalstopd.report.replay import run  # noqa: PLC0415 - heavy; only when asked

    if not null_table:
        _check_named(sources)
    lists = (tuple(sources or ()), tuple(rule or ()), tuple(label or ()), tuple(by or ()))
    pick, tracker = run.Pick(metric, mode, items, dataset), _tracker(context, config)
    ask = run.Ask(*lists, max_evals, base_rate, primary, half, pick, tracker, sacct)
    if null_table:
        _say(lambda: run.false_stops(ask, runs, seed, json_out=json_out))
    else:
        _say(lambda: run.replayed(ask, run.Places(csv, plots), json_out=json_out))


@app.command()
def tune(  # noqa: PLR0913 - each is an option of the command
    context: typer.Context,
    sources: Sources = None,
    *,
    alpha: Annotated[float, typer.Option(min=0, max=1, help="False stops a site can bear, of healthy runs.")] = 0.02,
    label: Labels = None,
    metric: Metric = "",
    mode: Direction = None,
    items: Items = 0,
    dataset: Dataset = "",
    max_evals: MaxEvals = None,
    base_rate: Base = 0.48,
    half: Halves = Half.ALL,
    primary: Primary = False,
    config: Config = None,
    json_out: Json = False,
) -> None:
    """Propose a rule and threshold for a false-stop budget, judged on other sources than it was chosen on."""
    from evalstopd.report.replay import run  # noqa: PLC0415 - heavy; only when asked

    _check_named(sources)
    given = (tuple(sources or ()), (), tuple(label or ()), (), max_evals, base_rate, primary, half)
    ask = run.Ask(*given, run.Pick(metric, mode, items, dataset), _tracker(context, config))
    _say(lambda: run.tuned(ask, alpha, json_out=json_out))


def _check_named(sources: list[Path] | None) -> None:
    if not sources:
        typer.echo(f"evalstopd: name a source: {_SOURCES}", err=True)
        raise typer.Exit(2)


def _tracker(context: typer.Context, config: Path | None) -> Callable[[], Any] | None:
    """Return what opens the tracker of the settings, where the program that runs us has given a way to."""
    opens: Callable[[Path | None], Any] | None = context.obj
    return None if opens is None else lambda: opens(config)


def _say(answer: Callable[[], str]) -> None:
    try:
        typer.echo(answer())
    except (Misconfigured, ValueError) as error:
        from evalstopd.report.text import plain  # noqa: PLC0415

        typer.echo(f"evalstopd: {plain(str(error), 1000)}", err=True)
        raise typer.Exit(getattr(error, "exit_code", WrongUsage.exit_code)) from None
