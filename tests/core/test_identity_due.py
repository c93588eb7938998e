"""Ids are reused and requeues renew the submit time; and runs are read by our own clock."""

from dataclasses import replace

from evalstopd.core.due import after_read
from evalstopd.core.identity import recognise
from evalstopd.core.model import Job, JobKey, Life, Mode, Phase, Rung
from evalstopd.core.watch import Reads, Terms, Watch

JOB = Job("c", "7", 7, 1001, "alice", Phase.RUNNING, "RUNNING", 100, 110, 0, 4)
WATCH = Watch(JobKey("c", "7", 1001, 100), Life(0, 100), 111.0, Terms(Rung.OBSERVE, "never", "m", Mode.MAX))


def test_the_same_life_is_the_same_job() -> None:
    assert recognise([JOB], [WATCH])[0].key == WATCH.key


def test_a_requeued_job_keeps_its_key_in_a_new_life() -> None:
    again = replace(JOB, submitted_s=500, restarts=1)

    assert recognise([again], [WATCH])[0].key == WATCH.key
    assert recognise([again], [WATCH])[0].job.life == Life(1, 500)


def test_a_reused_id_or_another_owner_is_another_job() -> None:
    reused = replace(JOB, submitted_s=500)
    stolen = replace(JOB, uid=1002)

    assert recognise([reused], [WATCH])[0].key == JobKey("c", "7", 1001, 500)
    assert recognise([stolen], [WATCH])[0].key == JobKey("c", "7", 1002, 100)
    assert recognise([reused, stolen], [WATCH])[0].watch is None


def read_all(arrivals: list[bool], gap_s: float) -> Reads:
    reads = Reads()
    for number, arrived in enumerate(arrivals):
        reads = after_read(reads, number * gap_s, arrived=arrived, tick_s=30.0, started_s=0.0)
    return reads


def test_a_young_job_is_read_each_tick() -> None:
    assert after_read(Reads(), 100.0, arrived=False, tick_s=30.0, started_s=0.0).due_s == 130.0


def test_an_old_job_without_evals_is_read_ever_more_rarely_up_to_ten_minutes() -> None:
    reads = Reads()
    waits = []
    now_s = 600.0
    for _ in range(8):
        reads = after_read(reads, now_s, arrived=False, tick_s=30.0, started_s=0.0)
        waits.append(reads.due_s - now_s)
        now_s = reads.due_s

    assert waits == [60.0, 120.0, 240.0, 480.0, 600.0, 600.0, 600.0, 600.0]


def test_after_two_arrivals_the_next_read_comes_at_four_fifths_of_the_median_gap() -> None:
    assert read_all([True, True, True], 500.0).due_s == 1000.0 + 400.0
    assert read_all([True, True, True], 5000.0).due_s == 10000.0 + 900.0
    assert read_all([True, True, True], 10.0).due_s == 20.0 + 30.0


def test_an_overdue_eval_is_asked_for_ever_more_rarely() -> None:
    reads = read_all([True, True, True], 500.0)
    waits = []
    now_s = reads.due_s
    for _ in range(6):
        reads = after_read(reads, now_s, arrived=False, tick_s=30.0, started_s=0.0)
        waits.append(reads.due_s - now_s)
        now_s = reads.due_s

    assert waits == [50.0, 100.0, 200.0, 400.0, 800.0, 900.0]
