"""The chain over the book: what a seal covers, how links follow one another, and how a head is written down."""

import hashlib
from dataclasses import replace
from itertools import permutations

import pytest

from evalstopd.core import chain
from evalstopd.core.binding import Binding
from evalstopd.core.caps import BreakerTurn, Turn
from evalstopd.core.chain import GENESIS, Appended, Batch, Entry, Head, Kind, Link, extend, parse_head, seal
from evalstopd.core.credit import Credit
from evalstopd.core.intent import Evidence, Intent, IntentEvent, State, WouldBeStop
from evalstopd.core.model import Ending, JobKey, Life, Point, Rung
from evalstopd.core.preempt import Preemption
from evalstopd.core.watch import Lived, Pin, PinState, Remark

KEY = JobKey("c", "7", 1001, 100)
EVIDENCE = Evidence(
    rule="k-declines:k=2", metric="acc", mode="max", run_id="r", proof="comment", two_way=True, steps=(1, 2),
    scores=(3.0, 2.0), trigger_step=2, best_step=1, best_score=3.0, k_before_step=1, declines=1, reason="it fell",
)  # fmt: skip
INTENT = Intent(KEY, Life(0, 100), Rung.ENFORCE, EVIDENCE, created_s=1000.0, not_before_s=1060.0)
EVENT = IntentEvent(INTENT.id, 3, 1000.0, "decided", "it fell")
CREDIT = Credit(INTENT.id, KEY, "alice", "ml", 2.0, 5000.0, "released")
WOULD_BE = WouldBeStop(KEY, Life(1, 200), 1000.0, EVIDENCE)
REMARK = Remark("job 7", "foreign-run", "it is another's", 1000.0)
PIN = Pin(KEY, 40, 0.8, PinState.PINNED, 1000.0, path="/p", files=3)
BINDING = Binding(KEY, "r", "comment", True, 50.0)
TURN = BreakerTurn("c", "site", Turn.TRIPPED, 1000.0, 4600.0, "too many")
POINTS = (
    Point("r", 2, 0.25, 6000, 1, 8.0, 0.5, "acc"),
    Point("r", 10, 1, 5000, 0, 7, None, "acc"),
    Point("q", 1, 0.5, 9000, 1, 9.5, None, "loss"),
)
LIVED = Lived(KEY, Life(1, 200), 210.0, None, 4, Ending("TIMEOUT", 900.0), "alice", "ml")
PREEMPTED = Preemption(KEY, Life(1, 200), "9", 8, 1000.0, 940.0, "it is shorter")
BATCH = Batch(KEY.text, 4, POINTS)
KEY_TEXT = '{"cluster":"c","job_id":"7","submitted_s":100,"uid":1001}'


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_seal_is_the_hash_of_compact_json() -> None:
    """Anyone can check a book with other tools, so the bytes are part of the promise."""
    assert seal("b", "event", "x:1", "d") == sha256('["b","event","x:1","d"]')
    assert seal("b", "event", "\u00e9\U0001f600", "d") == sha256('["b","event","\u00e9\U0001f600","d"]')
    assert len(seal("b", "event", "\udcff", "d")) == 64, "what no text may hold is sealed too"


def test_a_row_is_sealed_by_its_fields_in_the_order_of_their_names_without_its_own_name() -> None:
    assert chain.event(EVENT) == Entry(
        "event", f"{INTENT.id}:3", sha256('{"at_s":1000.0,"kind":"decided","text":"it fell"}')
    )
    assert chain.remark(9, REMARK) == Entry(
        "remark", "9", sha256('{"at_s":1000.0,"code":"foreign-run","subject":"job 7","text":"it is another\'s"}')
    )


def test_a_credits_key_is_sealed_with_it() -> None:
    key = '{"cluster":"c","job_id":"7","submitted_s":100,"uid":1001}'
    text = f'{{"account":"ml","at_s":5000.0,"gpu_hours":2.0,"how":"released","key":{key},"user":"alice"}}'

    assert chain.credit(CREDIT) == Entry("credit", INTENT.id, sha256(text))


def test_a_pin_is_sealed_as_it_stands_and_named_by_its_job_and_step() -> None:
    text = '{"files":3,"path":"/p","score":0.8,"state":"pinned","wanted_s":1000.0}'

    assert chain.pin(PIN) == Entry("pin", "c:7:1001:100:40", sha256(text))


def test_a_binding_and_a_breakers_turn_are_named_by_their_numbers() -> None:
    bound = f'{{"key":{KEY_TEXT},"proof":"comment","run_id":"r","since_s":50.0,"two_way":true}}'
    turned = '{"at_s":1000.0,"cluster":"c","scope":"site","text":"too many","turn":"tripped","until_s":4600.0}'

    assert chain.binding(9, BINDING) == Entry("binding", "9", sha256(bound))
    assert chain.breaker(10, TURN) == Entry("breaker", "10", sha256(turned))


def test_a_batch_is_sealed_by_its_points_in_whatever_order_they_come() -> None:
    """Lives, then steps, then the client's times put them in order; numbers are written as any database gives them."""
    rows = (
        '[[0,10,5000,"r","acc","1.0",7.0,"None"],[1,1,9000,"q","loss","0.5",9.5,"None"],'
        '[1,2,6000,"r","acc","0.25",8.0,"0.5"]]'
    )

    for points in permutations(POINTS):
        assert chain.batch(replace(BATCH, points=points)) == Entry("points", "c:7:1001:100:4", sha256(rows))


def test_the_dataset_of_a_point_is_sealed_where_it_has_one() -> None:
    point = Point("r", 1, 0.5, 5, arrived_s=7.0, metric="acc", dataset="held-out@9f")

    assert chain.batch(Batch("j", 1, [point])).digest == sha256('[[0,1,5,"r","acc","0.5",7.0,"None","held-out@9f"]]')


def test_a_point_that_is_no_number_or_came_at_zero_is_sealed_too() -> None:
    odd = Point("r", 1, float("nan"), 5, arrived_s=-0.0, metric="acc")

    assert chain.batch(Batch("j", 1, [odd])).digest == sha256('[[0,1,5,"r","acc","nan",0.0,"None"]]')


def test_a_life_and_a_preemption_are_sealed_as_they_stand_and_named_by_the_life() -> None:
    """A number that may be missing is written as one that is there: whole or not, or as nothing."""
    ending = '{"ended_s":900.0,"state":"TIMEOUT"}'
    lived = f'{{"account":"ml","ending":{ending},"gpus":4,"limit_end_s":null,"started_s":210.0,"user":"alice"}}'
    yielded = '{"at_s":1000.0,"gpus":8,"heir":"9","reason":"it is shorter","saved_s":940.0}'

    assert chain.life(LIVED) == Entry("life", "c:7:1001:100:1:200", sha256(lived))
    assert chain.life(replace(LIVED, started_s=210)) == chain.life(LIVED)
    assert chain.preemption(PREEMPTED) == Entry("preemption", "c:7:1001:100:1:200", sha256(yielded))
    assert chain.job_of_life(chain.life(LIVED).ref) == KEY.text


def test_what_was_forgotten_is_sealed_by_the_jobs_name() -> None:
    assert chain.forgotten(KEY.text) == Entry("forgotten", KEY.text, sha256('"c:7:1001:100"'))


def test_a_would_be_stop_is_named_by_its_life() -> None:
    entry = chain.would_be(WOULD_BE)

    assert (entry.kind, entry.ref) == ("would-be", "c:7:1001:100:1:200")
    renamed = replace(WOULD_BE, life=Life(2, 300), key=replace(KEY, job_id="8"))
    assert chain.would_be(renamed).digest == entry.digest, "the name is not sealed twice"
    assert chain.would_be(replace(WOULD_BE, at_s=1001.0)).digest != entry.digest


def test_the_evidence_is_sealed_once_and_the_state_apart_from_it() -> None:
    moved = replace(INTENT, state=State.WARNED, changed_s=1001.0)
    forged = replace(INTENT, evidence=replace(EVIDENCE, scores=(3.0, 2.5)))

    assert chain.decision(moved) == chain.decision(INTENT)
    assert chain.standing(moved) != chain.standing(INTENT)
    assert chain.decision(forged) != chain.decision(INTENT)
    assert chain.standing(forged) == chain.standing(INTENT)
    assert (chain.decision(INTENT).kind, chain.standing(INTENT).kind) == ("decision", "intent")
    assert chain.decision(INTENT).ref == chain.standing(INTENT).ref == INTENT.id


def test_what_a_decision_says_is_its_evidence_and_when_it_was_made() -> None:
    """Fields with their default are left out, so that a later version may add one; tuples are written as lists."""
    evidence = (
        '{"best_score":3.0,"best_step":1,"declines":1,"k_before_step":1,"metric":"acc","mode":"max","proof":"comment",'
        '"reason":"it fell","rule":"k-declines:k=2","run_id":"r","scores":[3.0,2.0],"steps":[1,2],"trigger_step":2,'
        '"two_way":true}'
    )

    assert chain.decision(INTENT).digest == sha256(f'{{"created_s":1000.0,"evidence":{evidence}}}')


def test_a_rung_is_sealed_by_its_word_and_fields_with_their_default_are_left_out() -> None:
    life = '{"restarts":0,"submitted_s":100}'
    key = '{"cluster":"c","job_id":"7","submitted_s":100,"uid":1001}'

    assert chain.standing(INTENT).digest == sha256(
        f'{{"key":{key},"life":{life},"not_before_s":1060.0,"rung":"enforce"}}'
    )


@pytest.mark.parametrize("same", [1000, 1000.0])
def test_a_database_that_gives_back_a_whole_number_or_loses_the_sign_of_zero_breaks_no_seal(same: float) -> None:
    assert chain.event(replace(EVENT, at_s=same)) == chain.event(EVENT)
    assert chain.event(replace(EVENT, at_s=-0.0)) == chain.event(replace(EVENT, at_s=0.0))


def test_links_count_on_and_each_seals_the_one_before() -> None:
    first, second = extend(4, "before", [Entry("a", "1", "x"), Entry("b", "2", "y")])

    assert first == Link(5, "a", "1", "x", seal("before", "a", "1", "x"))
    assert second == Link(6, "b", "2", "y", seal(first.hash, "b", "2", "y"))
    assert extend(4, "before", []) == ()


ALL = Appended(
    [INTENT], [INTENT, INTENT], [EVENT], [CREDIT], [WOULD_BE], [REMARK, REMARK], [BINDING, BINDING], [TURN], [PIN],
    [BATCH], [LIVED], [PREEMPTED], [KEY.text],
)  # fmt: skip


def test_a_transactions_rows_are_linked_in_a_fixed_order_and_some_are_numbered_by_their_links() -> None:
    links = ALL.links(10, GENESIS)

    assert [each.kind for each in links] == [
        "decision", "intent", "intent", "event", "credit", "would-be", "remark", "remark", "binding", "binding",
        "breaker", "pin", "points", "life", "preemption", "forgotten",
    ]  # fmt: skip
    assert [(each.seq, each.ref) for each in links[6:11]] == [(n, str(n)) for n in (17, 18, 19, 20, 21)]
    numbers = {kind: list(of) for kind, of in ALL.numbers(10).items()}
    assert numbers == {Kind.REMARK: [17, 18], Kind.BINDING: [19, 20], Kind.BREAKER: [21]}
    assert links[0] == extend(10, GENESIS, [chain.decision(INTENT)])[0]
    one_each = (chain.pin(PIN), chain.batch(BATCH), chain.life(LIVED), chain.preemption(PREEMPTED))
    last = (chain.breaker(21, TURN), *one_each, chain.forgotten(KEY.text))
    assert links[10:] == extend(20, links[9].hash, last)


@pytest.mark.parametrize("gone", ["decided", "intents", "events", "credits", "would_be"])
def test_every_row_before_a_remark_moves_its_number(gone: str) -> None:
    fewer = replace(ALL, **{gone: ()})

    assert fewer.numbers(0)[Kind.REMARK][0] == ALL.numbers(0)[Kind.REMARK][0] - len(getattr(ALL, gone))
    assert [each.seq for each in fewer.links(0, GENESIS) if each.kind == "remark"] == list(
        fewer.numbers(0)[Kind.REMARK]
    )


HASH = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "head"),
    [
        (f"12:{HASH}", Head(12, HASH)),
        (f" 12:{HASH.upper()}\n", Head(12, HASH)),
        (HASH, Head(None, HASH)),
        (f"{'9' * 18}:{HASH}", Head(10**18 - 1, HASH)),
    ],
)
def test_a_head_is_read_from_its_text(text: str, head: Head) -> None:
    assert parse_head(text) == head
    assert parse_head(head.text) == head


@pytest.mark.parametrize(
    "text", ["", "12", f"x:{HASH}", HASH[1:], f"12:{HASH}0", f"\u0663:{HASH}", f"{'9' * 19}:{HASH}"]
)
def test_what_is_no_head_is_refused_and_shown_harmlessly(text: str) -> None:
    with pytest.raises(ValueError, match="neither LENGTH:HASH nor a hash") as refused:
        parse_head(text)
    assert str(refused.value).isascii()


def test_an_empty_chain_has_a_head() -> None:
    assert Head().text == "0:" + "0" * 64
