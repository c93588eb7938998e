"""When a missing checkpoint is looked for: each tick at first, then ever more rarely, never all at once."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.missing import is_sought, is_time, lot
from evalstopd.core.model import JobKey
from evalstopd.core.watch import Pin, PinState

TICK_S = 30.0
PIN = Pin(JobKey("c", "7", 1001, 100), 40, 0.8, PinState.WANTED, wanted_s=1_000_000.0)


def looks(pin: Pin, missed_s: float, passes: int = 2000) -> int:
    """Return in how many of so many passes a pin is looked for, had it been missed for that long in each of them."""
    moments = (PIN.wanted_s + TICK_S * n for n in range(passes))
    return sum(is_sought(replace(pin, wanted_s=now_s - missed_s), now_s, TICK_S) for now_s in moments)


def test_at_first_a_checkpoint_is_looked_for_in_every_pass() -> None:
    """A tenth of the time for which it is missed is no more than a tick during ten ticks."""
    assert [looks(PIN, missed_s) for missed_s in (0.0, 30.0, 300.0)] == [2000, 2000, 2000]


@pytest.mark.parametrize(("missed_s", "one_in"), [(600.0, 2), (3000.0, 10), (6000.0, 20), (1e6, 20)])
def test_later_a_look_comes_once_in_a_tenth_of_that_time_and_every_ten_minutes_at_least(
    missed_s: float, one_in: int
) -> None:
    assert looks(PIN, missed_s) == pytest.approx(2000 / one_in, rel=0.2)


def test_whatever_is_looked_for_by_a_name_has_the_same_spacing_and_lots_of_its_own() -> None:
    moments = [PIN.wanted_s + TICK_S * n for n in range(2000)]
    one, other = ([is_time(name, now_s - 6000.0, now_s, TICK_S) for now_s in moments] for name in ("a", "b"))

    assert all(is_time("a", now_s - 300.0, now_s, TICK_S) for now_s in moments)
    assert [sum(one), sum(other)] == [pytest.approx(100, rel=0.3), pytest.approx(100, rel=0.3)]
    assert sum(map(all, zip(one, other, strict=True))) < 20


def test_checkpoints_that_were_missed_together_are_not_all_looked_for_together() -> None:
    others = [replace(PIN, key=replace(PIN.key, job_id=str(n // 2)), step=n % 2) for n in range(200)]
    sought = [sum(is_sought(each, PIN.wanted_s + 6000.0 + TICK_S * n, TICK_S) for each in others) for n in range(50)]

    assert max(sought) < 30
    assert sum(sought) == pytest.approx(50 * 200 / 20, rel=0.2)


@given(st.text(st.characters(), max_size=5), st.integers(), st.floats(allow_nan=False))
def test_a_lot_is_drawn_whatever_the_names_hold_and_always_the_same(name: str, step: int, now_s: float) -> None:
    pin = replace(PIN, key=replace(PIN.key, cluster=name), step=step)

    assert 0 <= lot(pin, now_s) < 1
    assert lot(pin, now_s) == lot(replace(pin), now_s)


def test_a_lot_can_be_drawn_for_text_that_is_no_unicode() -> None:
    assert 0 <= lot(replace(PIN, key=replace(PIN.key, cluster="\udcff")), 1.0) < 1


def test_each_pin_draws_a_lot_of_its_own() -> None:
    pins = [replace(PIN, key=replace(PIN.key, job_id=str(n // 10)), step=n % 10) for n in range(100)]

    assert len({lot(pin, 1.0) for pin in pins}) == 100


def test_lots_are_spread_over_their_whole_range() -> None:
    lots = sorted(lot(PIN, float(n)) for n in range(1000))

    assert lots[0] < 0.02
    assert lots[-1] > 0.98
    assert sum(lots) / 1000 == pytest.approx(0.5, abs=0.05)
