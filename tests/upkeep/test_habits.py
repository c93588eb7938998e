"""Reading accounting for estimates: each job once, one call at a time, and what was known stays while it is away."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from evalstopd.core.estimates import EVERYBODY, Asked, PastLife
from evalstopd.errors import Unavailable
from evalstopd.loop import TickReport
from evalstopd.ports import Span
from evalstopd.store.memory import MemoryStore
from evalstopd.upkeep.habits import BETWEEN_S, DAY_S, HOUR_S, LAG_S, LEAST_SPAN_S, PAUSE_S, Habits
from tests.fakes.world import FakeClock

GOOD = TickReport(good=True, counts=Counter(), troubles=(), cluster="c")
NOW_S = 100 * DAY_S


@dataclass
class FakeAccounting:
    """Accounting that a test fills, takes away, or that answers short spans alone."""

    lives: list[PastLife] = field(default_factory=list)
    asked: list[Span] = field(default_factory=list)
    down: bool = False
    longest_s: float = 1e9

    def end(self, at_s: float, share: float = 0.25) -> None:
        self.lives.append(PastLife("alice", "ml", "train", 36000.0, share * 36000.0, "COMPLETED", at_s))

    def ended(self, span: Span) -> Sequence[PastLife]:
        self.asked.append(span)
        if self.down or span.until_s - span.since_s > self.longest_s:
            raise Unavailable("sacct gave no answer within 5 s")
        return [each for each in self.lives if each.ended_s in span]


class Site:
    """A daemon's history over a store that it shares with others; `pass_time` makes a pass every half a minute."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.clock, self.accounting = FakeClock(NOW_S), FakeAccounting()
        self.store = store or MemoryStore()
        self.days: float | None = 2.5
        self.habits = self.daemon()

    def daemon(self) -> Habits:
        return Habits(self.accounting, self.store, self.clock, lambda: self.days)

    def pass_time(self, seconds: float, report: TickReport = GOOD, *, leads: bool = True) -> None:
        for _ in range(int(seconds // 30)):
            self.clock.time_s += 30
            self.habits(report, 0.0, leads)

    def counted(self) -> float:
        return sum(sum(each.ended) for kin, each in self.habits.history("c").tallies.items() if kin == EVERYBODY)


def test_the_days_before_are_read_a_day_a_minute_then_the_rest_once_an_hour() -> None:
    site = Site()
    site.pass_time(HOUR_S)
    spans = site.accounting.asked

    assert len(spans) == 3
    assert (spans[0].since_s, spans[-1].until_s) == (NOW_S + 30 - 2.5 * DAY_S, NOW_S + 30 + 2 * BETWEEN_S - LAG_S)
    assert [one.until_s for one in spans[:-1]] == [other.since_s for other in spans[1:]]
    site.pass_time(3 * HOUR_S)
    assert len(spans) == 6


def test_each_job_is_counted_once_whoever_reads_on() -> None:
    """Daemons that follow one another, and one that was asleep while another read."""
    site = Site()
    first = site.habits
    for hour in range(60):
        site.accounting.end(NOW_S - DAY_S + hour * HOUR_S / 2)
    site.pass_time(600)
    site.habits = site.daemon()
    site.pass_time(3 * HOUR_S)
    site.habits = first
    site.pass_time(3 * HOUR_S)
    ended = sum(each.ended_s < site.store.history_read_s("c") for each in site.accounting.lives)  # type: ignore[operator]
    weights = [sum(each.tallies[EVERYBODY].ended) for each in (site.store.history("c"), first.history("c")) if each]

    assert ended > 48
    assert weights == pytest.approx([ended, ended], rel=0.05)
    assert weights[0] == weights[1]


def test_what_was_read_is_what_the_next_daemon_estimates_by() -> None:
    site = Site()
    for _ in range(20):
        site.accounting.end(NOW_S - HOUR_S)
    site.pass_time(600)
    asked = Asked("alice", "ml", "train", 36000.0)
    found = [each.history("c").estimate(asked) for each in (site.habits, site.daemon())]

    assert found[0] == found[1]
    assert found[0] is not None
    assert found[0].length_s == 9000.0


def test_while_accounting_is_away_what_was_known_stays_and_it_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    site = Site()
    site.accounting.end(NOW_S - HOUR_S)
    site.pass_time(600)
    site.accounting.down = True
    calls = len(site.accounting.asked)
    with caplog.at_level(logging.INFO, logger="evalstopd"):
        site.pass_time(6 * HOUR_S)
        assert len(site.accounting.asked) - calls <= 6 * HOUR_S / PAUSE_S
        assert site.counted() == pytest.approx(1.0)
        site.accounting.down = False
        site.pass_time(HOUR_S)

    assert [each.getMessage().partition(":")[0] for each in caplog.records] == [
        "estimates stay as they were",
        "accounting can be read again for estimates",
    ]


def test_a_span_that_is_too_much_for_one_call_is_halved_until_it_is_not() -> None:
    site = Site()
    site.accounting.longest_s = DAY_S / 5
    site.accounting.end(NOW_S - DAY_S)
    site.pass_time(5 * HOUR_S)

    assert site.counted() == pytest.approx(1.0)
    assert min(span.until_s - span.since_s for span in site.accounting.asked) >= LEAST_SPAN_S


@pytest.mark.parametrize(
    ("report", "leads", "days"),
    [
        (GOOD, False, 2.5),
        (replace(GOOD, good=False), True, 2.5),
        (replace(GOOD, cluster=""), True, 2.5),
        (GOOD, True, None),
    ],
)
def test_only_the_leader_reads_after_a_good_pass_and_only_where_estimates_are_wanted(
    report: TickReport, leads: bool, days: float | None
) -> None:
    site = Site()
    site.days = days
    site.pass_time(600, report, leads=leads)

    assert site.accounting.asked == []


def test_calls_do_not_grow_with_the_jobs() -> None:
    few, many = Site(), Site()
    for _ in range(2000):
        many.accounting.end(NOW_S - HOUR_S)
    for each in (few, many):
        each.pass_time(2 * HOUR_S)

    assert len(few.accounting.asked) == len(many.accounting.asked)
