"""Why nothing is done although the rule says stop: the newest eval is history."""

from dataclasses import replace

import pytest

from evalstopd.core.detectors import KEEP_GOING, Declining, Stop
from evalstopd.core.model import Ending, Eval, JobKey, Life, Mode, Rung
from evalstopd.core.plan import verdicts
from evalstopd.core.watch import Terms, Watch
from evalstopd.core.withheld import may_withhold, withheld

TERMS = Terms(Rung.ENFORCE, "k-declines:k=2", "acc", Mode.MAX)
WATCH = Watch(JobKey("c", "7", 1001, 100), Life(2, 300), 1.0, TERMS, declines=2, last_life=1)
FALL = tuple(Eval(10 * at, score, None, 1, "r", 1.0) for at, score in enumerate((3.0, 2.0, 1.0), 1))
STOPS = verdicts(FALL, TERMS)


def test_a_stop_on_history_is_withheld_and_says_why() -> None:
    assert isinstance(STOPS[-1], Stop)
    assert withheld(WATCH, FALL, STOPS) == (
        "no stop is decided: the rule says stop at step 30, but that eval is history, in the run before this life of "
        "the job (restarts: 2) first read it; only a later one can stop the job"
    )


def test_nothing_is_withheld_of_a_job_that_is_over_or_of_an_eval_of_this_life_or_without_a_stop() -> None:
    present = [*FALL[:-1], FALL[-1]._replace(life=2)]

    assert withheld(replace(WATCH, ending=Ending("COMPLETED", 9.0)), FALL, STOPS) == ""
    assert withheld(WATCH, present, STOPS) == ""
    assert withheld(WATCH, [*FALL[:-1], FALL[-1]._replace(life=3)], STOPS) == ""
    assert withheld(WATCH, FALL[:2], STOPS[:2]) == ""
    assert withheld(WATCH, (), ()) == ""
    assert isinstance(STOPS[1], Declining)
    assert withheld(WATCH, FALL, [*STOPS[:-1], KEEP_GOING]) == ""


@pytest.mark.parametrize(
    ("fields", "may"),
    [
        ({}, True),
        ({"declines": 1}, True),
        ({"declines": 0}, False),
        ({"last_life": 2}, False),
        ({"ending": Ending("COMPLETED", 9.0)}, False),
    ],
)
def test_by_the_watch_alone_it_is_told_whether_that_can_be(fields: dict[str, object], may: bool) -> None:
    assert may_withhold(replace(WATCH, **fields)) is may  # type: ignore[arg-type]
