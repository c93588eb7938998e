"""What a pass does with one job's points grows with their number, not with its square."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from evalstopd.core.binding import RunFacts
from evalstopd.core.curve import curve
from evalstopd.core.identity import Sighting
from evalstopd.core.model import Job, JobKey, Life, Mode, Phase, Point, Rung
from evalstopd.core.plan import Case, Known, Stamp, plan
from evalstopd.core.rules import Standing
from evalstopd.core.watch import Pin, PinState, Terms, Watch
from evalstopd.core.wishes import Wishes
from evalstopd.loop.arrivals import arrivals
from evalstopd.ports import RunReading
from tests.growth import MOST, grows_by

NOW_S = 5000.0
KEY = JobKey("c", "1", 1001, 100)
LIFE = Life(0, 100)
TERMS = Terms(Rung.WARN, "recommended", "acc", Mode.MAX)
WATCH = Watch(KEY, LIFE, first_s=150.0, terms=TERMS, run_id="r", two_way=True, started_s=200.0)


def points(count: int, arrived_s: float) -> list[Point]:
    stream = Random(count)
    scores = (at / count + stream.gauss(0, 0.1) for at in range(count))
    return [Point("r", at, score, at, 0, arrived_s, 0.1, "acc") for at, score in enumerate(scores)]


@pytest.mark.parametrize("arrived_s", [NOW_S, NOW_S - 60], ids=["all new", "the newest alone"])
def test_a_jobs_plan(arrived_s: float) -> None:
    """With a pin for each of its evals, as a run that rises long enough comes to have."""
    job = Job("c", "1", 1, 1001, "alice", Phase.RUNNING, "RUNNING", LIFE.submitted_s, 200, 0, 8)

    def work(count: int) -> Callable[[], object]:
        evals = curve(points(count, arrived_s))
        case = Case(Sighting(KEY, job, WATCH), WATCH, Standing(TERMS, "test"), Wishes(run_id="r"), evals, "comment")
        pins = [Pin(KEY, each.step, each.score, PinState.DROPPED, 1.0) for each in evals]
        known = Known({KEY: pins}, {}, {}, frozenset())
        return lambda: plan([case], known, Stamp(NOW_S, "hash", "test"))

    assert grows_by(work) < MOST


def test_the_arrival_of_a_jobs_points() -> None:
    """Half of them were there before, without their standard errors."""

    def work(count: int) -> Callable[[], object]:
        read = points(count, 0.0)
        held = [replace(each, stderr=None) for each in read[: count // 2]]
        reading = RunReading(RunFacts("r", "RUNNING", False, "alice", {}, {}), tuple(read))
        return lambda: arrivals(TERMS, lambda _: 0, reading, held, NOW_S)

    assert grows_by(work) < MOST
