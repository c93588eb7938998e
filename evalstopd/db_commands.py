"""`evalstopd db backup` and `db check`: a copy of the store, and whether it is sound."""

from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[
    Path | None, typer.Option("--config", "-c", help="Settings file; else $EVALSTOPD_CONFIG or the default place.")
]


def backup(
    file: Annotated[Path, typer.Argument(help="The new file; one that is there is never replaced.")],
    config: Config = None,
) -> None:
    """Copy an SQLite store into a new file while the daemon goes on; the copy is of one moment, and checked."""
    from evalstopd.settings import load_settings
    from evalstopd.store.backup import backup as copy

    size = copy(load_settings(config).store.url, file)
    typer.echo(
        f"{size} bytes written and checked; only its owner may read it (0600). To restore it: stop the daemon, move "
        "the store's file away with its -wal and -shm, put this one in its place with the old one's owner, group and "
        "mode 0640 (so that the group reads it), and start the daemon"
    )


def check(config: Config = None) -> None:
    """Check the store's schema, its place, and that it is sound; reads all of an SQLite file."""
    from evalstopd.settings import load_settings
    from evalstopd.store.backup import require_sound
    from evalstopd.store.migrate import check_whole, current

    url = load_settings(config).store.url
    check_whole(url)
    typer.echo(f"the store is at revision {current(url)}, with all of its schema; {require_sound(url)}")
