"""The chain over the book against one who can write to the database file: each way of tampering is named."""

import shutil
from pathlib import Path

import pytest

from evalstopd.core import chain
from evalstopd.core.chain import parse_head
from evalstopd.core.preempt import Preemption
from evalstopd.core.watch import Watch
from evalstopd.ports import Changes
from evalstopd.report.audit.verify import sentences, verify
from evalstopd.store import migrate
from evalstopd.store.sql import SqlStore
from tests.contracts import store_builders as make
from tests.report.audit.books import STOP, Attack, Attacker, after, write


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the database file of a book with nine links."""
    file = tmp_path_factory.mktemp("book") / "store.db"
    write(file)
    return file


@pytest.fixture
def file(book: Path, tmp_path: Path) -> Path:
    """Return a copy of the book."""
    return Path(shutil.copy(book, tmp_path / "store.db"))


@pytest.fixture
def noted(file: Path) -> str:
    """Return the head that the site kept elsewhere before the attack."""
    head = SqlStore(f"sqlite:///{file}").head()
    assert head is not None
    return head.text


def test_an_untouched_book_is_whole(file: Path, noted: str) -> None:
    found = after(file, lambda act: None, noted)

    assert (found.good, found.links, found.head.text) == (True, 9, noted)
    assert sentences(found)[0].startswith("the book is whole: 9 links")


def forged_remark(act: Attacker, seq: int, digest: str = "0" * 64, hash_: str = "1" * 64) -> None:
    act("INSERT INTO remarks VALUES (?, 'site', 'forged', 'never said', 1.0)", 77)
    act("INSERT INTO links VALUES (?, 'remark', '77', ?, ?)", seq, digest, hash_)


def put_between(act: Attacker) -> None:
    act.renumber(6, +1)
    forged_remark(act, 7)


def put_between_sealed(act: Attacker) -> None:
    """The forged link itself follows; what follows it does not."""
    act.renumber(6, +1)
    before, digest = act("SELECT hash FROM links WHERE seq = 6")[0][0], "0" * 64
    forged_remark(act, 7, digest, chain.seal(str(before), "remark", "77", digest))


def appended_sealed(act: Attacker) -> None:
    digest = chain.remark(77, make.remark("site", "forged", text="never said", at_s=1.0)).digest
    before = act("SELECT hash FROM links WHERE seq = 9")[0][0]
    forged_remark(act, 10, digest, chain.seal(str(before), "remark", "77", digest))


def removed_with_its_link(act: Attacker) -> None:
    act("DELETE FROM remarks WHERE id = 8")
    act("DELETE FROM links WHERE seq = 8")


def removed_and_renumbered(act: Attacker) -> None:
    removed_with_its_link(act)
    act.renumber(8, -1)


def swapped_contents(act: Attacker) -> None:
    act.swap("remarks", "id", 7, 8)


def swapped_links(act: Attacker) -> None:
    act.swap("links", "seq", 7, 8)


def moved_far(act: Attacker) -> None:
    """The link that was third comes after all others."""
    act("UPDATE links SET seq = 10 WHERE seq = 3")
    act.renumber(3, -1)


def cut_off(act: Attacker) -> None:
    act("DELETE FROM remarks WHERE id > 7")
    act("DELETE FROM links WHERE seq > 7")


def cut_off_and_head_moved(act: Attacker) -> None:
    cut_off(act)
    act("UPDATE chain_head SET length = 7, hash = (SELECT hash FROM links WHERE seq = 7)")


def rewritten(act: Attacker) -> None:
    """A remark is changed, and every hash from it on is made anew: nothing inside the file is wrong."""
    act("UPDATE remarks SET text = 'all is well' WHERE id = 8")
    digest = chain.remark(8, make.remark("subject 8", text="all is well")).digest
    act("UPDATE links SET digest = ? WHERE seq = 8", digest)
    act.reseal(7)


EVENT = f"event 1 of stop {STOP}"
BOOKED = "would-be stop alpha:8:1001:1700000000:0:1700000000"


@pytest.mark.parametrize(
    ("statement", "seq", "what", "row"),
    [
        ("UPDATE intent_events SET text = 'x' WHERE seq = 1", 6, "changed", EVENT),
        ("UPDATE intent_events SET at_s = at_s + 1 WHERE seq = 1", 6, "changed", EVENT),
        ("UPDATE intent_events SET at_s = 'soon' WHERE seq = 1", 6, "changed", "event 1 of stop"),
        ("UPDATE intents SET evidence = replace(evidence, 'k=2', 'k=3')", 1, "changed", f"the evidence of stop {STOP}"),
        ("UPDATE intents SET evidence = 'nonsense'", 1, "changed", f"the evidence of stop {STOP}"),
        ("UPDATE intents SET evidence = '{}'", 1, "changed", f"the evidence of stop {STOP}"),
        ("UPDATE intents SET created_s = 1", 1, "changed", f"the evidence of stop {STOP}"),
        ("UPDATE intents SET state = 'vetoed'", 5, "changed", f"the state of stop {STOP}"),
        ("UPDATE intents SET state = 'mad'", 1, "changed", f"the evidence of stop {STOP}"),
        ("UPDATE intents SET handed_to = '[\"9\"]'", 5, "changed", f"the state of stop {STOP}"),
        ("UPDATE would_be_stops SET at_s = 1", 4, "changed", BOOKED),
        ("UPDATE would_be_stops SET evidence = '[]'", 4, "changed", BOOKED),
        ("UPDATE remarks SET text = 'x' WHERE id = 8", 8, "changed", "remark 8"),
        ("UPDATE links SET digest = hash WHERE seq = 8", 8, "changed", "remark 8"),
        ("UPDATE links SET hash = digest WHERE seq = 8", 8, "changed", "remark 8"),
        ("UPDATE links SET kind = 'odd' WHERE seq = 8", 8, "changed", "a row of the unknown kind odd: 8"),
        ("UPDATE links SET ref = 'x' WHERE seq = 8", 8, "changed", "remark x"),
        ("DELETE FROM intent_events WHERE seq = 1", 6, "removed", EVENT),
        ("DELETE FROM intents", 1, "removed", f"the evidence of stop {STOP}"),
        ("DELETE FROM would_be_stops", 4, "removed", BOOKED),
        ("DELETE FROM remarks WHERE id = 8", 8, "removed", "remark 8"),
        ("DELETE FROM links WHERE seq = 8", 8, "removed", "link 8"),
        ("DELETE FROM links WHERE seq < 3", 1, "removed", "links 1 to 2"),
        ("DELETE FROM links", 1, "truncated", "links 1 to 9"),
        ("DELETE FROM chain_head", None, "removed", "the head"),
        ("UPDATE chain_head SET hash = 'x'", 9, "changed", "link 9"),
        ("INSERT INTO remarks VALUES (77, 'site', 'x', 'y', 1.0)", None, "inserted", "remark 77"),
        (f"INSERT INTO intent_events VALUES ('{STOP}', 2, 1, 'x', 'y')", None, "inserted", f"event 2 of stop {STOP}"),
    ],
)
def test_one_statement_against_the_book_is_named(
    file: Path, statement: str, seq: int | None, what: str, row: str
) -> None:
    found = after(file, lambda act: act(statement))

    assert not found.good
    assert found.first is not None
    assert (found.first.seq, found.first.what) == (seq, what)
    assert found.first.row.startswith(row)
    assert sentences(found)[0].startswith("the book is not what was written. First: ")


@pytest.mark.parametrize(
    ("attack", "seq", "what", "row"),
    [
        (put_between, 7, "inserted", "remark 77"),
        (put_between_sealed, 7, "inserted", "remark 77"),
        (appended_sealed, 10, "inserted", "links 10 to 10"),
        (removed_with_its_link, 8, "removed", "link 8"),
        (removed_and_renumbered, 8, "changed", "remark 9"),
        (swapped_contents, 7, "reordered", "remark 7"),
        (swapped_links, 7, "reordered", "remark 8"),
        (moved_far, 3, "reordered", "would-be stop"),
        (cut_off, 8, "truncated", "links 8 to 9"),
    ],
)
def test_tampering_with_rows_and_links_together_is_named(
    file: Path, attack: Attack, seq: int, what: str, row: str
) -> None:
    first = after(file, attack).first

    assert first is not None
    assert (first.seq, first.what) == (seq, what)
    assert first.row.startswith(row)


def test_a_removed_row_whose_gap_was_closed_is_said_to_be_possible(file: Path) -> None:
    """What was between two links that do not follow cannot be known; that the chain is too short can."""
    found = after(file, removed_and_renumbered)

    assert "or one between was removed" in found.breaks[0].text
    assert ("truncated", 9) in [(each.what, each.seq) for each in found.breaks]


@pytest.mark.parametrize(
    ("attack", "what", "row"),
    [(cut_off_and_head_moved, "truncated", "links 8 to 9"), (rewritten, "changed", "link 9")],
)
def test_only_a_head_kept_elsewhere_shows_a_chain_that_was_made_anew(
    file: Path, noted: str, attack: Attack, what: str, row: str
) -> None:
    """Whoever can write to the database can make the whole chain anew: that is said in the documentation."""
    assert after(file, attack).good
    found = verify(SqlStore(f"sqlite:///{file}"), parse_head(noted))

    assert found.first is not None
    assert (found.first.what, found.first.row) == (what, row)


def test_a_hash_noted_without_its_length_shows_it_as_well(file: Path, noted: str) -> None:
    found = after(file, cut_off_and_head_moved, noted.partition(":")[2])

    assert found.first is not None
    assert found.first.what == "truncated"
    assert "in none of the 7 links" in found.first.text


def test_a_head_noted_long_ago_still_holds(file: Path) -> None:
    """The book grows: a head is a promise about what came before it."""
    early = SqlStore(f"sqlite:///{file}").held(3, 1)[0].link

    for head in (f"4:{early.hash}", early.hash):
        assert verify(SqlStore(f"sqlite:///{file}"), parse_head(head)).good
    assert not verify(SqlStore(f"sqlite:///{file}"), parse_head(f"3:{early.hash}")).good


@pytest.mark.parametrize("text", ["", "x", "12:", "1:" + "g" * 64, "a" * 63, "-1:" + "a" * 64, "1:2:" + "a" * 64])
def test_what_is_no_head_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="neither LENGTH:HASH"):
        parse_head(text)


def test_the_daemon_goes_on_after_its_note_of_the_head_was_removed(file: Path) -> None:
    """A missing note is named, and does not keep the daemon from writing on where the links end."""
    assert not after(file, lambda act: act("DELETE FROM chain_head")).good
    store = SqlStore(f"sqlite:///{file}")
    store.record(Changes(remarks=(make.remark("site"),)))

    assert (verify(store).good, verify(store).links) == (True, 10)


def test_two_rows_that_differ_in_any_way_have_different_seals() -> None:
    """Lone surrogates, escapes and the borders of fields are told apart."""
    remarks = [
        make.remark("a", "b"), make.remark("ab", ""), make.remark("a", '","b'), make.remark("\ud83d\ude00", "b"),
        make.remark("\U0001f600", "b"), make.remark("a", "b", at_s=14.0), make.remark("a\x00", "b"),
    ]  # fmt: skip

    assert len({chain.remark(1, each).digest for each in remarks}) == len(remarks)


def test_a_field_that_has_its_default_is_not_in_the_seal() -> None:
    """A field that a later version adds, with a default, leaves the seals of older rows as they were."""
    digests = {
        chain.standing(each).digest
        for each in (make.intent(), make.intent(note=""), make.intent(cancel_tries=0), make.intent(changed_s=0))
    }

    assert len(digests) == 1
    assert chain.standing(make.intent(note="x")).digest not in digests


LIFE = "life 0 of job alpha:7:1001:1700000000"
DAY_EARLIER = "UPDATE lives SET started_s = started_s - 86400, limit_end_s = limit_end_s + 9, gpus = 800, ending = NULL"
ANOTHER_LIFE = (
    "INSERT INTO lives SELECT job, 5, submitted_s, started_s, gpus, nodes, ending, limit_end_s, user, account, "
    "partition, name FROM lives"
)
ANOTHER_PREEMPTION = (
    "INSERT INTO preemptions SELECT job, 5, submitted_s, heir, gpus, at_s, saved_s, reason, user, tries, state, note "
    "FROM preemptions"
)


@pytest.fixture
def lives(tmp_path: Path) -> Path:
    """Return the file of a book of one ended life (link 1) and one preemption of it (link 2)."""
    file = tmp_path / "lives.db"
    url = f"sqlite:///{file}"
    migrate.upgrade(url)
    store = SqlStore(url)
    asked = Preemption(make.key(), make.life(), "9", 4, 20.0, 100.0, "it yields")
    store.record(Changes(watches=(an_ended(),), preemptions=(asked,)))
    store.close()
    return file


def an_ended(**changes: object) -> Watch:
    told = {"user": "alice", "account": "ml", "partition": "gpu", "name": "train", "gpus": 8, "started_s": 5.0}
    return make.watch(**{**told, "limit_end_s": 999.0, "ending": make.ENDED, **changes})


@pytest.mark.parametrize(
    ("statement", "seq", "what", "row"),
    [
        (DAY_EARLIER, 1, "changed", LIFE),
        *(
            (f"UPDATE lives SET {column} = 'x'", 1, "changed", LIFE)
            for column in ("user", "account", "partition", "name", "started_s", "limit_end_s", "gpus", "ending")
        ),
        ("DELETE FROM lives", 1, "removed", LIFE),
        (ANOTHER_LIFE, None, "inserted", "life 5 of job alpha:7:1001:1700000000"),
        ("UPDATE preemptions SET saved_s = 1e9", 2, "changed", f"the preemption of {LIFE}"),
        ("DELETE FROM preemptions", 2, "removed", f"the preemption of {LIFE}"),
        (ANOTHER_PREEMPTION, None, "inserted", "the preemption of life 5 of job alpha:7:1001:1700000000"),
    ],
)  # fmt: skip
def test_what_the_report_shows_of_a_life_and_each_preemption_is_sealed(
    lives: Path, statement: str, seq: int | None, what: str, row: str
) -> None:
    found = after(lives, lambda act: act(statement))

    assert found.first is not None
    assert (found.first.seq, found.first.what, found.first.row) == (seq, what, row)


def test_a_forged_life_is_not_sealed_anew_by_what_the_daemon_writes_of_it_later(lives: Path) -> None:
    """Whoever opens it again makes the daemon ask accounting for its end, and write it with what was forged."""
    after(lives, lambda act: act(DAY_EARLIER))
    store = SqlStore(f"sqlite:///{lives}")
    (forged,) = store.lives_of([make.key()])
    store.record(Changes(watches=(an_ended(started_s=forged.started_s, gpus=forged.gpus),)))

    found = verify(store)
    assert [each.row for each in found.breaks] == [LIFE]
    store.close()
