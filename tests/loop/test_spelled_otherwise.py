"""An owner's "no" in another spelling costs nobody a job, and what is not understood is said once."""

import pytest

from tests.fakes.world import RISE_AND_FALL, World
from tests.loop.told import said


def played(comment: str) -> World:
    world = World()
    job = world.train("r1", comment=comment)
    world.play(job, "r1", RISE_AND_FALL)
    return world


@pytest.mark.parametrize("comment", ["EVALSTOP=off", "evalstop:off", 'Evalstop="keep"', "evalstop = keep"])
def test_a_clear_no_is_heard(comment: str) -> None:
    world = played(comment)

    assert world.cluster.cancelled == []
    assert said(world, "ambiguous-comment") == []


@pytest.mark.parametrize("comment", ["evalstop off", "no-evalstop", "evalstop:enforce", "x=evalstop=off"])
def test_what_is_not_clear_stops_nothing_and_is_said_once(comment: str) -> None:
    world = played(comment)

    assert world.cluster.cancelled == []
    assert len(said(world, "ambiguous-comment")) == 1


def test_the_same_job_without_such_a_word_is_stopped() -> None:
    assert played("a note").cluster.cancelled == [("1", 0)]
