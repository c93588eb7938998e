"""The log of passes: the same trouble is said once an hour, new trouble at once, and that it is over."""

import logging
from collections import Counter

import pytest

from evalstopd.loop import TickReport
from evalstopd.repeats import AGAIN_S, PassLog

GOOD = TickReport(good=True, counts=Counter(), troubles=())


def bad(what: str) -> TickReport:
    return TickReport(good=False, counts=Counter(), troubles=(what,))


def told(caplog: pytest.LogCaptureFixture, *passes: tuple[float, TickReport]) -> list[str]:
    log = PassLog()
    with caplog.at_level(logging.INFO, "evalstopd"):
        for now_s, report in passes:
            log.tell(report, now_s)
    return [record.getMessage() for record in caplog.records]


def test_the_same_trouble_is_said_once_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    lines = told(caplog, *((at * 30.0, bad("squeue failed")) for at in range(241)))

    assert len(lines) == 1 + int(240 * 30.0 / AGAIN_S)
    assert all("squeue failed" in line for line in lines)


def test_other_trouble_is_said_at_once(caplog: pytest.LogCaptureFixture) -> None:
    lines = told(caplog, (0, bad("squeue failed")), (30, bad("the store failed")), (60, bad("the store failed")))

    assert len(lines) == 2


def test_that_it_is_over_is_said_once_and_new_trouble_is_new(caplog: pytest.LogCaptureFixture) -> None:
    passes = (bad("a"), bad("a"), GOOD, GOOD, bad("a"))
    lines = told(caplog, *((at * 30.0, report) for at, report in enumerate(passes)))

    assert [line for line in lines if "again" in line] == ["passes are good again, after 2 that were not"]
    assert sum("nothing decided" in line for line in lines) == 2


def test_trouble_of_good_passes_is_a_warning_once_an_hour_and_no_secret_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A tracker that is down ends no pass, and must be seen in a log that is read for warnings."""
    down = TickReport(good=True, counts=Counter(), troubles=("MLflow: HTTP 500",))
    lines = told(caplog, *((at * 30.0, down) for at in range(121)), (3_700.0, GOOD), (3_730.0, down))

    assert len(lines) == 123
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warned) == 3
    assert all("HTTP 500" in line for line in warned)
