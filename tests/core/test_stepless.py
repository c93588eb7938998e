"""Values without a step are said; what only begins at a step, or repeats one, is not."""

import pytest

from evalstopd.core.model import Point
from evalstopd.core.stepless import stepless_caution


def points(*steps: int, run: str = "r", value: float = 0.5) -> list[Point]:
    return [Point(run, step, value, 1000 * number) for number, step in enumerate(steps)]


def test_values_that_were_all_logged_at_one_step_are_said_with_what_to_do() -> None:
    found = stepless_caution(points(0, 0, 0, 0))
    assert found is not None
    assert found.text.startswith("all 4 values were logged at step 0: ")
    assert found.text.endswith("log them with step=...")
    assert (found.code, found.refuse) == ("one-step", False)
    constant = stepless_caution(points(7, 7, 7, 7))
    assert constant is not None
    assert "at step 7" in constant.text


@pytest.mark.parametrize(
    "logged",
    [
        [],
        points(0),
        points(0, 0, 0),
        points(0, 0, 0, 0, 10),
        [*points(0, 0), *points(0, 0, run="s")],
        [Point("r", 0, rank / 10, 1000 + rank) for rank in range(8)],
        points(0, 0, 0, 0, value=float("nan")),
    ],
)
def test_a_beginning_or_a_repeated_step_is_not_said(logged: list[Point]) -> None:
    assert stepless_caution(logged) is None
