"""Ids are reused and requeues renew the submit time; and runs are read by our own clock."""

from dataclasses import replace

from evalstopd.core.due import after_read, worth_a_look
from evalstopd.core.identity import Sighting, recognise
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
        reads = after_read(reads, number * gap_s, arrived=int(arrived), tick_s=30.0, started_s=0.0)
    return reads


def test_a_young_job_is_read_each_tick() -> None:
    assert after_read(Reads(), 100.0, arrived=0, tick_s=30.0, started_s=0.0).due_s == 130.0


def test_an_old_job_without_evals_is_read_ever_more_rarely_up_to_ten_minutes() -> None:
    reads = Reads()
    waits = []
    now_s = 600.0
    for _ in range(8):
        reads = after_read(reads, now_s, arrived=0, tick_s=30.0, started_s=0.0)
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
        reads = after_read(reads, now_s, arrived=0, tick_s=30.0, started_s=0.0)
        waits.append(reads.due_s - now_s)
        now_s = reads.due_s

    assert waits == [50.0, 100.0, 200.0, 400.0, 800.0, 900.0]


def test_what_is_seen_is_paired_with_what_is_kept() -> None:
    assert recognise([JOB], [WATCH]) == (Sighting(WATCH.key, JOB, WATCH),)
    elsewhere = replace(JOB, cluster="d")
    assert recognise([elsewhere], [WATCH]) == (Sighting(JobKey("d", "7", 1001, 100), elsewhere, None),)


def test_an_older_life_than_the_one_known_is_another_job() -> None:
    known = replace(WATCH, life=Life(2, 500))

    assert recognise([replace(JOB, restarts=1, submitted_s=400)], [known])[0].watch is None
    assert recognise([replace(JOB, restarts=2, submitted_s=400)], [known])[0].watch is None


def test_a_jobs_age_counts_from_its_start_and_at_ten_minutes_it_is_no_longer_young() -> None:
    def due(now_s: float, empty: int = 0) -> float:
        reads = after_read(Reads(empty=empty), now_s, arrived=0, tick_s=30.0, started_s=1000.0)
        assert (reads.good_s, reads.empty) == (now_s, empty + 1)
        return reads.due_s - now_s

    assert due(1599.0, empty=3) == 30.0
    assert due(1600.0, empty=3) == 480.0


def test_two_arrivals_are_enough_for_a_gap_and_nine_are_remembered() -> None:
    assert read_all([True, True], 500.0).due_s == 500.0 + 400.0
    assert read_all([True] * 12, 100.0).arrivals == tuple(100.0 * n for n in range(3, 12))


def test_an_arrival_ends_the_count_of_empty_reads() -> None:
    assert [read_all([True, False, False, *rest], 100.0).empty for rest in ((), (True,))] == [2, 0]


def test_reads_before_their_time_that_bring_nothing_put_nothing_off() -> None:
    """While a stop is open each pass reads the run: its next eval is not overdue for that."""
    before = read_all([True, True, True], 500.0)
    reads = before
    for now_s in range(1_030, 1_400, 30):
        reads = after_read(reads, float(now_s), arrived=0, tick_s=30.0, started_s=0.0)
    assert (reads.due_s, reads.empty, reads.good_s) == (before.due_s, 0, 1_390.0)
    back = after_read(before, 100.0, arrived=0, tick_s=30.0, started_s=0.0)

    assert back.due_s < 1_000.0, "a clock that was put back is no reason to wait"


def looks(age_s: float, over_s: float, tick_s: float = 30.0) -> int:
    """Return in how many passes of a time one looks for the run of a job of that age."""
    passes = range(1, int(over_s / tick_s) + 1)
    return sum(worth_a_look(age_s, 1e6 + n * tick_s, tick_s) for n in passes)


def test_a_run_is_looked_for_each_tick_at_first_then_ever_more_rarely() -> None:
    """At 800 s every 100 s, from two hours on every quarter of an hour, and never more often than the ticks come."""
    assert looks(599.0, 3000.0) == 100
    assert looks(800.0, 3000.0) == 30
    assert looks(600.0, 3000.0) == 40
    assert looks(7200.0, 9000.0) == looks(1e6, 9000.0) == 10
    assert looks(600.0, 3000.0, tick_s=300.0) == 10


def test_a_look_comes_in_the_pass_after_its_time() -> None:
    """At 800 s the times are the hundreds."""
    assert [worth_a_look(800.0, now_s, 30.0) for now_s in (999.0, 1000.0, 1029.0, 1030.0)] == [False, True, True, False]


def test_evals_that_come_at_once_after_an_outage_do_not_slow_the_reading_down() -> None:
    """Five evals in two hours in which nothing could be read are one each 24 minutes, not one in two hours."""
    begun = after_read(Reads(), 0.0, arrived=1, tick_s=30.0, started_s=0.0)
    reads = after_read(begun, 7_200.0, arrived=5, tick_s=30.0, started_s=0.0)
    assert reads.arrivals == (0.0, 1_440.0, 2_880.0, 4_320.0, 5_760.0, 7_200.0)
    late = after_read(Reads(), 1_000.0, arrived=1, tick_s=30.0, started_s=0.0)
    assert after_read(late, 1_400.0, arrived=2, tick_s=30.0, started_s=0.0).arrivals == (1_000.0, 1_200.0, 1_400.0)
    many = after_read(begun, 300.0, arrived=30, tick_s=1.0, started_s=0.0)
    assert many.due_s == 308.0
    assert len(many.arrivals) == 9


def test_a_first_look_at_many_evals_is_one_arrival() -> None:
    assert after_read(Reads(), 50.0, arrived=40, tick_s=30.0, started_s=0.0).arrivals == (50.0,)
