"""A store made by root in the folder of the daemon's account would lock the daemon out: it is refused."""

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evalstopd.cli import app
from evalstopd.errors import Rejected
from evalstopd.store import migrate

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of root's")
NOBODY = "nobody"


@contextmanager
def as_nobody() -> Iterator[None]:
    os.seteuid(pwd.getpwnam(NOBODY).pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def folder(reachable_directory: Path, request: pytest.FixtureRequest) -> Path:
    """The folder of an account as the README has it made."""
    made = reachable_directory / "".join(c if c.isalnum() else "-" for c in request.node.name)
    made.mkdir(mode=0o750)
    os.chown(made, pwd.getpwnam(NOBODY).pw_uid, pwd.getpwnam(NOBODY).pw_gid)
    return made


def owners(folder: Path) -> dict[str, str]:
    return {path.name: path.owner() for path in folder.iterdir()}


def test_root_makes_no_store_in_another_accounts_folder_and_says_who_should(folder: Path) -> None:
    config = folder.parent / f"{folder.name}.toml"
    config.write_text(f'[store]\nurl = "sqlite:///{folder}/store.db"\n')
    done = CliRunner().invoke(app, ["db", "upgrade", "--config", str(config)])

    assert isinstance(done.exception, Rejected)
    assert f"runuser -u {NOBODY} -- evalstopd db upgrade" in str(done.exception)
    assert owners(folder) == {}


def test_the_account_itself_makes_it_and_brings_it_up(folder: Path) -> None:
    url = f"sqlite:///{folder}/store.db"
    with as_nobody():
        migrate.upgrade(url)
        migrate.upgrade(url)
        migrate.check(url)

    assert set(owners(folder).values()) == {NOBODY}
    with pytest.raises(Rejected):
        migrate.upgrade(url)


@pytest.mark.parametrize("linked", ["file", "folder"])
def test_a_link_to_the_accounts_folder_is_no_way_round(folder: Path, tmp_path: Path, linked: str) -> None:
    """Where the file really lies counts, whoever owns the link."""
    link = tmp_path / "link"
    link.symlink_to(folder / "store.db" if linked == "file" else folder)
    with pytest.raises(Rejected, match=NOBODY):
        migrate.upgrade(f"sqlite:///{link}" if linked == "file" else f"sqlite:///{link}/store.db")

    assert owners(folder) == {}


def test_a_link_that_the_account_made_leads_root_nowhere(folder: Path, tmp_path: Path) -> None:
    (folder / "store.db").symlink_to(tmp_path / "roots.db")
    with pytest.raises(Rejected, match=NOBODY):
        migrate.upgrade(f"sqlite:///{folder}/store.db")

    assert list(tmp_path.iterdir()) == []


def test_in_its_own_folder_root_may_do_as_it_likes(tmp_path: Path) -> None:
    migrate.upgrade(f"sqlite:///{tmp_path}/store.db")

    assert owners(tmp_path)["store.db"] == "root"
