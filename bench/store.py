"""What sealing costs: 10,000 rows appended to an SQLite store, their links and bytes, and a walk over the chain.

Exit code 1 beyond the limits.
"""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time

from evalstopd.core.chain import GENESIS, Appended
from evalstopd.core.intent import Evidence, Intent, IntentEvent
from evalstopd.core.model import JobKey, Life, Mode, Rung
from evalstopd.core.watch import Remark, Terms, Watch
from evalstopd.ports import Changes
from evalstopd.report.audit.verify import verify
from evalstopd.store import migrate
from evalstopd.store.sql import SqlStore

ROWS = 10_000
BATCH = 100
WATCHES = 2_000
SEAL_US = 100.0
WALK_S = 5.0


def remarks(number: int) -> tuple[Remark, ...]:
    """Return so many remarks as a site makes them."""
    text = "no action: the run named in the comment was bound to another owner's job before"
    return tuple(Remark(f"cluster:{n}:1001:1700000000", "foreign-run", text, float(n)) for n in range(number))


def stop(job: int, evals: int = 100) -> Intent:
    """Return a decided stop that rests on so many evals."""
    steps, scores = tuple(range(evals)), tuple(n / 7 for n in range(evals))
    evidence = Evidence(
        "recommended:c=1.8,growth=1.5", "eval/score", "max", "r" * 32, "comment", True, steps, scores, evals - 1, 50,
        0.7, 97, 3, "each of the last 3 evals lies below the best stretch", "62514053add511a1", "0.1.0",
    )  # fmt: skip
    return Intent(
        JobKey("cluster", str(job), 1001, 1_700_000_000), Life(0, 1_700_000_000), Rung.ENFORCE, evidence, 1, 1
    )


def sealing_us() -> float:
    """Return the time that it takes to make a remark's link, in microseconds; no database."""
    rows = Appended(remarks=remarks(ROWS))
    return _seconds(lambda: rows.links(0, GENESIS)) / ROWS * 1e6


def appended_s(store: SqlStore) -> float:
    """Return the time for 10,000 remarks, 100 a transaction, in seconds."""
    batches = [Changes(remarks=remarks(BATCH)) for _ in range(ROWS // BATCH)]
    return _seconds(lambda: [store.record(each) for each in batches])


def steps_ms(store: SqlStore, stops: int = 100, steps: int = 8) -> float:
    """Return the time of one step of an intent with its event, one transaction each, in milliseconds."""

    def play(intent: Intent) -> None:
        for seq in range(steps):
            event = IntentEvent(intent.id, seq, float(seq), "note", "the owner was told")
            store.record(Changes(intents=(replace(intent, events=seq + 1),), events=(event,)))

    intents = [stop(job) for job in range(stops)]
    return _seconds(lambda: [play(each) for each in intents]) / (stops * steps) * 1e3


def watched(jobs: int, evals: int = 0) -> Changes:
    """Return the watches of so many running jobs after so many evals: none of it changes a life."""
    terms = Terms(Rung.OBSERVE, "recommended", "eval/score", Mode.MAX)
    keys = [JobKey("cluster", str(10**6 + n), 1001, 1_700_000_000) for n in range(jobs)]
    whose = ("alice", "ml", "gpu", "train", 8, ("n1",), 1_700_000_001.0, 1_700_086_401.0)
    return Changes(watches=tuple(Watch(k, Life(0, k.submitted_s), 1.0, terms, *whose, evals=evals) for k in keys))


def watches_ms(store: SqlStore, passes: int = 5) -> tuple[float, float]:
    """Return the processor's time for a watch that is new, and for one that was read again, in milliseconds."""
    first = _cpu_s(lambda: store.record(watched(WATCHES)))
    again = _cpu_s(lambda: [store.record(watched(WATCHES, evals)) for evals in range(1, passes + 1)])
    return first / WATCHES * 1e3, again / passes / WATCHES * 1e3


def _cpu_s(call: Callable[[], object]) -> float:
    begin = process_time()
    call()
    return process_time() - begin


def walked(store: SqlStore) -> tuple[int, float]:
    """Return how many links were walked, and the processor's time for it in seconds."""
    begin = process_time()
    found = verify(store)
    if not found.good:
        raise ValueError(f"the chain is broken: {found.first}")
    return found.links, process_time() - begin


def _seconds(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def main() -> int:
    """Print every figure; return 1 if one that has a limit is beyond it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "store.db"
        migrate.upgrade(f"sqlite:///{file}")
        store, empty = SqlStore(f"sqlite:///{file}"), file.stat().st_size
        spent_s = appended_s(store)
        print(
            f"{ROWS} remarks, {BATCH} a transaction: {spent_s:.2f} s, {(file.stat().st_size - empty) / ROWS:.0f} B each"
        )
        print(f"one step of a stop of 100 evals with its event: {steps_ms(store):.2f} ms")
        new_ms, again_ms = watches_ms(store)
        print(f"a watch of a new job: {new_ms:.3f} ms; of one whose life has not changed: {again_ms:.3f} ms")
        links, walk_s = walked(store)
        print(f"a walk over {links} links: {walk_s:.2f} s (limit {WALK_S:g})")
    seal_us = sealing_us()
    print(f"sealing a remark: {seal_us:.1f} us (limit {SEAL_US:g})")
    return int(seal_us > SEAL_US or walk_s > WALK_S)


if __name__ == "__main__":
    raise SystemExit(main())
