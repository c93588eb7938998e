"""A small book on SQLite, and an attacker who can do all that the file's owner can."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from evalstopd.core.chain import parse_head, seal
from evalstopd.core.intent import State
from evalstopd.ports import Changes
from evalstopd.report.audit.verify import Verification, verify
from evalstopd.store import migrate
from evalstopd.store.sql import SqlStore
from tests.contracts import store_builders as make

Attack = Callable[["Attacker"], object]
STOP = make.intent().id


@dataclass(frozen=True, slots=True)
class Attacker:
    """Writes past the program: the triggers that would refuse are gone."""

    sql: sqlite3.Connection

    def __call__(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        return self.sql.execute(statement, values).fetchall()

    def renumber(self, above: int, by: int) -> None:
        """Move the numbers of all links above one."""
        for (seq,) in self(f"SELECT seq FROM links WHERE seq > ? ORDER BY seq {'DESC' if by > 0 else ''}", above):
            self("UPDATE links SET seq = ? WHERE seq = ?", int(str(seq)) + by, seq)

    def reseal(self, after: int) -> None:
        """Make all hashes after a link anew, and the head: from the inside nothing is wrong any more."""
        before = self("SELECT hash FROM links WHERE seq = ?", after)[0][0]
        for seq, kind, ref, digest in self(
            "SELECT seq, kind, ref, digest FROM links WHERE seq > ? ORDER BY seq", after
        ):
            before = seal(str(before), str(kind), str(ref), str(digest))
            self("UPDATE links SET hash = ? WHERE seq = ?", before, seq)
        self("UPDATE chain_head SET length = (SELECT max(seq) FROM links), hash = ?", before)

    def swap(self, table: str, key: str, one: int, other: int) -> None:
        """Exchange two rows' numbers."""
        for now, then in ((one, -1), (other, one), (-1, other)):
            self(f"UPDATE {table} SET {key} = ? WHERE {key} = ?", then, now)


@contextmanager
def attacker(file: Path) -> Iterator[Attacker]:
    """Yield an attacker who has dropped every trigger; what he did is committed."""
    with closing(sqlite3.connect(file)) as sql:
        for (name,) in sql.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            sql.execute(f"DROP TRIGGER {name}")
        yield Attacker(sql)
        sql.commit()


def write(file: Path) -> str:
    """Write the book of nine links into a new store and return its URL.

    1 decision, 2 intent, 3 event 0, 4 would-be stop, 5 intent, 6 event 1, 7 to 9 remarks.
    """
    url = f"sqlite:///{file}"
    migrate.upgrade(url)
    store, planned = SqlStore(url), make.intent()
    warned = make.intent(state=State.WARNED, events=2)
    store.record(Changes(intents=(planned,), events=(make.event(planned),), would_be=(make.would_be(make.key("8")),)))
    store.record(Changes(intents=(warned,), events=(make.event(warned, 1, kind="warned"),)))
    store.record(Changes(remarks=tuple(make.remark(f"subject {n}", text=f"remark of {n}") for n in (7, 8, 9))))
    store.close()
    return url


def after(file: Path, attack: Attack, noted: str = "") -> Verification:
    """Return what a walk says after an attack; `noted` is what a site kept elsewhere."""
    with attacker(file) as act:
        attack(act)
    return verify(SqlStore(f"sqlite:///{file}"), parse_head(noted) if noted else None)
