"""The heap, the virtual clock and the loop over events."""

from math import inf, nan
from typing import NamedTuple

import pytest
from evalstopd_sim.engine import Timeline, UnknownEvent, run

from evalstopd.errors import Fatal


class Ping(NamedTuple):
    name: str


def test_events_come_by_time_then_priority_then_in_the_order_asked_for() -> None:
    timeline, seen = Timeline(), []
    for time_s, priority, name in [(2.0, 0, "d"), (1.0, 1, "b"), (1.0, 1, "c"), (1.0, 0, "a")]:
        timeline.at(time_s, priority, Ping(name))

    run(timeline, {Ping: lambda event: seen.append(event.name)}, lambda: None)

    assert "".join(seen) == "abcd"
    assert timeline.now_s == 2.0
    assert timeline.peek() == inf


@pytest.mark.parametrize("time_s", [-1.0, nan, inf])
def test_an_event_in_the_past_or_at_no_time_is_fatal(time_s: float) -> None:
    with pytest.raises(Fatal, match="was asked for"):
        Timeline().at(time_s, 0, Ping("x"))


def test_an_unknown_event_raises() -> None:
    timeline = Timeline()
    timeline.at(1.0, 0, Ping("x"))

    with pytest.raises(UnknownEvent, match="Ping"):
        run(timeline, {}, lambda: None)


def test_all_events_of_an_instant_are_handled_before_settling() -> None:
    timeline, seen = Timeline(), []
    for time_s in (1.0, 1.0, 2.0):
        timeline.at(time_s, 0, Ping("event"))

    run(timeline, {Ping: lambda event: seen.append(event.name)}, lambda: seen.append("settle"))

    assert seen == ["event", "event", "settle", "event", "settle"]


def test_nothing_is_handled_after_the_horizon() -> None:
    timeline, seen = Timeline(), []
    for time_s in (1.0, 5.0):
        timeline.at(time_s, 0, Ping("x"))

    run(timeline, {Ping: seen.append}, lambda: None, until_s=4.0)

    assert len(seen) == 1
