"""The commands `simulate` and `reproduce`; all that is heavy is imported where it is used."""

from collections.abc import Callable
from typing import Annotated, Any

import typer

app = typer.Typer(help="The emulated cluster: what a rule would do, and every experiment of the paper.")

_DETECTOR = "none, k-declines, drop-test, recommended, ... as name:a=1,b=2; put-last+NAME; an oracle"


@app.command()
def simulate(  # noqa: PLR0913, PLR0917 - one parameter is one option
    gpus: Annotated[int, typer.Option(help="GPUs of the cluster.")] = 64,
    preset: Annotated[str, typer.Option(help="paper, mixed, lora-heavy, gao or real.")] = "paper",
    base: Annotated[str, typer.Option(help="fifo, sjf-est, srtf-est, loss-aware, las, slaq or goodput.")] = "srtf-est",
    detector: Annotated[str, typer.Option(help=_DETECTOR)] = "k-declines",
    k: Annotated[int | None, typer.Option(help="Declines in a row that stop a job (k-declines; 2).")] = None,
    jobs: Annotated[int | None, typer.Option(help="Jobs a seed (500), or the first so many of a trace.")] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds.")] = 20,
    first_seed: Annotated[int, typer.Option(help="The first of them.")] = 0,
    noise: Annotated[float | None, typer.Option(help="Standard deviation of an eval.")] = None,
    hacking: Annotated[float | None, typer.Option(help="Share of RLHF jobs that hack.")] = None,
    load: Annotated[float | None, typer.Option(help="Offered load.")] = None,
    evals: Annotated[str | None, typer.Option(help="Evals a job, or every:SECONDS of running.")] = None,
    trace: Annotated[str | None, typer.Option(help="CSV, SWF, sacct file; or golden, kalos, philly, alibaba.")] = None,
    curves: Annotated[str | None, typer.Option(help="JSON lines of real curves; or `curves`, the sample.")] = None,
    estimates: Annotated[str | None, typer.Option(help="exact, lognormal:SD or trace.")] = None,
    user_cancels: Annotated[float, typer.Option(help="Share of GPU time of jobs their owners cancel.")] = 0.0,
    head_of_line: Annotated[str, typer.Option(help="strict, or skip what does not fit.")] = "skip",
    preemption_overhead_s: Annotated[float, typer.Option(help="Paid on each resume.")] = 120.0,
    requeue_delay_s: Annotated[float, typer.Option(help="How long a preempted job cannot start.")] = 0.0,
    gpus_per_node: Annotated[int | None, typer.Option(help="Place jobs on nodes of so many GPUs.")] = None,
    until_h: Annotated[float | None, typer.Option(help="End there; the rest is unfinished.")] = None,
    drop_larger: Annotated[bool, typer.Option(help="Leave out a trace's jobs larger than the cluster.")] = False,
    through_daemon: Annotated[
        bool, typer.Option("--through-daemon", help="Also run the daemon's whole loop against the emulated cluster.")
    ] = False,
    poll_s: Annotated[
        list[float] | None, typer.Option(help="How often it polls (60); give it again to compare.")
    ] = None,
    processes: Annotated[int, typer.Option(help="Run the seeds on so many processes.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run a base policy alone and with a stopping rule, and show both side by side."""
    asked = (
        gpus, preset, base, detector, k, jobs, seeds, first_seed, noise, hacking, load, evals, trace, curves,
        estimates, user_cancels, head_of_line, preemption_overhead_s, requeue_delay_s, gpus_per_node, until_h,
        drop_larger, tuple(poll_s or (60.0,)) if through_daemon else (),
    )  # fmt: skip
    typer.echo(_in_words(lambda: _simulated(asked, processes, as_json=as_json)))


def _simulated(asked: tuple[Any, ...], processes: int, *, as_json: bool) -> str:
    from evalstopd_sim import simulate as simulation  # noqa: PLC0415 - `--help` stays quick
    from evalstopd_sim.request import Request  # noqa: PLC0415

    answer = simulation.simulate(Request(*asked), processes)
    return simulation.as_json_text(answer) if as_json else simulation.text(answer)


@app.command()
def reproduce(
    out: Annotated[str, typer.Option(help="Folder for tables, plots and the report.")] = "reproduction",
    experiment: Annotated[
        list[str] | None, typer.Option(help="main, composability, noise, base-rate, threshold, load, ... or all.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many seeds.")] = 20,
    jobs: Annotated[int, typer.Option(help="Processes (0: one for each core).")] = 0,
    executor: Annotated[str, typer.Option(help="processes, or slurm: the seeds as a job array.")] = "processes",
    slurm: Annotated[
        list[str] | None, typer.Option(help="An option of sbatch for the array, partition=NAME and the like.")
    ] = None,
) -> None:
    """Run the paper's experiments and set published, ours and the difference side by side."""
    from evalstopd_sim.progress import Where, with_progress  # noqa: PLC0415

    where = Where(executor, tuple(slurm or ()))
    typer.echo(_in_words(lambda: with_progress(tuple(experiment or ["all"]), seeds, jobs, out, where)))


def _in_words(go: Callable[[], str]) -> str:
    """Run a command; a setting that makes no sense is one line on standard error and an exit code."""
    from evalstopd.errors import Misconfigured  # noqa: PLC0415

    try:
        return go()
    except Misconfigured as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(error.exit_code) from None
