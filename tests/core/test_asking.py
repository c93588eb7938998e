"""When Slurm is asked again for the end of a job that it did not hear of, or refused to end."""

from hypothesis import given
from hypothesis import strategies as st

from evalstopd.core.asking import pause_s


def test_a_lost_request_is_put_again_at_once_and_then_ever_more_rarely() -> None:
    pauses = [pause_s("a stop", tries, 0) for tries in range(1, 9)]
    bounds = [0.0, 30.0, 60.0, 120.0, 240.0, 480.0, 900.0, 900.0]

    assert all(0.75 * most <= pause <= most for pause, most in zip(pauses, bounds, strict=True)), pauses


def test_what_slurm_refused_is_asked_for_most_rarely() -> None:
    pauses = [pause_s("a stop", 0, refusals) for refusals in range(1, 5)]

    assert all(0.75 * most <= pause <= most for pause, most in zip(pauses, (300.0, 600.0, 900.0, 900.0), strict=True))


@given(st.text(), st.integers(0, 10**9), st.integers(0, 10**9))
def test_no_pause_is_longer_than_a_quarter_of_an_hour_and_each_is_the_same_for_who_asks_again(
    name: str, tries: int, refusals: int
) -> None:
    assert 0.0 <= pause_s(name, tries, refusals) <= 900.0
    assert pause_s(name, tries, refusals) == pause_s(name, tries, refusals)


def test_stops_that_failed_together_do_not_ask_together_for_ever() -> None:
    assert len({pause_s(f"stop {number}", 6, 0) for number in range(20)}) == 20
