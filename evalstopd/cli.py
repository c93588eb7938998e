"""The command line. Little but typer is imported here: a command imports what it needs when it runs."""

import os
import sys
from collections.abc import Callable, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer
from evalstopd_sim.commands import reproduce, simulate

from evalstopd import db_commands, priorities_commands
from evalstopd.job_argument import job_argument, job_or_component
from evalstopd.report.audit import commands as audit
from evalstopd.report.estimates import commands as estimates
from evalstopd.report.replay.commands import replay, tune
from evalstopd.undo_command import undo

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Watches the evaluation quality of running Slurm jobs, stops the over-optimising ones, keeps their best.",
)
db = typer.Typer(no_args_is_help=True, help="The store: its schema and its health.")
app.add_typer(db, name="db")
breakers = typer.Typer(
    invoke_without_command=True, help="Breakers that hold an owner, an account, or all, on the observe rung."
)
app.add_typer(breakers, name="breakers")


def _version(wanted: bool) -> None:  # noqa: FBT001  typer's callback takes the flag
    if wanted:
        from evalstopd import __version__

        typer.echo(f"evalstopd {__version__}")
        raise typer.Exit


Config = Annotated[
    Path | None, typer.Option("--config", "-c", help="Settings file; else $EVALSTOPD_CONFIG or the default place.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


_EX_IOERR = 74
_UNREAD = 3


def main() -> None:
    """Run the command line; what goes wrong is a line on stderr (one for each wrong setting), never a traceback.

    That goes for errors of ours and for files, standard output included, that cannot be read or written. A character
    that the output's encoding has not is spelled out.
    """
    from evalstopd.collector import collect_rarely
    from evalstopd.errors import EvalstopError

    collect_rarely()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        _run()
    except EvalstopError as error:
        _fail(getattr(error, "faults", (str(error),)), getattr(error, "exit_code", 1))
    except OSError as error:
        _fail((f"{error.filename or 'input or output'}: {error.strerror or error}",), _EX_IOERR)


def _run() -> None:
    """Run, and tell while it can still be told that what was printed did not get out."""
    try:
        app()
    finally:
        if sys.stdout is not None:
            try:
                sys.stdout.flush()
            except OSError:
                # What is left in the buffer would fail once more, with a traceback, when the interpreter ends.
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                raise


def _fail(lines: Sequence[str], code: int) -> None:
    from evalstopd.report.text import plain

    sys.stderr.write("".join(f"evalstopd: {plain(line, 1000)}\n" for line in lines))
    sys.exit(code)


@app.callback()
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Hand the reports' commands what opens the site's tracker and store: they may not know how these are made."""
    del version
    context.obj = _open_tracker
    context.meta[audit.OPEN_BOOK] = _open_book
    context.meta[estimates.OPEN_PAST] = _open_past


def _open_tracker(config: Path | None) -> object:
    from evalstopd.settings import load_settings
    from evalstopd.wiring.tracker import make_metrics

    return make_metrics(load_settings(config))


def _open_book(config: Path | None) -> tuple[object, float]:
    from evalstopd.settings import load_settings
    from evalstopd.wiring.host import make_clock
    from evalstopd.wiring.store import make_checked_store

    return make_checked_store(load_settings(config)), make_clock().now_s()


def _open_past(config: Path | None, since: str) -> object:
    from evalstopd.report.scorecard.since import since_s
    from evalstopd.settings import load_settings
    from evalstopd.wiring.estimates import read_past
    from evalstopd.wiring.host import make_clock

    now_s = make_clock().now_s()
    return read_past(load_settings(config), since_s(since or "30d", now_s), now_s)


@app.command()
def run(config: Config = None) -> None:
    """Run the daemon in the foreground, as systemd starts it."""
    import logging
    import threading

    from evalstopd import __version__
    from evalstopd.collector import collect_rarely
    from evalstopd.daemon import Daemon
    from evalstopd.log import start_log
    from evalstopd.settings import load_settings
    from evalstopd.wiring.service import make_service

    settings = load_settings(config)
    start_log(settings.daemon.log_level)
    stopping = threading.Event()
    service = make_service(settings, lambda: load_settings(config), stopping)
    log, rules = logging.getLogger("evalstopd"), settings.rules
    began = (__version__, rules.rung.name.lower(), rules.rule, settings.digest)
    log.info("evalstopd %s starts: rung %s, rule %s, settings %s", *began)
    collect_rarely()
    try:
        seat = service.seat
        Daemon(
            service.tick, settings.daemon.tick_s, stopping, seat.beat, seat.beat_s, service.reload, service.follow
        ).run()
        service.end()
    finally:
        service.close()
        log.info("evalstopd ends")


@app.command()
def tick(
    config: Config = None,
    dry_run: Annotated[bool, typer.Option(help="Observe and decide only: record nothing, do nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make one pass and say what was seen and done; exit code 3 where MLflow could not be read at all."""
    import threading

    from evalstopd.log import start_log
    from evalstopd.loop import Tracker
    from evalstopd.report.text import plain
    from evalstopd.settings import load_settings
    from evalstopd.wiring.loop import make_loop
    from evalstopd.wiring.seat import tick_alone

    settings = load_settings(config)
    start_log("WARNING")
    loop = make_loop(settings, threading.Event(), dry_run=dry_run)
    if dry_run:
        report, judgement = loop.foresee()
        lines = [f"would stop {key.job_id}: {evidence.reason}" for key, evidence in judgement.decided]
    else:
        report, lines = tick_alone(loop, settings), []
    result = {"good": report.good, "mlflow": report.tracker, "summary": report.summary}
    result |= {"counts": dict(report.counts), "decided": lines}
    _print(result, as_json, lambda: "\n".join(plain(each, 4000) for each in (report.summary, *lines)))
    raise typer.Exit(1 if not report.good else _UNREAD if report.tracker is Tracker.FAILED else 0)


@app.command()
def check(config: Config = None, as_json: AsJson = False) -> None:
    """Say in plain words whether everything the daemon needs is there; exit codes as of `run`. Changes nothing."""
    from evalstopd.checks import worst
    from evalstopd.report.text import plain
    from evalstopd.settings import load_settings, settings_source
    from evalstopd.wiring.checks.every import make_checks

    results = [probe() for probe in make_checks(load_settings(config), settings_source(config))]
    _print(
        [{"what": each.what, "good": each.good, "text": each.text} for each in results],
        as_json,
        lambda: "\n".join(
            f"{'ok ' if each.good else 'BAD'}  {each.what}: {plain(each.text, 1000)}" for each in results
        ),
    )
    raise typer.Exit(worst(results))


@app.command()
def status(
    config: Config = None,
    limit: Annotated[int, typer.Option(min=1, max=10000, help="How many jobs, newest first.")] = 50,
    daemon: Annotated[bool, typer.Option("--daemon", help="The daemons instead: exit code 1 if none is well.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the watched jobs: evals, declines, best, pins, and what was decided."""
    if daemon:
        raise typer.Exit(_daemon_status(config, as_json=as_json))
    from evalstopd.report.render import status_table
    from evalstopd.report.rows import status_rows
    from evalstopd.settings import load_settings
    from evalstopd.wiring.store import make_checked_store

    store = make_checked_store(load_settings(config))
    rows = status_rows(store, store, limit)
    _print(rows, as_json, lambda: status_table(rows))


def _daemon_status(config: Path | None, *, as_json: bool) -> int:
    from evalstopd.pulse import alive, told
    from evalstopd.report.text import plain
    from evalstopd.settings import load_settings
    from evalstopd.wiring.pulses import daemon_rows

    rows = daemon_rows(load_settings(config))
    _print(rows, as_json, lambda: "\n".join(plain(line, 1000) for line in told(rows)))
    return 0 if alive(rows) else 1


@app.command()
def explain(
    job: Annotated[str, typer.Argument(help="Slurm job id; A_T for an array task.", callback=job_argument)],
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show a job's curve with the verdicts, and what was decided on it and why."""
    from evalstopd.errors import Rejected
    from evalstopd.report.render import explanation
    from evalstopd.report.rows import explain as find
    from evalstopd.report.ways import ways
    from evalstopd.settings import load_settings
    from evalstopd.wiring.store import make_checked_store

    settings = load_settings(config)
    store = make_checked_store(settings)
    found = find(store, store, job)
    proofs = ways(seals=bool(settings.binding.mac_key), tags=bool(settings.binding.tags))
    if found is None:
        raise Rejected(f"job {job} is not watched: it holds no GPUs here, or no run is proven to be its own; {proofs}")
    _print(found, as_json, lambda: explanation(found, proofs))


@app.command()
def scorecard(
    config: Config = None,
    since: Annotated[str, typer.Option(help="Jobs first seen since a day (2026-01-31, UTC) or in the last 30d.")] = "",
    as_json: AsJson = False,
) -> None:
    """Show what became of every would-be stop, and whether the rule may warn or enforce by the site's limits."""
    from evalstopd.report.scorecard.render import scorecard_view
    from evalstopd.report.scorecard.since import since_s
    from evalstopd.settings import load_settings
    from evalstopd.wiring.host import make_clock
    from evalstopd.wiring.scorecard import make_scorecard
    from evalstopd.wiring.store import make_checked_store

    settings = load_settings(config)
    found = make_scorecard(settings, make_checked_store(settings), since_s(since, make_clock().now_s()))
    _print(found, as_json, lambda: scorecard_view(found))


app.command()(audit.report)
app.add_typer(audit.app, name="audit")
app.command()(estimates.estimates)
app.add_typer(priorities_commands.app, name="priorities")
app.command()(replay)
app.command()(tune)
app.command()(simulate)
app.command()(reproduce)
app.command()(undo)


@app.command()
def keep(
    job: Annotated[
        str, typer.Argument(help="Slurm job id; A_T for an array task, A for all.", callback=job_or_component)
    ],
) -> None:
    """Veto: write evalstop=keep into the job's comment. Needs neither the store nor the daemon, only the right to."""
    from evalstopd.veto import keep as veto
    from evalstopd.wiring.own_shell import make_plain_cluster, wait_a_moment

    typer.echo(veto(make_plain_cluster(), job, wait_a_moment))


@breakers.callback()
def breakers_show(context: typer.Context, config: Config = None, as_json: AsJson = False) -> None:
    """List the breakers that ever turned, and which hold now."""
    if context.invoked_subcommand is not None:
        return
    from evalstopd.breakers import breaker_rows
    from evalstopd.report.render import breaker_table
    from evalstopd.settings import load_settings
    from evalstopd.wiring.host import make_clock
    from evalstopd.wiring.store import make_checked_store

    rows = breaker_rows(make_checked_store(load_settings(config)), make_clock().now_s())
    _print(rows, as_json, lambda: breaker_table(rows) if rows else "no breaker has ever tripped")


@breakers.command("reset")
def breakers_reset(
    scope: Annotated[str, typer.Argument(help="site, account:NAME, or user:UID@NAME.")],
    why: Annotated[str, typer.Option(help="The reason; it is kept.")],
    config: Config = None,
) -> None:
    """Reset a breaker before its time; needs the right to write the store."""
    import getpass

    from evalstopd.breakers import reset
    from evalstopd.report.text import plain
    from evalstopd.settings import load_settings
    from evalstopd.wiring.host import make_clock
    from evalstopd.wiring.store import make_checked_store

    store = make_checked_store(load_settings(config))
    for turn in reset(store, scope, why, getpass.getuser(), make_clock().now_s()):
        typer.echo(f"reset {plain(turn.scope, 200)} on {plain(turn.cluster, 200)}")


@app.command("config")
def show_config(config: Config = None, as_json: AsJson = False) -> None:
    """Show the settings in effect, without secrets."""
    import json

    from evalstopd.settings import load_settings

    settings = load_settings(config)
    data = settings.shown
    lines = [f"{part}.{key} = {json.dumps(value)}" for part, keys in data.items() for key, value in keys.items()]
    _print({**data, "digest": settings.digest}, as_json, lambda: "\n".join(lines))


@db.command("upgrade")
def db_upgrade(config: Config = None) -> None:
    """Bring the store to this version's schema; makes it if there is none."""
    from evalstopd.settings import load_settings
    from evalstopd.store.migrate import current, upgrade

    url = load_settings(config).store.url
    upgrade(url)
    typer.echo(f"the store is at revision {current(url)}")


db.command("check")(db_commands.check)
db.command("backup")(db_commands.backup)


def _print(data: object, as_json: bool, human: Callable[[], object]) -> None:  # noqa: FBT001  a flag of the user's
    """Print data as JSON, or what people read."""
    if as_json:
        from evalstopd.report.render import to_json

        typer.echo(to_json(data))
        return
    shown = human()
    if isinstance(shown, str):
        typer.echo(shown)
    else:
        from evalstopd.report.render import show

        show(shown)  # type: ignore[arg-type]
